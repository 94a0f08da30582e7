import Testing

@testable import Postgres

@Suite struct PoolSlotsTests {
    private let start = ContinuousClock.now

    private func makeSlots(reads: Int = 2, commits: Int = 2, leases: Int = 2) -> PoolSlots {
        PoolSlots(
            reads: reads, commits: commits, leases: leases, backOff: .milliseconds(100)...(.seconds(5)),
            idleTimeout: .seconds(60))
    }

    /// Slots with a usable connection in each.
    private func makeOpenSlots() -> PoolSlots {
        var slots = makeSlots()
        for slot in slots.indices {
            _ = slots.connect(slot)
            slots.opened(slot, isUsable: true, now: start)
        }
        return slots
    }

    @Test func `the slots of a lane are neighbours, and the last slot is the probe's`() {
        let slots = makeSlots(reads: 2, commits: 3, leases: 1)
        #expect(slots.map(\.lane) == [.reads, .reads, .commits, .commits, .commits, .leases, .probe])
        for lane in [PoolLane.reads, .commits, .leases, .probe] {
            #expect(slots[slots.range(lane)].allSatisfy { $0.lane == lane })
        }
        #expect(slots.shared == 0..<5 && slots.probe == 6)
        #expect(makeSlots(reads: 0, commits: 1, leases: 0).map(\.lane) == [.commits, .probe])
    }

    @Test func `events of an earlier connection are recognised`() {
        var slots = makeSlots()
        let first = slots.connect(0)
        #expect(slots.isCurrent(first))
        let failed = slots.ended(0)
        #expect(failed, "it was not opened")
        #expect(!slots.isCurrent(first) && slots.id(0) == ConnectionID(slot: 0, generation: 1))
        _ = slots.connect(0)
        slots.opened(0, isUsable: true, now: start)
        let failedAgain = slots.ended(0)
        #expect(!failedAgain)
    }

    @Test func `the least loaded usable connection is found, below the limit`() {
        var slots = makeOpenSlots()
        #expect(slots.leastLoaded(.reads, below: 2) { _ in true } == 0)
        #expect(slots.reserve(0) == slots.id(0))
        #expect(slots.leastLoaded(.reads, below: 2) { _ in true } == 1)
        #expect(slots.leastLoaded(.reads, below: 2) { $0 == 0 } == 0)
        #expect(slots.leastLoaded(.reads, below: 1) { $0 == 0 } == nil)
        _ = slots.reserve(0)
        _ = slots.reserve(1, count: 2)
        #expect(slots.leastLoaded(.reads, below: 2) { _ in true } == nil)
        #expect(slots.isReady(.reads), "a full connection is ready")
        #expect(slots.release(1) == .ready(load: 1) && !slots.isUnused(1))
        #expect(slots.release(1) == .ready(load: 0) && slots.isUnused(1))
    }

    @Test func `a retired connection is closed after its last request`() {
        var slots = makeOpenSlots()
        _ = slots.reserve(0, count: 2)
        let isUnused = [slots.retire(0), slots.retire(1), slots.retire(4), slots.retire(0)]
        #expect(isUnused == [false, true, true, false])
        #expect(!slots.isReady(.reads) && slots.isReady(.commits))
        #expect(slots.release(0) == .retiring(load: 1))
        #expect(slots.release(0) == .retiring(load: 0))
    }

    @Test func `an unusable connection gets no requests`() {
        var slots = makeSlots(reads: 1)
        _ = slots.connect(0)
        slots.opened(0, isUsable: false, now: start)
        #expect(!slots.isReady(.reads) && slots.leastLoaded(.reads, below: 9) { _ in true } == nil)
    }

    @Test(arguments: [
        (jitter: 0.0, milliseconds: [50, 100, 200, 400, 800, 1_600, 2_500, 2_500]),
        (jitter: 1.0, milliseconds: [100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000]),
    ])
    func `the delay doubles after each failure, up to its limit`(jitter: Double, expected: [Int]) {
        var slots = makeSlots()
        for delay in expected {
            _ = slots.connect(0)
            _ = slots.ended(0)
            slots.backOff(0, now: start, jitter: jitter)
            #expect(slots[0].phase == .waitingToConnect(until: start + .milliseconds(delay)))
            #expect(slots.nextDeadline == start + .milliseconds(delay) && slots.latestAttempt == slots.nextDeadline)
        }
        _ = slots.connect(0)
        slots.opened(0, isUsable: true, now: start)
        _ = slots.ended(0)
        slots.backOff(0, now: start, jitter: jitter)
        #expect(slots.nextDeadline == start + .milliseconds(expected[0]), "an open connection resets the delay")
    }

    @Test func `after the delay only shared connections are opened`() {
        var slots = makeSlots()
        for slot in slots.indices { slots.wait(slot, until: start + .seconds(1)) }
        #expect(slots.openingLeaseCount == 2)
        for slot in slots.indices { #expect(slots.advance(slot, to: start) == nil) }
        for slot in slots.indices {
            let step = slots.advance(slot, to: start + .seconds(1))
            #expect(step == (slots.shared.contains(slot) ? .connect(slots.id(slot)) : nil))
        }
        #expect(slots.openingLeaseCount == 0 && slots.nextDeadline == nil)
    }

    @Test func `an immediate retry ends all delays but the probe's`() {
        var slots = makeSlots(reads: 1, commits: 1, leases: 1)
        for slot in slots.indices { slots.wait(slot, until: start + .seconds(1)) }
        #expect(slots.retryImmediately() == [slots.id(0), slots.id(1)])
        let waiting = PoolSlots.Phase.waitingToConnect(until: start + .seconds(1))
        #expect(slots.map(\.phase) == [.connecting, .connecting, .absent, waiting])
    }

    @Test func `an idle dedicated connection is closed in time, and a closing one is not long`() {
        var slots = makeOpenSlots()
        #expect(slots.lease(4, isLong: true) == slots.id(4))
        #expect(slots.longLeaseCount == 1)
        slots.close(4)
        #expect(slots.longLeaseCount == 0)
        _ = slots.lease(5, isLong: false)
        slots.keep(5, now: start + .seconds(1))
        #expect(slots.nextDeadline == start + .seconds(61))
        #expect(slots.advance(5, to: start + .seconds(60)) == nil)
        #expect(slots.advance(5, to: start + .seconds(61)) == .close(slots.id(5)))
        #expect(slots.advance(5, to: start + .seconds(61)) == nil, "it is closed once")
    }

    @Test func `a slot that was given up is occupied until it is freed`() {
        var slots = makeOpenSlots()
        _ = slots.ended(0)
        slots.giveUp(0)
        let isFreed = [slots.free(0), slots.free(0), slots.free(1)]
        #expect(isFreed == [true, false, false])
        #expect(slots[0].phase == .absent)
    }

    @Test func `a shutdown closes unused connections and ends delays`() {
        var slots = makeOpenSlots()
        _ = slots.reserve(0)
        _ = slots.ended(1)
        slots.backOff(1, now: start, jitter: 0)
        _ = slots.lease(4, isLong: false)
        #expect(slots.shutDown().map(\.slot) == [2, 3, 5, 6])
        #expect(!slots.areAbsent && slots.nextDeadline == start + .seconds(60))
        for slot in slots.indices { _ = slots.ended(slot) }
        #expect(slots.areAbsent)
    }
}
