import SalternTesting
import Testing

@testable import Postgres

/// Connections that were good until another epoch began.
@Suite struct PoolEpochTests {
    private let start = ContinuousClock.now
    private func text(_ actions: [PoolStateMachine<String>.Action]) -> [String] { PoolStateMachineTests.text(actions) }
    private func id(_ slot: Int, _ generation: Int = 0) -> ConnectionID { .init(slot: slot, generation: generation) }

    @Test func `idle connections are closed at once, busy ones after what is under way, and nobody gets them`() {
        var pool = PoolStateMachineTests.makeOpenPool(reads: 2, commits: 1, leased: 2, now: start)
        #expect(pool.acquireShared(.reads) == id(0) && pool.acquireAlone() == id(2))
        _ = pool.waitForLease("idle", until: start + .seconds(1))
        #expect(text(pool.connected(id(3), now: start)) == ["idle gets 3.0"])
        _ = pool.waitForLease("holder", until: start + .seconds(1))
        #expect(text(pool.connected(id(4), now: start)) == ["holder gets 4.0"])
        #expect(text(pool.releaseLease(id(3), reusable: true, now: start)).isEmpty)

        #expect(text(pool.begin(1)) == ["close 1.0", "close 3.0"])
        #expect(pool.begin(1).isEmpty && pool.begin(0).isEmpty, "it has begun")
        #expect(!pool.isReady && pool.acquireShared(.reads) == nil && pool.acquireAlone() == nil)
        #expect(text(pool.releaseShared(id(0))) == ["close 0.0"])
        #expect(text(pool.releaseShared(id(2))) == ["close 2.0"])
        #expect(text(pool.releaseLease(id(4), reusable: true, now: start)) == ["close 4.0"])
    }

    @Test func `a connection that was looked at in the epoch before is opened once more`() {
        var pool = PoolStateMachineTests.makePool(reads: 1, commits: 0, leased: 1)
        _ = pool.start()
        _ = pool.begin(1)
        #expect(text(pool.connected(id(0), of: 0, now: start)) == ["close 0.0"])
        _ = pool.ended(id(0), now: start, jitter: 1)
        #expect(text(pool.advance(to: start + .milliseconds(100))) == ["connect 0.1"], "as after no failure")
        #expect(text(pool.connected(id(0, 1), of: 1, now: start)).isEmpty && pool.isReady)
        _ = pool.waitForLease("a", until: start + .seconds(1))
        #expect(text(pool.connected(id(1), of: 0, now: start)) == ["close 1.0"])
        #expect(text(pool.ended(id(1), now: start, jitter: 1)) == ["connect 1.1"])
        #expect(text(pool.connected(id(1, 1), of: 2, now: start)) == ["a gets 1.1"], "the pool hears of it later")
        #expect(text(pool.begin(2)) == ["close 0.1"])
        #expect(text(pool.releaseLease(id(1, 1), reusable: true, now: start)).isEmpty, "it is of this epoch")
    }

    @Test(arguments: PropertyTests.seeds)
    func `whatever happens, nobody gets a connection of an earlier epoch, and all of them are closed`(seed: UInt64) {
        var model = EpochModel(seed: seed)
        for _ in 0..<2_000 { model.step() }
        #expect(model.mistakes == [])
        #expect(model.grants > 100 && model.pool.epoch > 5, "\(model.grants) \(model.pool.epoch)")
        model.finish()
        #expect(model.mistakes == [])
    }
}

/// A pool, and what whoever carries its actions out knows of its connections.
private struct EpochModel {
    private typealias Pool = PoolStateMachine<Int>

    /// An open connection.
    private struct Open {
        let epoch: Int
        var load = 0
        var isLeased = false
    }

    private(set) var pool: PoolStateMachine<Int>
    private(set) var mistakes: [String] = []
    private(set) var grants = 0
    private var dice: SeededGenerator
    private var now = ContinuousClock.now
    private var opening: Set<ConnectionID> = []
    private var open: [ConnectionID: Open] = [:]
    private var next = 0

