import Testing

@testable import Postgres

@Suite struct PoolStateMachineTests {
    typealias Pool = PoolStateMachine<String>
    private let start = ContinuousClock.now

    static func makePool(
        reads: Int = 2, commits: Int = 0, leased: Int = 1, depth: Int = 2, queue: Int = 3
    ) -> Pool {
        Pool(
            settings: .init(
                readConnections: reads, commitConnections: commits, leasedConnections: leased, pipelineDepth: depth,
                queueLimit: queue, backOff: .milliseconds(100)...(.seconds(5)), leasedIdleTimeout: .seconds(60)))
    }

    private func id(_ slot: Int, _ generation: Int = 0) -> ConnectionID { .init(slot: slot, generation: generation) }

    /// A pool whose shared connections are open.
    static func makeOpenPool(
        reads: Int = 2, commits: Int = 0, leased: Int = 1, depth: Int = 2, queue: Int = 3, now: ContinuousClock.Instant
    ) -> Pool {
        var pool = makePool(reads: reads, commits: commits, leased: leased, depth: depth, queue: queue)
        for action in pool.start() {
            if case .connect(let id) = action { _ = pool.connected(id, now: now) }
        }
        return pool
    }

    private func makeOpenPool(reads: Int = 2, leased: Int = 1, depth: Int = 2, queue: Int = 3) -> Pool {
        Self.makeOpenPool(reads: reads, leased: leased, depth: depth, queue: queue, now: start)
    }

    /// What the pool said, as text that a test can compare.
    static func text(_ action: Pool.Action) -> String {
        switch action {
        case .connect(let id): "connect \(id.slot).\(id.generation)"
        case .close(let id): "close \(id.slot).\(id.generation)"
        case .grant(let request, let id): "\(request) gets \(id.slot).\(id.generation)"
        case .grantTogether(let requests, let id):
            "\(requests.joined(separator: " and ")) get \(id.slot).\(id.generation)"
        case .refuse(let request, let delay): "\(request) is refused for \(delay)"
        case .testCommit(let id): "test commit \(id.slot).\(id.generation)"
        case .finished: "finished"
        }
    }

    static func text(_ actions: [Pool.Action]) -> [String] { actions.map { text($0) } }
    private func text(_ actions: [Pool.Action]) -> [String] { Self.text(actions) }

    @discardableResult
    private func wait(_ pool: inout Pool, _ request: String, seconds: Int = 2) -> Pool.WaiterID? {
        pool.waitForShared(request, .reads, until: start + .seconds(seconds))
    }

    private func lease(_ pool: inout Pool, _ request: String, isLong: Bool = false) -> [String]? {
        pool.waitForLease(request, isLong: isLong, until: start + .seconds(1)).map { text($0.1) }
    }

    @Test func `requests go to the connection with the least to do, up to the depth`() {
        var pool = makeOpenPool()
        #expect((0..<5).map { _ in pool.acquireShared(.reads) } == [id(0), id(1), id(0), id(1), nil])
        #expect(text(pool.releaseShared(id(1))).isEmpty)
        #expect(pool.acquireShared(.reads) == id(1))
    }

    @Test func `nothing is ready before a connection is open, and those who wait get it in order`() {
        var pool = Self.makePool(reads: 1, leased: 0)
        #expect(text(pool.start()) == ["connect 0.0"])
        #expect(pool.acquireShared(.reads) == nil && !pool.isReady)
        for request in ["a", "b", "c"] { wait(&pool, request) }
        #expect(wait(&pool, "d") == nil, "the queue is full")
        #expect(text(pool.connected(id(0), now: start)) == ["a gets 0.0", "b gets 0.0"])
        #expect(pool.acquireShared(.reads) == nil, "nobody overtakes the queue")
        #expect(text(pool.releaseShared(id(0))) == ["c gets 0.0"])
    }

    @Test func `who reads does not wait for who writes, nor the other way round`() {
        var pool = Self.makeOpenPool(reads: 1, commits: 1, leased: 1, depth: 1, now: start)
        #expect(pool.acquireShared(.commits) == id(1) && pool.acquireShared(.commits) == nil)
        _ = pool.waitForShared("write", .commits, until: start + .seconds(1))
        #expect(pool.acquireShared(.reads) == id(0) && pool.acquireShared(.reads) == nil)
        _ = pool.waitForShared("read", .reads, until: start + .seconds(1))
        #expect(text(pool.releaseShared(id(0))) == ["read gets 0.0"])
        #expect(text(pool.releaseShared(id(1))) == ["write gets 1.0"])
    }

