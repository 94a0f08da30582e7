import EventLoop
import Glibc
import Synchronization
import Testing

/// Runs `body` with a started loop, and stops the loop.
func withLoop<Result>(_ body: (EventLoop) async throws -> Result) async throws -> Result {
    let loop = try EventLoop(name: "test")
    try loop.start()
    defer { loop.stop() }
    return try await body(loop)
}

@Suite struct EventLoopTests {
    @Test func `async functions run on the loop's thread, before and after they wait`() async throws {
        try await withLoop { loop in
            #expect(!loop.isInLoop)
            let seen = try await loop.run {
                let before = loop.isInLoop
                try await Task.sleep(for: .milliseconds(1))
                return (before, loop.isInLoop)
            }
            #expect(seen == (true, true))
        }
    }

    @Test func `a task that prefers the loop runs there`() async throws {
        try await withLoop { loop in
            let task = Task(executorPreference: loop) { loop.isInLoop }
            #expect(await task.value)
        }
    }

    @Test func `an actor can be pinned to the loop`() async throws {
        actor Counter {
            let loop: EventLoop
            var count = 0
            init(loop: EventLoop) { self.loop = loop }
            nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
            func increment() -> Bool {
                count += 1
                return loop.isInLoop
            }
        }
        try await withLoop { loop in
            let counter = Counter(loop: loop)
            await withTaskGroup(of: Bool.self) { group in
                for _ in 0..<1_000 { group.addTask { await counter.increment() } }
                for await wasInLoop in group { #expect(wasInLoop) }
            }
            #expect(await counter.count == 1_000)
        }
    }

    @Test func `blocks scheduled from many threads all run, each thread's in order`() async throws {
        try await withLoop { loop in
            let threads = 8
            let perThread = 2_000
            let seen = LockedArray<(Int, Int)>()
            await withTaskGroup(of: Void.self) { group in
                for thread in 0..<threads {
                    group.addTask { for index in 0..<perThread { loop.schedule { seen.append((thread, index)) } } }
                }
            }
            await loop.run {}
            let all = seen.values
            #expect(all.count == threads * perThread)
            for thread in 0..<threads {
                #expect(all.filter { $0.0 == thread }.map(\.1) == Array(0..<perThread))
            }
        }
    }

    @Test func `stopping lets jobs that are already there finish`() async throws {
        let loop = try EventLoop(name: "test")
        let ran = Atomic<Int>(0)
        try loop.start()
        for _ in 0..<100 { loop.schedule { ran.add(1, ordering: .relaxed) } }
        loop.stop()
        #expect(ran.load(ordering: .relaxed) == 100)
    }

    @Test func `a waiting task is resumed when its loop is woken from another thread`() async throws {
        try await withLoop { loop in
            let continuation = Mutex<CheckedContinuation<Int, Never>?>(nil)
            async let answer = loop.run {
                await withCheckedContinuation { waiting in continuation.withLock { $0 = waiting } }
            }
            while continuation.withLock({ $0 == nil }) { await Task.yield() }
            continuation.withLock { $0.take()?.resume(returning: 42) }
            let value = await answer
            #expect(value == 42)
        }
    }

    @Test func `an observer is told once at the end of the turn, after the turn's jobs`() async throws {
        final class Recorder: IterationObserver {
            var isIterationEndRequested = false
            var order: [String] = []
            func iterationEnded() { order.append("end") }
        }
        try await withLoop { loop in
            let order = await loop.run {
                let recorder = Recorder()
                for _ in 0..<3 { loop.notifyAtIterationEnd(recorder) }
                recorder.order.append("job")
                await Task.yield()
                recorder.order.append("next job")
                // The next turn begins when the wake-up that this makes is read.
                await withCheckedContinuation { next in loop.schedule { next.resume() } }
                return recorder.order
            }
            #expect(order == ["job", "next job", "end"])
        }
    }
}

/// An array that threads may share.
final class LockedArray<Element: Sendable>: Sendable {
    private let storage = Mutex<[Element]>([])
    func append(_ element: Element) { storage.withLock { $0.append(element) } }
    var values: [Element] { storage.withLock { $0 } }
}