    init(seed: UInt64) {
        dice = SeededGenerator(seed: seed)
        pool = Pool(
            settings: .init(
                readConnections: 2, commitConnections: 2, leasedConnections: 2, pipelineDepth: 3, queueLimit: 50,
                backOff: .milliseconds(100)...(.seconds(1)), leasedIdleTimeout: .seconds(60)))
        perform(pool.start())
    }

    private mutating func roll(_ bound: Int) -> Int { .random(in: 0..<bound, using: &dice) }

    private mutating func pick(_ ids: some Collection<ConnectionID>) -> ConnectionID? {
        ids.sorted { ($0.slot, $0.generation) < ($1.slot, $1.generation) }.randomElement(using: &dice)
    }

    private func isOutdated(_ id: ConnectionID) -> Bool { open[id].map { $0.epoch < pool.epoch } ?? false }

    private mutating func grant(_ id: ConnectionID, count: Int = 1) {
        grants += count
        if isOutdated(id) { mistakes.append("\(id) of \(open[id]?.epoch ?? -1) granted in \(pool.epoch)") }
        open[id]?.load += count
        open[id]?.isLeased = pool.slots[id.slot].lane == .leases
    }

    private mutating func perform(_ actions: [PoolStateMachine<Int>.Action]) {
        for action in actions {
            switch action {
            case .connect(let id): opening.insert(id)
            case .close(let id):
                if open[id]?.load ?? 0 > 0 && !(open[id]?.isLeased ?? false) { mistakes.append("\(id) closed in use") }
                end(id)
            case .grant(_, let id), .testCommit(let id): grant(id)
            case .grantTogether(let members, let id): grant(id, count: members.count)
            case .refuse, .finished: break
            }
        }
    }

    private mutating func end(_ id: ConnectionID) {
        opening.remove(id)
        open[id] = nil
        perform(pool.ended(id, now: now, jitter: 0))
    }

    private mutating func release(_ id: ConnectionID) {
        open[id]?.load -= 1
        if open[id]?.isLeased ?? false {
            open[id]?.isLeased = false
            perform(pool.releaseLease(id, reusable: roll(4) > 0, now: now))
        } else {
            perform(pool.releaseShared(id))
        }
    }

    mutating func step() {
        let deadline = now + .seconds(2)
        next += 1
        switch roll(20) {
        case 0..<3: if let id = pool.acquireShared(.reads) { grant(id) }
        case 3: if let id = pool.acquireAlone() { grant(id) }
        case 4: _ = pool.waitForShared(next, .reads, until: deadline)
        case 5:
            _ = pool.waitForGroup(next, roll(2) == 0 ? nil : roll(5), bytes: 10, until: deadline)
            perform(pool.serveIdleCommits())
        case 6:
            if let (_, actions) = pool.waitForLease(next, isLong: roll(3) == 0, until: deadline) { perform(actions) }
        case 7..<12:
            if let id = pick(opening) {
                opening.remove(id)
                // What was found may be of the epoch before, and of one that the pool has yet to hear of.
                let epoch = max(0, pool.epoch + roll(6) / 2 - 1)
                open[id] = Open(epoch: epoch)
                perform(pool.connected(id, of: epoch, now: now))
            }
        case 12..<17: if let id = pick(open.filter { $0.value.load > 0 }.keys) { release(id) }
        case 17: if let id = pick(open.keys) { end(id) }
        case 18:
            if roll(3) == 0 { perform(pool.begin(pool.epoch + 1)) }
        default:
            now += .milliseconds(roll(200))
            perform(pool.advance(to: now))
        }
        let idle = open.filter { $0.value.load == 0 && $0.value.epoch < pool.epoch }
        if !idle.isEmpty { mistakes.append("open and of no use: \(idle.keys)") }
    }

    /// All that is under way ends.
    mutating func finish() {
        perform(pool.begin(pool.epoch + 1))
        while let id = open.first(where: { $0.value.load > 0 && isOutdated($0.key) })?.key { release(id) }
        if let left = open.keys.first(where: { isOutdated($0) }) { mistakes.append("left: \(left)") }
    }
}
