import EventLoop
import Glibc
import Testing

@Suite struct DescriptorAndTimerTests {
    /// Both ends of a non-blocking pipe.
    private func makePipe() throws -> (read: CInt, write: CInt) {
        var ends: [CInt] = [0, 0]
        try #require(pipe(&ends) == 0)
        for end in ends { _ = fcntl(end, F_SETFL, O_NONBLOCK) }
        return (ends[0], ends[1])
    }

    @Test func `a handler is called while bytes wait and reading is on`() async throws {
        let (readEnd, writeEnd) = try makePipe()
        defer {
            close(readEnd)
            close(writeEnd)
        }
        try await withLoop { loop in
            let received = LockedArray<UInt8>()
            let watch = await loop.run {
                let watch = DescriptorWatch(loop: loop, descriptor: readEnd) { readiness in
                    guard readiness == .readable else { return }
                    var byte: UInt8 = 0
                    if read(readEnd, &byte, 1) == 1 { received.append(byte) }
                }
                watch.setReading(true)
                return LoopBound(watch, loop: loop)
            }
            #expect(write(writeEnd, [1, 2, 3] as [UInt8], 3) == 3)
            while received.values.count < 3 { await Task.yield() }
            #expect(received.values == [1, 2, 3])

            await loop.run { watch.value.setReading(false) }
            #expect(write(writeEnd, [4] as [UInt8], 1) == 1)
            for _ in 0..<20 { await loop.run {} }
            #expect(received.values == [1, 2, 3])

            await loop.run { watch.value.setReading(true) }
            while received.values.count < 4 { await Task.yield() }
            await loop.run { watch.value.cancel() }
        }
    }

    @Test func `an empty pipe is writable`() async throws {
        let (readEnd, writeEnd) = try makePipe()
        defer {
            close(readEnd)
            close(writeEnd)
        }
        try await withLoop { loop in
            await loop.run {
                await withCheckedContinuation { continuation in
                    var watch: DescriptorWatch?
                    watch = DescriptorWatch(loop: loop, descriptor: writeEnd) { readiness in
                        #expect(readiness == .writable)
                        watch?.cancel()
                        watch = nil
                        continuation.resume()
                    }
                    watch?.setWriting(true)
                }
            }
        }
    }

    @Test func `timers fire in order of their time, and a cancelled one never`() async throws {
        try await withLoop { loop in
            for _ in 0..<100 {
                let (fired, span) = await loop.run {
                    var fired: [Int] = []
                    var timers: [LoopTimer] = []
                    var span = Duration.zero
                    await withCheckedContinuation { continuation in
                        let begun = ContinuousClock.now
                        for delay in [300, 100, 200] {
                            let timer = LoopTimer(loop: loop) {
                                fired.append(delay)
                                if delay == 300 { continuation.resume() }
                            }
                            timer.schedule(after: .milliseconds(delay))
                            timers.append(timer)
                        }
                        span = ContinuousClock.now - begun
                        let cancelled = LoopTimer(loop: loop) { fired.append(0) }
                        cancelled.schedule(after: .milliseconds(5))
                        cancelled.cancel()
                    }
                    for timer in timers { timer.cancel() }
                    return (fired, span)
                }
                // After a pause between two calls, the timers have another order.
                if span >= .milliseconds(50) { continue }
                #expect(fired == [100, 200, 300])
                return
            }
            Issue.record("the machine paused in each attempt")
        }
    }

    @Test func `a timer can be put off`() async throws {
        try await withLoop { loop in
            let fired = await loop.run {
                var count = 0
                let timer = LoopTimer(loop: loop) { count += 1 }
                timer.schedule(after: .milliseconds(5))
                timer.schedule(after: .seconds(3_600))
                await withCheckedContinuation { continuation in
                    var later: LoopTimer?
                    later = LoopTimer(loop: loop) {
                        later?.cancel()
                        later = nil
                        continuation.resume()
                    }
                    later?.schedule(after: .milliseconds(50))
                }
                timer.cancel()
                return count
            }
            #expect(fired == 0)
        }
    }

    @Test func `a failed system call is told with its errno`() {
        #expect(throws: EventLoopError.self) { _ = try OwnedDescriptor(takingOwnershipOf: -1, from: "open").rawValue }
    }
}
