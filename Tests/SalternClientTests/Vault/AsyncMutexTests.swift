import Testing

@testable import SalternClient

@Suite struct AsyncMutexTests {
    @Test func `one task holds the lock at a time, across suspensions`() async {
        let mutex = AsyncMutex()
        let holders = Locked((count: 0, most: 0))
        await withTaskGroup { group in
            for _ in 0..<50 {
                group.addTask {
                    await mutex.lock()
                    defer { mutex.unlock() }
                    holders.withLock {
                        $0.count += 1
                        $0.most = max($0.most, $0.count)
                    }
                    for _ in 0..<5 { await Task.yield() }
                    holders.withLock { $0.count -= 1 }
                }
            }
        }
        #expect(holders.withLock { $0.most } == 1)
        #expect(!mutex.isLocked)
    }

    @Test func `waiting tasks get the lock in the order in which they came`() async {
        let mutex = AsyncMutex()
        let order = Locked<[Int]>([])
        await mutex.lock()
        await withTaskGroup { group in
            for number in 0..<10 {
                group.addTask {
                    await mutex.lock()
                    order.withLock { $0.append(number) }
                    mutex.unlock()
                }
                while mutex.waiterCount <= number { await Task.yield() }
            }
            mutex.unlock()
        }
        #expect(order.withLock { $0 } == Array(0..<10))
    }

    @Test func `a cancelled task waits for the lock, and passes it on`() async {
        let mutex = AsyncMutex()
        await mutex.lock()
        let task = Task {
            await mutex.lock()
            mutex.unlock()
        }
        while mutex.waiterCount == 0 { await Task.yield() }
        task.cancel()
        #expect(mutex.isLocked && mutex.waiterCount == 1)
        mutex.unlock()
        await task.value
        #expect(!mutex.isLocked)
    }
}
