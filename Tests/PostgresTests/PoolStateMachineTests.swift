import Testing

@testable import Postgres

@Suite struct PoolStateMachineTests {
    private let start = ContinuousClock.now

    private func makePool(
        shared: Int = 2, leased: Int = 1, depth: Int = 2, queue: Int = 3
    ) -> PoolStateMachine {
        PoolStateMachine(
            settings: .init(
                sharedConnections: shared, leasedConnections: leased, pipelineDepth: depth, queueLimit: queue,
                backOff: .milliseconds(100)...(.seconds(5)), leasedIdleTimeout: .seconds(60)))
    }

    private func id(_ slot: Int, _ generation: Int = 0) -> PoolStateMachine.ConnectionID {
        .init(slot: slot, generation: generation)
    }

    /// A pool whose shared connections are open.
    private func makeOpenPool(shared: Int = 2, leased: Int = 1, depth: Int = 2, queue: Int = 3) -> PoolStateMachine {
        var pool = makePool(shared: shared, leased: leased, depth: depth, queue: queue)
        for action in pool.start() {
            if case .connect(let id) = action { _ = pool.connected(id, now: start) }
        }
        return pool
    }

    private func waitForShared(
        _ pool: inout PoolStateMachine, seconds: Int
    ) throws -> PoolStateMachine.WaiterID {
        let waiter = pool.waitForShared(until: start + .seconds(seconds))
        return try #require(waiter)
    }

    private func waitForLease(
        _ pool: inout PoolStateMachine, seconds: Int
    ) throws -> (PoolStateMachine.WaiterID, [PoolStateMachine.Action]) {
        let waiter = pool.waitForLease(until: start + .seconds(seconds))
        return try #require(waiter)
    }

    @Test func `requests go to the connection with the least to do, up to the depth`() {
        var pool = makeOpenPool()
        #expect((0..<5).map { _ in pool.acquireShared() } == [id(0), id(1), id(0), id(1), nil])
        #expect(pool.releaseShared(id(1)) == nil)
        #expect(pool.acquireShared() == id(1))
    }

    @Test func `nothing is ready before a connection is open, and those who wait get it in order`() throws {
        var pool = makePool(shared: 1, leased: 0)
        #expect(pool.start() == [.connect(id(0))])
        #expect(pool.acquireShared() == nil && !pool.isReady)
        let waiters = try (0..<3).map { _ in try waitForShared(&pool, seconds: 2) }
        #expect(pool.waitForShared(until: start + .seconds(2)) == nil, "the queue is full")
        #expect(pool.connected(id(0), now: start) == [.grant(waiters[0], id(0)), .grant(waiters[1], id(0))])
        #expect(pool.acquireShared() == nil, "nobody overtakes the queue")
        #expect(pool.releaseShared(id(0)) == .grant(waiters[2], id(0)))
    }

    @Test func `somebody who waited too long is refused, the others stay`() throws {
        var pool = makePool(shared: 1, leased: 0)
        _ = pool.start()
        let early = try waitForShared(&pool, seconds: 1)
        let late = try waitForShared(&pool, seconds: 3)
        #expect(pool.nextDeadline == start + .seconds(1))
        #expect(pool.advance(to: start + .seconds(2)) == [.refuse(early, retryAfter: .seconds(1))])
        #expect(pool.connected(id(0), now: start) == [.grant(late, id(0))])
    }

    @Test func `somebody who has gone is not granted anything`() throws {
        var pool = makePool(shared: 1, leased: 1)
        _ = pool.start()
        let gone = try waitForShared(&pool, seconds: 1)
        let stays = try waitForShared(&pool, seconds: 1)
        let cancelled = [pool.cancel(gone), pool.cancel(gone)]
        #expect(cancelled == [true, false])
        #expect(pool.connected(id(0), now: start) == [.grant(stays, id(0))])
    }

    @Test func `a lost connection is opened again after a delay that grows up to its limit`() {
        var pool = makeOpenPool(shared: 1)
        #expect(pool.acquireShared() == id(0))
        #expect(pool.ended(id(0), now: start, jitter: 1) == [])
        #expect(!pool.isReady && pool.acquireShared() == nil)
        var now = start
        var delays: [Duration] = []
        for generation in 1...9 {
            guard let next = pool.nextDeadline else { break }
            delays.append(next - now)
            #expect(pool.advance(to: next - .nanoseconds(1)) == [])
            #expect(pool.advance(to: next) == [.connect(id(0, generation))])
            now = next
            _ = pool.ended(id(0, generation), now: now, jitter: 1)
        }
        #expect(delays == [100, 100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000].map { .milliseconds($0) })
    }

