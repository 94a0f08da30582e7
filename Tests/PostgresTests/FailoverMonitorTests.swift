import SalternTesting
import Testing

@testable import Postgres

/// Decisions of the failover's pure machine.
@Suite struct FailoverMonitorTests {
    private typealias Peer = FailoverMonitor.Peer

    private func id(_ slot: Int, _ generation: Int = 0) -> ConnectionID { .init(slot: slot, generation: generation) }
    private func backend(_ pid: Int32, at second: Int64 = 1) -> Backend {
        Backend(pid: pid, startedAt: Timestamp(microsecondsSince2000: second * 1_000_000))
    }

    @Test func `a new epoch retires earlier connections and openings, and reports a takeover only after a silence`() {
        var monitor = FailoverMonitor(slotCount: 4)
        var peers = [
            Peer(id: id(0), epoch: 0), Peer(id: id(1), isOpen: false), Peer(id: id(2), epoch: 1),
            Peer(id: id(3), isOpen: false, isSilent: true),
        ]
        let steps: [FailoverMonitor.Action] = [
            .begin(epoch: 1), .supersede(id(0)), .supersede(id(1)), .supersede(id(3)), .retryImmediately,
        ]
        #expect(monitor.follow(1, peers: peers) == steps, "a slow opening is no takeover")
        peers[0].isSilent = true
        #expect(monitor.follow(1, peers: peers) == [.report(.takenOver)] + steps)
        for slot in 0..<2 { monitor.opened(slot, in: slot) }
        #expect([monitor.begin(1), monitor.begin(1), monitor.begin(0)] == [true, false, false])
        #expect([0, 1].map { monitor.isOutdated($0) } == [true, false])
        #expect(monitor.follow(1, peers: peers).isEmpty, "it has begun")
        monitor.opened(0, in: nil)
        #expect(!monitor.isOutdated(0))
    }

    @Test func `a probe of a primary ends connections to other servers only if one of them is silent`() {
        var monitor = FailoverMonitor(slotCount: 3)
        let (former, new) = (Timestamp(microsecondsSince2000: 1), Timestamp(microsecondsSince2000: 2))
        var peers = [
            Peer(id: id(0), serverStartedAt: former), Peer(id: id(1), isSilent: true, serverStartedAt: new),
            Peer(id: id(2), isOpen: false, hasChoice: true),
        ]
        #expect(
            monitor.reachedPrimary(7, startedAt: new, peers: peers) == [.prefer(serverIndex: 7), .retryImmediately])
        peers[2].isSilent = true
        #expect(
            monitor.reachedPrimary(7, startedAt: new, peers: peers) == [
                .prefer(serverIndex: 7), .report(.takenOver), .supersede(id(0)), .supersede(id(2)), .retryImmediately,
            ])
        peers[2].hasChoice = false
        #expect(
            monitor.reachedPrimary(7, startedAt: new, peers: peers) == [.prefer(serverIndex: 7), .retryImmediately],
            "with one server, a long opening is slow")
    }

    @Test func `each probe goes one server further, until the silence ends or a primary is found`() {
        var monitor = FailoverMonitor(slotCount: 1)
        func isNeeded(_ isAnySilent: Bool) -> Bool { monitor.needsProbe(isAnySilent: isAnySilent) }
        func next() -> Int { monitor.nextProbeTarget(preferred: 5).serverIndex }
        #expect(isNeeded(true))
        #expect([next(), next(), next()] == [6, 7, 8])
        #expect(isNeeded(true))
        #expect(next() == 9)
        #expect(!isNeeded(false))
        #expect(next() == 6)
        _ = monitor.reachedPrimary(6, startedAt: Timestamp(microsecondsSince2000: 1), peers: [])
        #expect(next() == 6)
    }

    @Test func `a stall of another client counts unless it is of an earlier epoch`() {
        var monitor = FailoverMonitor(slotCount: 1)
        _ = monitor.begin(2)
        #expect([1, 2, 3].map { monitor.followsStall(of: $0) } == [false, true, true])
        monitor.closeCommits()
        #expect(!monitor.followsStall(of: 2), "writes are rejected already")
    }

    @Test func `a process counts as gone once, and only if a check of it finds nothing`() {
        var monitor = FailoverMonitor(slotCount: 3)
        let none = monitor.beginCheck()
        #expect(none.isEmpty)
        for slot in 0..<3 { monitor.gaveUp(slot, backend(Int32(slot))) }
        let asked = monitor.beginCheck()
        #expect(asked == [0: backend(0), 1: backend(1), 2: backend(2)])
        let second = monitor.beginCheck()
        #expect(second.isEmpty, "one check at a time")
        // Meanwhile, slot 1 is opened and given up again.
        monitor.opening(1)
        monitor.gaveUp(1, backend(1, at: 2))
        let gone = monitor.endCheck(of: asked, existing: [2])
        #expect(gone == [0])
        #expect(monitor.givenUp == [1: backend(1, at: 2), 2: backend(2)])
        let again = monitor.beginCheck()
        let failed = monitor.endCheck(of: again, existing: nil)
        #expect(failed.isEmpty && monitor.givenUp.count == 2, "the check itself has failed")
    }

    @Test func `both indices of one server are the same, and all differ while the number is unknown`() {
        #expect(HostList.isSame(5, 2, among: 3) && !HostList.isSame(5, 3, among: 3))
        #expect(HostList.isSame(5, 5, among: 0) && !HostList.isSame(5, 2, among: 0))
    }

    @Test(arguments: PropertyTests.seeds)
    func `after any events, writes are rejected exactly from a stall to the next commit, with one test at a time`(
        seed: UInt64
    ) {
        var model = FailoverModel(seed: seed)
        for _ in 0..<2_000 { model.step() }
        #expect(model.mistakes == [])
        #expect(model.stalls > 50 && model.tests > 20 && model.gone > 5, "\(model)")
    }
}

