import Testing

@testable import Postgres

/// What the pool does when commits do not end.
@Suite struct CommitLaneTests {
    private typealias Pool = PoolStateMachine<String>
    private let start = ContinuousClock.now

    private func id(_ slot: Int, _ generation: Int = 0) -> ConnectionID { .init(slot: slot, generation: generation) }
    private func text(_ actions: [Pool.Action]) -> [String] { PoolStateMachineTests.text(actions) }
    private func makePool(commits: Int = 2) -> Pool {
        PoolStateMachineTests.makeOpenPool(reads: 1, commits: commits, leased: 1, depth: 2, queue: 20, now: start)
    }

    @Test func `a silent commit refuses all writes at once, reads go on, and one connection tries`() {
        var pool = makePool()
        #expect(pool.acquireShared(.commits) == id(1))
        for _ in 0..<3 { _ = pool.acquireShared(.commits) }
        _ = pool.waitForShared("waiting", .commits, until: start + .seconds(2))
        for _ in 0..<2 { _ = pool.releaseShared(id(2)) }
        _ = pool.releaseShared(id(2))
        #expect(text(pool.stalled(id(1), now: start)).contains("test commit 2.0"))
        #expect(pool.commitsAreClosed)
        #expect(pool.acquireShared(.commits) == nil)
        #expect(pool.waitForShared("later", .commits, until: start + .seconds(2)) == nil)
        #expect(pool.acquireShared(.reads) == id(0))
        #expect(text(pool.advance(to: start + .seconds(1))).isEmpty, "one attempt at a time")
    }

    @Test func `when one connection alone is stuck, the others take the writes`() {
        var pool = makePool()
        #expect(pool.acquireShared(.commits) == id(1))
        #expect(text(pool.stalled(id(1), now: start)) == ["test commit 2.0"])
        pool.commitTested(id(2), hasCommitted: true)
        _ = pool.releaseShared(id(2))
        #expect(!pool.commitsAreClosed)
        #expect((0..<3).map { _ in pool.acquireShared(.commits) } == [id(2), id(2), nil])
        #expect(text(pool.stalled(id(1), now: start)).isEmpty, "that is known")
        #expect(!pool.commitsAreClosed)
        pool.received(id(1))
        #expect(pool.acquireShared(.commits) == id(1))
    }

    @Test func `when no commit ends, those that wait are the attempt, and the first that ends opens the lane`() {
        var pool = makePool()
        #expect(pool.acquireShared(.commits) == id(1))
        #expect(text(pool.stalled(id(1), now: start)) == ["test commit 2.0"])
        #expect(text(pool.stalled(id(2), now: start)).isEmpty)
        #expect(text(pool.advance(to: start + .seconds(1))).isEmpty)
        pool.received(id(2))
        #expect(!pool.commitsAreClosed)
    }

    @Test func `an attempt that fails is made again`() {
        var pool = makePool()
        #expect(pool.acquireShared(.commits) == id(1))
        #expect(text(pool.stalled(id(1), now: start)) == ["test commit 2.0"])
        pool.commitTested(id(2), hasCommitted: false)
        _ = pool.releaseShared(id(2))
        #expect(pool.commitsAreClosed)
        #expect(text(pool.advance(to: start + .seconds(1))) == ["test commit 2.0"])
    }

    @Test func `a connection that was given up counts until its server's end is gone`() {
        var pool = makePool()
        #expect(pool.acquireShared(.commits) == id(1))
        _ = pool.stalled(id(1), now: start)
        #expect(text(pool.ended(id(1), now: start, jitter: 0, isGivenUp: true)).isEmpty)
        #expect(text(pool.advance(to: start + .seconds(60))).isEmpty, "it is not opened anew")
        #expect(pool.commitsAreClosed)
        #expect(text(pool.backendIsGone(1, now: start)).isEmpty)
        #expect(text(pool.advance(to: start + .seconds(61))) == ["connect 1.1"])
        #expect(text(pool.backendIsGone(1, now: start)).isEmpty)
    }

    @Test func `whoever comes back while the lane is closed tries first`() {
        var pool = makePool(commits: 1)
        #expect(pool.acquireShared(.commits) == id(1))
        _ = pool.stalled(id(1), now: start)
        _ = pool.ended(id(1), now: start, jitter: 0)
        #expect(pool.commitsAreClosed)
        #expect(text(pool.advance(to: start + .seconds(1))) == ["connect 1.1"])
        #expect(text(pool.connected(id(1, 1), now: start)) == ["test commit 1.1"])
        pool.commitTested(id(1, 1), hasCommitted: true)
        _ = pool.releaseShared(id(1, 1))
        #expect(pool.acquireShared(.commits) == id(1, 1))
    }

    @Test func `when every connection that reads was given up, one is opened to ask`() {
        var pool = PoolStateMachineTests.makeOpenPool(reads: 2, commits: 1, now: start)
        #expect(text(pool.ended(id(0), now: start, jitter: 0, isGivenUp: true)).isEmpty)
        #expect(text(pool.ended(id(1), now: start, jitter: 0, isGivenUp: true)) == ["connect 0.1"])
    }

    @Test func `a shutdown does not wait for those that were given up`() {
        var pool = PoolStateMachineTests.makeOpenPool(reads: 0, commits: 1, leased: 0, now: start)
        _ = pool.acquireShared(.commits)
        _ = pool.stalled(id(0), now: start)
        #expect(text(pool.shutDown()).isEmpty)
        #expect(text(pool.ended(id(0), now: start, jitter: 0, isGivenUp: true)) == ["finished"])
    }
}
