import SalternTesting
import Testing

@testable import Postgres

/// Who goes out with whom.
@Suite struct PoolGroupTests {
    private typealias Pool = PoolStateMachine<Int>
    private let start = ContinuousClock.now

    private func makePool(_ connections: Int = 1) -> Pool {
        var pool = Pool(
            settings: .init(
                readConnections: 1, commitConnections: connections, leasedConnections: 1, pipelineDepth: 4,
                queueLimit: 200, backOff: .milliseconds(100)...(.seconds(5)), leasedIdleTimeout: .seconds(60)))
        for case .connect(let id) in pool.start() { _ = pool.connected(id, now: start) }
        return pool
    }

    private func id(_ slot: Int) -> ConnectionID { .init(slot: slot, generation: 0) }

    private func wait(_ pool: inout Pool, _ request: Int, key: Int? = 0, bytes: Int = 100) {
        _ = pool.waitForGroup(request, key, bytes: bytes, until: start + .seconds(2))
    }

    private func groups(_ actions: [Pool.Action]) -> [[Int]] {
        actions.compactMap {
            switch $0 {
            case .grant(let request, _): [request]
            case .grantTogether(let requests, _): requests
            default: nil
            }
        }
    }

    @Test func `who comes to an idle connection goes alone and at once; the others go together when it is done`() {
        var pool = makePool()
        #expect(pool.acquireAlone() == id(1))
        #expect(pool.acquireAlone() == nil)
        for request in 1...20 { wait(&pool, request) }
        #expect(groups(pool.releaseShared(id(1))) == [Array(1...16)])
        for _ in 0..<15 { #expect(groups(pool.releaseShared(id(1))).isEmpty, "nothing goes behind a group") }
        #expect(pool.acquireShared(.commits) == nil, "nor does a request that goes alone")
        #expect(groups(pool.releaseShared(id(1))) == [Array(17...20)])
    }

    @Test func `on a cluster nobody shares a transaction`() {
        var pool = makePool()
        pool.isDistributed = true
        _ = pool.acquireAlone()
        for request in 1...3 { wait(&pool, request) }
        for request in 1...3 { #expect(groups(pool.releaseShared(id(1))) == [[request]]) }
    }

    @Test func `a group has 256 KiB at most, and who is to be alone is alone`() {
        var pool = makePool()
        _ = pool.acquireAlone()
        for (request, bytes) in [(1, 200_000), (2, 62_144), (3, 1), (4, .max), (5, .max), (6, 262_144), (7, 1)] {
            wait(&pool, request, bytes: bytes)
        }
        var sent = groups(pool.releaseShared(id(1)))
        for expected in [[1, 2], [3], [4], [5], [6], [7]] {
            #expect(sent == [expected])
            sent = []
            for _ in expected { sent += groups(pool.releaseShared(id(1))) }
        }
    }

    @Test func `who has waited longest comes first, in a group or alone`() {
        var pool = makePool()
        _ = pool.acquireAlone()
        wait(&pool, 1)
        _ = pool.waitForShared(2, .commits, until: start + .seconds(2))
        wait(&pool, 3)
        wait(&pool, 4)
        _ = pool.waitForShared(5, .commits, until: start + .seconds(2))
        // Those that wait for the group that goes out join it, wherever they stand.
        #expect(groups(pool.releaseShared(id(1))) == [[1, 3, 4]])
        for _ in 0..<2 { _ = pool.releaseShared(id(1)) }
        #expect(groups(pool.releaseShared(id(1))) == [[2], [5]])
    }

    @Test func `who goes alone and came first is not overtaken by a group`() {
        var pool = makePool()
        _ = pool.acquireAlone()
        _ = pool.waitForShared(1, .commits, until: start + .seconds(2))
        for request in 2...3 { wait(&pool, request) }
        #expect(groups(pool.releaseShared(id(1))) == [[1]])
        #expect(groups(pool.releaseShared(id(1))) == [[2, 3]])
    }

    @Test func `those who go alone and keep coming do not keep a group waiting`() {
        var pool = makePool(2)
        // Each connection has somebody who goes alone at any time; whoever has gone comes again at once.
        var underWay = (0..<4).compactMap { _ in pool.acquireShared(.commits) }
        wait(&pool, 1, key: nil)
        wait(&pool, 2)
        var granted: [[Int]] = []
        for turn in 0..<20 where granted.isEmpty {
            if let next = pool.acquireShared(.commits) {
                underWay.append(next)
            } else {
                _ = pool.waitForShared(100 + turn, .commits, until: start + .seconds(2))
            }
            granted = groups(pool.releaseShared(underWay.removeFirst()))
        }
        #expect(granted == [[1, 2]])
    }

    @Test func `who goes alone waits for no group of another connection`() {
        var pool = makePool(2)
        #expect(pool.acquireAlone() == id(1) && pool.acquireAlone() == id(2))
        wait(&pool, 1, key: 0)
        #expect(pool.acquireShared(.commits) == id(2))
        #expect(pool.acquireShared(.commits) == id(2))
    }

    @Test func `who comes within the same turn does not overtake who is gathered`() {
        var pool = makePool()
        wait(&pool, 1, key: nil)
        #expect(pool.acquireAlone() == nil)
        #expect(groups(pool.serveIdleCommits()) == [[1]])
    }

    @Test func `who waits for a connection that is lost goes with another one`() {
        var pool = makePool(2)
        #expect(pool.acquireAlone() == id(1) && pool.acquireAlone() == id(2))
        for request in 1...2 { wait(&pool, request, key: 1) }
        _ = pool.ended(id(2), now: start, jitter: 0)
        #expect(groups(pool.releaseShared(id(1))) == [[1, 2]])
    }

    /// Requests of some keys, connections that come and go, in random order.
    @Test(arguments: PropertyTests.seeds)
    func `in whatever order things happen, nobody is forgotten and nothing goes behind a group`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        let losesConnections = seed % 2 == 0
        var pool = makePool(3)
        var underWay: [Int: [Int]] = [:]
        var lastOfKey: [Int: Int] = [:]
        var keys: [Int: Int] = [:]
        var waiting: Set<Int> = []
        func take(_ actions: [Pool.Action]) {
            for action in actions {
                var granted: ([Int], ConnectionID)?
                if case .grant(let request, let id) = action { granted = ([request], id) }
                if case .grantTogether(let requests, let id) = action { granted = (requests, id) }
                guard let (requests, id) = granted else { continue }
                #expect(pool.slots[id.slot].generation == id.generation)
                let isAlone = requests.allSatisfy { keys[$0] == nil }
                #expect(isAlone || underWay[id.slot, default: []].isEmpty, "a group waits until it is alone")
                underWay[id.slot, default: []] += requests
                for request in requests {
                    #expect(waiting.remove(request) != nil)
                    guard let key = keys[request] else { continue }
                    #expect(losesConnections || lastOfKey[key, default: -1] < request, "of one key in order")
                    lastOfKey[key] = request
                }
            }
        }
        for request in 0..<400 {
            switch Int.random(in: 0..<10, using: &random) {
            case 0...4:
                // Some hold a key together with others, and the rest are alone with theirs.
                let key = Int.random(in: 0..<9, using: &random)
                let isTogether = random.chance(0.5)
                keys[request] = isTogether ? key : 100 + request
                if !isTogether, let id = pool.acquireAlone() {
                    #expect(underWay[id.slot, default: []].isEmpty)
                    underWay[id.slot] = [request]
                } else {
                    waiting.insert(request)
                    let bytes = Int.random(in: 1...60_000, using: &random)
                    wait(&pool, request, key: isTogether ? key : nil, bytes: bytes)
                    take(pool.serveIdleCommits())
                    let isAnyIdle = pool.slots[1...3].contains {
                        if case .ready(load: 0) = $0.phase { true } else { false }
                    }
                    #expect(
                        isTogether || !isAnyIdle || !waiting.contains(request), "it waits though a connection is idle")
                }
            case 5:
                if let id = pool.acquireShared(.commits) {
                    underWay[id.slot, default: []].append(request)
                } else {
                    waiting.insert(request)
                    _ = pool.waitForShared(request, .commits, until: start + .seconds(2))
                }
            case 6...8:
                guard let slot = underWay.keys.randomElement(using: &random), !underWay[slot, default: []].isEmpty
                else { continue }
                underWay[slot]?.removeFirst()
                take(pool.releaseShared(.init(slot: slot, generation: pool.slots[slot].generation)))
            default:
                guard losesConnections else { continue }
                let slot = Int.random(in: 1...3, using: &random)
                let id = ConnectionID(slot: slot, generation: pool.slots[slot].generation)
                underWay[slot] = []
                take(pool.ended(id, now: start, jitter: 0))
                for case .connect(let id) in pool.advance(to: start + .milliseconds(500)) {
                    if random.chance(0.9) { take(pool.connected(id, now: start)) }
                }
            }
        }
        _ = pool.advance(to: start + .seconds(1))
        for slot in 1...3 {
            take(pool.connected(.init(slot: slot, generation: pool.slots[slot].generation), now: start))
        }
        while let slot = underWay.first(where: { !$0.value.isEmpty })?.key {
            underWay[slot]?.removeFirst()
            take(pool.releaseShared(.init(slot: slot, generation: pool.slots[slot].generation)))
        }
        #expect(waiting.isEmpty && pool.waiterCount == 0)
    }

    @Test func `those who hold a key together go to one connection, all others to whichever is free first`() {
        var pool = makePool(2)
        #expect(pool.acquireAlone() == id(1) && pool.acquireAlone() == id(2))
        for request in [1, 3, 5] { wait(&pool, request, key: 1) }
        for request in [2, 4] { wait(&pool, request, key: nil) }
        #expect(groups(pool.releaseShared(id(1))) == [[2, 4]])
        #expect(groups(pool.releaseShared(id(2))) == [[1, 3, 5]])
    }
}