    @Test func `somebody who waited too long is refused, the others stay`() {
        var pool = Self.makePool(reads: 1, leased: 0)
        _ = pool.start()
        wait(&pool, "early", seconds: 1)
        wait(&pool, "late", seconds: 3)
        #expect(pool.nextDeadline == start + .seconds(1))
        #expect(text(pool.advance(to: start + .seconds(2))) == ["early is refused for 1.0 seconds"])
        #expect(text(pool.connected(id(0), now: start)) == ["late gets 0.0"])
    }

    @Test func `somebody who has gone is not granted anything`() throws {
        var pool = Self.makePool(reads: 1, leased: 1)
        _ = pool.start()
        let gone = try #require(wait(&pool, "gone"))
        wait(&pool, "stays")
        let cancelled = [pool.cancel(gone), pool.cancel(gone)]
        #expect(cancelled == ["gone", nil])
        #expect(text(pool.connected(id(0), now: start)) == ["stays gets 0.0"])
    }

    @Test func `a lost connection is opened again after a delay that grows up to its limit`() {
        var pool = makeOpenPool(reads: 1)
        #expect(pool.acquireShared(.reads) == id(0))
        #expect(text(pool.ended(id(0), now: start, jitter: 1)).isEmpty)
        #expect(!pool.isReady && pool.acquireShared(.reads) == nil)
        var now = start
        var delays: [Duration] = []
        for generation in 1...9 {
            guard let next = pool.nextDeadline else { break }
            delays.append(next - now)
            #expect(text(pool.advance(to: next - .nanoseconds(1))).isEmpty)
            #expect(text(pool.advance(to: next)) == ["connect 0.\(generation)"])
            now = next
            _ = pool.ended(id(0, generation), now: now, jitter: 1)
        }
        #expect(delays == [100, 100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000].map { .milliseconds($0) })
    }

    @Test func `jitter takes away at most half of a delay`() {
        var pool = makeOpenPool(reads: 1)
        _ = pool.ended(id(0), now: start, jitter: 0)
        #expect(pool.nextDeadline == start + .milliseconds(50))
    }

    @Test func `what is told of an earlier connection of a slot comes too late`() {
        var pool = makeOpenPool(reads: 1, depth: 1)
        #expect(pool.acquireShared(.reads) == id(0))
        _ = pool.ended(id(0), now: start, jitter: 0)
        #expect(text(pool.advance(to: start + .seconds(1))) == ["connect 0.1"])
        #expect(text(pool.connected(id(0), now: start)).isEmpty)
        #expect(text(pool.ended(id(0), now: start, jitter: 0)).isEmpty)
        #expect(text(pool.connected(id(0, 1), now: start)).isEmpty)
        #expect(pool.acquireShared(.reads) == id(0, 1))
        #expect(text(pool.releaseShared(id(0))).isEmpty)
        #expect(pool.acquireShared(.reads) == nil, "the late release freed no place")
    }

    @Test func `a lease opens a connection of its own, keeps it, and gives it to the next`() {
        var pool = makeOpenPool(reads: 1, leased: 1, depth: 1)
        #expect(lease(&pool, "first") == ["connect 1.0"])
        #expect(lease(&pool, "second") == [], "no more connections than configured")
        #expect(text(pool.connected(id(1), now: start)) == ["first gets 1.0"])
        #expect(pool.acquireShared(.reads) == id(0), "a lease takes nothing from statements")
        #expect(text(pool.releaseLease(id(1), reusable: true, now: start)) == ["second gets 1.0"])
        #expect(text(pool.releaseLease(id(1), reusable: true, now: start)).isEmpty)
        #expect(text(pool.advance(to: start + .seconds(59))).isEmpty)
        #expect(text(pool.advance(to: start + .seconds(60))) == ["close 1.0"])
    }

    @Test func `a lease in doubt is closed, and those who wait get a new connection`() {
        var pool = makeOpenPool(reads: 1, leased: 1)
        _ = lease(&pool, "first")
        #expect(text(pool.connected(id(1), now: start)) == ["first gets 1.0"])
        _ = lease(&pool, "second")
        #expect(text(pool.releaseLease(id(1), reusable: false, now: start)) == ["close 1.0"])
        #expect(text(pool.ended(id(1), now: start, jitter: 0)) == ["connect 1.1"])
        #expect(text(pool.connected(id(1, 1), now: start)) == ["second gets 1.1"])
    }