    @Test func `jitter takes away at most half of a delay`() {
        var pool = makeOpenPool(shared: 1)
        _ = pool.ended(id(0), now: start, jitter: 0)
        #expect(pool.nextDeadline == start + .milliseconds(50))
    }

    @Test func `what is told of an earlier connection of a slot comes too late`() {
        var pool = makeOpenPool(shared: 1, depth: 1)
        #expect(pool.acquireShared() == id(0))
        _ = pool.ended(id(0), now: start, jitter: 0)
        #expect(pool.advance(to: start + .seconds(1)) == [.connect(id(0, 1))])
        #expect(pool.connected(id(0), now: start) == [])
        #expect(pool.ended(id(0), now: start, jitter: 0) == [])
        #expect(pool.connected(id(0, 1), now: start) == [])
        #expect(pool.acquireShared() == id(0, 1))
        #expect(pool.releaseShared(id(0)) == nil)
        #expect(pool.acquireShared() == nil, "the late release freed no place")
    }

    @Test func `a lease opens a connection of its own, keeps it, and gives it to the next`() throws {
        var pool = makeOpenPool(shared: 1, leased: 1, depth: 1)
        let (first, opening) = try waitForLease(&pool, seconds: 1)
        #expect(opening == [.connect(id(1))])
        let (second, none) = try waitForLease(&pool, seconds: 1)
        #expect(none == [], "no more connections than configured")
        #expect(pool.connected(id(1), now: start) == [.grant(first, id(1))])
        #expect(pool.acquireShared() == id(0), "a lease takes nothing from statements")
        #expect(pool.releaseLease(id(1), reusable: true, now: start) == [.grant(second, id(1))])
        #expect(pool.releaseLease(id(1), reusable: true, now: start) == [])
        #expect(pool.advance(to: start + .seconds(59)) == [])
        #expect(pool.advance(to: start + .seconds(60)) == [.close(id(1))])
    }

    @Test func `a lease in doubt is closed, and those who wait get a new connection`() throws {
        var pool = makeOpenPool(shared: 1, leased: 1)
        let (first, _) = try waitForLease(&pool, seconds: 1)
        #expect(pool.connected(id(1), now: start) == [.grant(first, id(1))])
        let (second, _) = try waitForLease(&pool, seconds: 1)
        #expect(pool.releaseLease(id(1), reusable: false, now: start) == [.close(id(1))])
        #expect(pool.ended(id(1), now: start, jitter: 0) == [.connect(id(1, 1))])
        #expect(pool.connected(id(1, 1), now: start) == [.grant(second, id(1, 1))])
    }

    @Test func `a retired connection finishes what it has and takes nothing more`() {
        var pool = makeOpenPool(shared: 2)
        #expect(pool.acquireShared() == id(0))
        #expect(pool.retire(id(0)) == nil)
        #expect(pool.acquireShared() == id(1))
        #expect(pool.acquireShared() == id(1))
        #expect(pool.acquireShared() == nil)
        #expect(pool.releaseShared(id(0)) == .close(id(0)))
        #expect(pool.retire(id(1)) == nil)
    }

    @Test func `a shutdown refuses those who wait, lets the others finish, and then says so`() throws {
        var pool = makeOpenPool(shared: 2, leased: 1, depth: 1)
        #expect(pool.acquireShared() == id(0))
        let (lease, _) = try waitForLease(&pool, seconds: 1)
        #expect(pool.connected(id(2), now: start) == [.grant(lease, id(2))])
        let (waiter, _) = try waitForLease(&pool, seconds: 1)
        #expect(pool.shutDown() == [.refuse(waiter, retryAfter: .seconds(1)), .close(id(1))])
        #expect(pool.acquireShared() == nil && pool.waitForShared(until: start) == nil)
        #expect(pool.ended(id(1), now: start, jitter: 0) == [])
        #expect(pool.releaseShared(id(0)) == .close(id(0)))
        #expect(pool.ended(id(0), now: start, jitter: 0) == [])
        #expect(pool.releaseLease(id(2), reusable: true, now: start) == [.close(id(2))])
        #expect(pool.ended(id(2), now: start, jitter: 0) == [.finished])
        #expect(pool.shutDown() == [])
    }

    @Test func `a shutdown while nothing is connected is over at once`() {
        var pool = makePool(shared: 1)
        _ = pool.start()
        _ = pool.ended(id(0), now: start, jitter: 0)
        #expect(pool.shutDown() == [.finished])
    }
}