/// A monitor with random events, and what they must have led to, in the simplest words.
private struct FailoverModel {
    private static let slots = 4

    private var monitor = FailoverMonitor(slotCount: FailoverModel.slots)
    private(set) var mistakes: [String] = []
    private(set) var stalls = 0
    private(set) var tests = 0
    private(set) var gone = 0
    private var dice: SeededGenerator

    private var epoch = 0
    private var epochs = Array(repeating: 0, count: FailoverModel.slots)
    private var generations = Array(repeating: 0, count: FailoverModel.slots)
    private var stalled: Set<Int> = []
    private var isClosed = false
    private var testing: ConnectionID?
    private var processes: [Int: Backend] = [:]
    private var asked: [Int: Backend]?
    private var lastProcess: Int32 = 0
    private var silentProbes = 0

    init(seed: UInt64) { dice = SeededGenerator(seed: seed) }

    private mutating func roll(_ bound: Int) -> Int { .random(in: 0..<bound, using: &dice) }

    mutating func step() {
        let slot = roll(Self.slots)
        let id = ConnectionID(slot: slot, generation: generations[slot])
        switch roll(10) {
        case 0:
            let later = epoch + roll(3) - 1
            if monitor.begin(later) != (later > epoch) { mistakes.append("epoch \(later) in \(epoch)") }
            epoch = max(epoch, later)
        case 1:
            let found = roll(2) == 0 ? nil : max(0, epoch - roll(2))
            monitor.opened(slot, in: found)
            epochs[slot] = found ?? epoch
        case 2, 3:
            if monitor.stalled(id) == stalled.contains(slot) { mistakes.append("stall of \(slot)") }
            stalled.insert(slot)
            if testing == id { testing = nil }
            monitor.closeCommits()
            isClosed = true
            stalls += 1
        case 4:
            let isCommit = roll(2) == 0
            monitor.received(id, isCommit: isCommit)
            if stalled.remove(slot) != nil, isCommit { isClosed = false }
        case 5:
            monitor.ended(id)
            generations[slot] += 1
            stalled.remove(slot)
            if testing == id { testing = nil }
        case 6:
            if monitor.needsTest {
                // The pool tests on an idle connection.
                if stalled.contains(slot) { break }
                monitor.beginTest(id)
                testing = id
                tests += 1
            } else if let test = testing {
                let hasCommitted = roll(2) == 0
                monitor.tested(test, hasCommitted: hasCommitted)
                testing = nil
                if hasCommitted { isClosed = false }
            }
        case 7: stepProcesses(slot)
        case 8: checkProcesses()
        default: probe()
        }
        compare()
    }

    private mutating func stepProcesses(_ slot: Int) {
        if roll(3) == 0 {
            monitor.opening(slot)
            processes[slot] = nil
        } else {
            lastProcess += 1
            let process = Backend(pid: lastProcess, startedAt: nil)
            monitor.gaveUp(slot, process)
            processes[slot] = process
        }
    }

    private mutating func checkProcesses() {
        guard let asked else {
            let begun = monitor.beginCheck()
            if begun != processes { mistakes.append("asks for \(begun), not for \(processes)") }
            self.asked = begun.isEmpty ? nil : begun
            return
        }
        if !monitor.beginCheck().isEmpty { mistakes.append("two checks at a time") }
        let isAnswered = roll(4) > 0
        let existing = asked.values.map(\.pid).filter { _ in .random(using: &dice) }
        let found = monitor.endCheck(of: asked, existing: isAnswered ? existing : nil)
        var expected: Set<Int> = []
        for (slot, process) in asked where isAnswered && processes[slot] == process {
            if !existing.contains(process.pid) { expected.insert(slot) }
        }
        if Set(found) != expected || found.count != expected.count { mistakes.append("\(found) gone") }
        for slot in expected { processes[slot] = nil }
        gone += expected.count
        self.asked = nil
    }

    private mutating func probe() {
        let isAnySilent = roll(5) > 0
        if monitor.needsProbe(isAnySilent: isAnySilent) != isAnySilent { mistakes.append("probe") }
        if !isAnySilent { silentProbes = 0 }
        silentProbes += 1
        if monitor.nextProbeTarget(preferred: 3).serverIndex != 3 + silentProbes { mistakes.append("probe's target") }
    }

    private mutating func compare() {
        if monitor.commitsAreClosed != isClosed { mistakes.append("closed: \(monitor.commitsAreClosed)") }
        if monitor.needsTest != (isClosed && testing == nil) { mistakes.append("test: \(monitor.needsTest)") }
        if monitor.epoch != epoch || monitor.givenUp != processes { mistakes.append("epoch or processes") }
        for slot in 0..<Self.slots {
            if monitor.isStalled(slot) != stalled.contains(slot) { mistakes.append("stalled: \(slot)") }
            if monitor.isOutdated(slot) != (epochs[slot] < epoch) { mistakes.append("outdated: \(slot)") }
        }
    }
}