    @Test func `long leases have half of the connections, and short ones pass by those that wait`() {
        var pool = makeOpenPool(reads: 1, leased: 4, queue: 20)
        var opened: [ConnectionID] = []
        for number in 0..<4 {
            let actions = pool.waitForLease("long \(number)", isLong: true, until: start + .seconds(1))?.1 ?? []
            for case .connect(let id) in actions { opened.append(id) }
        }
        #expect(opened.count == 2, "no connection is opened for those who may not have it")
        #expect(opened.map { text(pool.connected($0, now: start)) } == [["long 0 gets 1.0"], ["long 1 gets 2.0"]])
        #expect(lease(&pool, "short") == ["connect 3.0"])
        #expect(text(pool.connected(id(3), now: start)) == ["short gets 3.0"])
        #expect(text(pool.releaseLease(id(3), reusable: true, now: start)).isEmpty, "it is not for long ones")
        #expect(text(pool.releaseLease(id(1), reusable: true, now: start)) == ["long 2 gets 1.0"])
    }

    @Test func `whoever has waited longest comes first, long or short`() {
        var pool = makeOpenPool(reads: 1, leased: 1, queue: 20)
        _ = lease(&pool, "holder")
        _ = pool.connected(id(1), now: start)
        for (request, isLong) in [("a", true), ("b", false), ("c", true)] { _ = lease(&pool, request, isLong: isLong) }
        let order = (0..<3).flatMap { _ in text(pool.releaseLease(id(1), reusable: true, now: start)) }
        #expect(order == ["a gets 1.0", "b gets 1.0", "c gets 1.0"])
    }

    @Test func `a retired connection finishes what it has and takes nothing more`() {
        var pool = makeOpenPool(reads: 2)
        #expect(pool.acquireShared(.reads) == id(0))
        #expect(text([pool.retire(id(0))].compactMap { $0 }).isEmpty)
        #expect(pool.acquireShared(.reads) == id(1))
        #expect(pool.acquireShared(.reads) == id(1))
        #expect(pool.acquireShared(.reads) == nil)
        #expect(text(pool.releaseShared(id(0))) == ["close 0.0"])
        #expect(text([pool.retire(id(1))].compactMap { $0 }).isEmpty)
    }

    @Test func `a shutdown refuses those who wait, lets the others finish, and then says so`() {
        var pool = makeOpenPool(reads: 2, leased: 1, depth: 1)
        #expect(pool.acquireShared(.reads) == id(0))
        _ = lease(&pool, "holder")
        #expect(text(pool.connected(id(2), now: start)) == ["holder gets 2.0"])
        _ = lease(&pool, "waiter")
        #expect(text(pool.shutDown()) == ["waiter is refused for 1.0 seconds", "close 1.0"])
        #expect(pool.acquireShared(.reads) == nil && wait(&pool, "late") == nil)
        #expect(text(pool.ended(id(1), now: start, jitter: 0)).isEmpty)
        #expect(text(pool.releaseShared(id(0))) == ["close 0.0"])
        #expect(text(pool.ended(id(0), now: start, jitter: 0)).isEmpty)
        #expect(text(pool.releaseLease(id(2), reusable: true, now: start)) == ["close 2.0"])
        #expect(text(pool.ended(id(2), now: start, jitter: 0)) == ["finished"])
        #expect(text(pool.shutDown()).isEmpty)
    }

    @Test func `a shutdown while nothing is connected is over at once`() {
        var pool = Self.makePool(reads: 1)
        _ = pool.start()
        _ = pool.ended(id(0), now: start, jitter: 0)
        #expect(text(pool.shutDown()) == ["finished"])
    }

    @Test func `nothing of a request is left after thousands of leases, granted, refused and given up`() {
        final class Request {}
        var pool = PoolStateMachine<Request>(
            settings: .init(
                readConnections: 1, commitConnections: 1, leasedConnections: 2, pipelineDepth: 4, queueLimit: 100,
                backOff: .milliseconds(100)...(.seconds(5)), leasedIdleTimeout: .seconds(60)))
        var now = start
        var alive: [() -> Request?] = []
        for round in 0..<3_000 {
            now += .milliseconds(1)
            let request = Request()
            alive.append { [weak request] in request }
            guard let (id, actions) = pool.waitForLease(request, isLong: round % 3 == 0, until: now + .milliseconds(20))
            else { continue }
            for case .connect(let id) in actions { _ = pool.connected(id, now: now) }
            if round % 5 == 0 { _ = pool.cancel(id) }
            if round % 2 == 0 {
                for slot in 2..<4 {
                    let generation = pool.slots[slot].generation
                    _ = pool.releaseLease(self.id(slot, generation), reusable: true, now: now)
                }
            }
            _ = pool.advance(to: now)
        }
        _ = pool.advance(to: now + .seconds(1))
        #expect(pool.waiterCount == 0)
        #expect(alive.count { $0() != nil } == 0)
    }
}
