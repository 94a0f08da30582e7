/// The use of a pool's connections.
enum PoolLane: Int {
    case reads, commits, leases
    /// A connection that probes for a takeover; see ``PoolStateMachine/probeOtherHost()``.
    case probe
}

/// Identifies one connection of a pool: its slot, and the generation of the slot's connections.
struct ConnectionID: Hashable {
    var slot: Int
    var generation: Int
}

/// The slots of a pool's connections, with the phase of each.
///
/// A slot has one lane and at most one connection at a time. The slots of a lane are neighbours, and the last slot is
/// for probes. It decides when to connect again after a failure, and when a dedicated connection was idle for too long.
///
/// Pure: ``PoolStateMachine`` passes the time in, and decides which request gets a connection.
struct PoolSlots: RandomAccessCollection {
    typealias Instant = ContinuousClock.Instant

    enum Phase: Equatable {
        case absent
        case waitingToConnect(until: Instant)
        case connecting
        /// Shared, with `load` pending requests.
        case ready(load: Int)
        /// Shared. Takes no more requests and is closed after the last one.
        case retiring(load: Int)
        case leased(isLong: Bool)
        case idle(since: Instant)
        /// Given up while its server process may still be working. The slot stays occupied until that has ended.
        case givenUp
    }

    struct Slot {
        let lane: PoolLane
        fileprivate(set) var phase = Phase.absent
        fileprivate(set) var generation = 0
        /// The number of consecutive failures to connect.
        fileprivate var failures = 0
    }

    /// A step that is due for a connection.
    enum Step: Equatable {
        case connect(ConnectionID)
        case close(ConnectionID)
    }

    private var slots: [Slot] = []
    private let firstCommit: Int
    private let firstLease: Int
    private let backOff: ClosedRange<Duration>
    private let idleTimeout: Duration

    /// - Parameters:
    ///   - backOff: The shortest and the longest delay after a failure to connect.
    ///   - idleTimeout: The time after which an unused dedicated connection is closed.
    init(reads: Int, commits: Int, leases: Int, backOff: ClosedRange<Duration>, idleTimeout: Duration) {
        firstCommit = reads
        firstLease = reads + commits
        self.backOff = backOff
        self.idleTimeout = idleTimeout
        slots += Array(repeating: Slot(lane: .reads), count: reads)
        slots += Array(repeating: Slot(lane: .commits), count: commits)
        slots += Array(repeating: Slot(lane: .leases), count: leases)
        slots.append(Slot(lane: .probe))
    }

    var startIndex: Int { 0 }
    var endIndex: Int { slots.count }
    subscript(slot: Int) -> Slot { slots[slot] }

    func range(_ lane: PoolLane) -> Range<Int> {
        switch lane {
        case .reads: 0..<firstCommit
        case .commits: firstCommit..<firstLease
        case .leases: firstLease..<probe
        case .probe: probe..<slots.count
        }
    }

    /// The slot for probes.
    var probe: Int { slots.count - 1 }

    /// The slots of shared connections.
    var shared: Range<Int> { 0..<firstLease }

    func id(_ slot: Int) -> ConnectionID { ConnectionID(slot: slot, generation: slots[slot].generation) }

    /// Returns true if `id` is the slot's current connection. Events of an earlier one are ignored.
    func isCurrent(_ id: ConnectionID) -> Bool { slots[id.slot].generation == id.generation }

    /// True if no slot is occupied.
    var areAbsent: Bool { slots.allSatisfy { $0.phase == .absent } }

    // MARK: Opening and end

    mutating func connect(_ slot: Int) -> ConnectionID {
        slots[slot].phase = .connecting
        return id(slot)
    }

    /// Handles a connection that is open. An unusable one has to be closed.
    mutating func opened(_ slot: Int, isUsable: Bool, now: Instant) {
        slots[slot].failures = 0
        if !isUsable {
            slots[slot].phase = .retiring(load: 0)
        } else {
            slots[slot].phase = slots[slot].lane == .leases ? .idle(since: now) : .ready(load: 0)
        }
    }

    /// Handles the end of the slot's connection. Later events of it are ignored.
    /// - Returns: True if it could not be opened.
    mutating func ended(_ slot: Int) -> Bool {
        let failed = slots[slot].phase == .connecting
        slots[slot].generation += 1
        slots[slot].phase = .absent
        slots[slot].failures = failed ? slots[slot].failures + 1 : 0
        return failed
    }

    /// Waits before the next connection, for longer after each failure.
    /// - Parameter jitter: From 0 to 1; spreads the attempts of many clients.
    mutating func backOff(_ slot: Int, now: Instant, jitter: Double) {
        let exponent = Swift.min(Swift.max(slots[slot].failures - 1, 0), 16)
        let delay = Swift.min(backOff.lowerBound * (1 << exponent), backOff.upperBound)
        wait(slot, until: now + delay * (0.5 + jitter / 2))
    }

    mutating func wait(_ slot: Int, until instant: Instant) { slots[slot].phase = .waitingToConnect(until: instant) }

    /// Retries immediately on all slots that wait to connect, other than the probe's.
    /// - Returns: The shared connections to open. Dedicated ones are opened when requests need them.
    mutating func retryImmediately() -> [ConnectionID] {
        var opening: [ConnectionID] = []
        for slot in 0..<probe {
            guard case .waitingToConnect = slots[slot].phase else { continue }
            slots[slot].failures = 0
            if slots[slot].lane == .leases {
                slots[slot].phase = .absent
            } else {
                opening.append(connect(slot))
            }
        }
        return opening
    }

    /// Occupies an absent slot until ``free(_:)``.
    mutating func giveUp(_ slot: Int) { slots[slot].phase = .givenUp }

    /// Frees a slot that was given up.
    /// - Returns: False if it was not.
    mutating func free(_ slot: Int) -> Bool {
        guard slots[slot].phase == .givenUp else { return false }
        slots[slot].phase = .absent
        return true
    }

    /// Ends all slots.
    /// - Returns: The unused connections, which have to be closed.
    mutating func shutDown() -> [ConnectionID] {
        var unused: [ConnectionID] = []
        for slot in slots.indices {
            switch slots[slot].phase {
            case .connecting, .idle, .ready(load: 0): unused.append(id(slot))
            case .waitingToConnect, .givenUp: slots[slot].phase = .absent
            case .absent, .ready, .retiring, .leased: break
            }
        }
        return unused
    }

    // MARK: Shared use

    /// Returns true if a ready connection has no pending request.
    func isUnused(_ slot: Int) -> Bool { if case .ready(load: 0) = slots[slot].phase { true } else { false } }

    /// Returns true if requests can be sent on a connection of this lane.
    func isReady(_ lane: PoolLane) -> Bool {
        slots[range(lane)].contains { if case .ready = $0.phase { true } else { false } }
    }

    /// Returns the ready slot of a lane with the lowest load, among those that satisfy `isUsable`.
    /// - Parameter limit: All loads are below it.
    func leastLoaded(_ lane: PoolLane, below limit: Int, where isUsable: (Int) -> Bool) -> Int? {
        var best: Int?
        var leastLoad = limit
        for slot in range(lane) {
            if case .ready(let load) = slots[slot].phase, load < leastLoad, isUsable(slot) {
                best = slot
                leastLoad = load
            }
        }
        return best
    }

    /// Adds pending requests to a ready connection.
    mutating func reserve(_ slot: Int, count: Int = 1) -> ConnectionID {
        if case .ready(let load) = slots[slot].phase { slots[slot].phase = .ready(load: load + count) }
        return id(slot)
    }

    /// Handles the end of a pending request on a shared connection.
    /// - Returns: The phase afterwards.
    mutating func release(_ slot: Int) -> Phase {
        switch slots[slot].phase {
        case .ready(let load): slots[slot].phase = .ready(load: load - 1)
        case .retiring(let load): slots[slot].phase = .retiring(load: load - 1)
        default: break
        }
        return slots[slot].phase
    }

    /// Stops new requests on a connection.
    /// - Returns: True if it is unused and has to be closed.
    mutating func retire(_ slot: Int) -> Bool {
        switch slots[slot].phase {
        case .ready(let load):
            slots[slot].phase = .retiring(load: load)
            return load == 0
        case .idle:
            close(slot)
            return true
        default: return false
        }
    }

    // MARK: Dedicated use

    /// Leases an idle connection.
    mutating func lease(_ slot: Int, isLong: Bool) -> ConnectionID {
        slots[slot].phase = .leased(isLong: isLong)
        return id(slot)
    }

    /// Ends a lease and keeps the connection for the next one.
    mutating func keep(_ slot: Int, now: Instant) { slots[slot].phase = .idle(since: now) }

    /// Ends the use of a dedicated connection that has to be closed. It is not leased again, and not counted as long.
    mutating func close(_ slot: Int) { slots[slot].phase = .leased(isLong: false) }

    /// The number of long leases.
    var longLeaseCount: Int { slots[range(.leases)].count { $0.phase == .leased(isLong: true) } }

    /// The number of dedicated connections that are opening, now or after a delay.
    var openingLeaseCount: Int {
        slots[range(.leases)].count {
            switch $0.phase {
            case .connecting, .waitingToConnect: true
            default: false
            }
        }
    }

    // MARK: Time

    /// Handles the time for one slot.
    mutating func advance(_ slot: Int, to now: Instant) -> Step? {
        switch slots[slot].phase {
        case .waitingToConnect(let until) where until <= now:
            slots[slot].phase = .absent
            return slot < firstLease ? .connect(connect(slot)) : nil
        case .idle(let since) where since + idleTimeout <= now:
            close(slot)
            return .close(id(slot))
        default: return nil
        }
    }

    /// The time of the next ``advance(_:to:)``.
    var nextDeadline: Instant? {
        var next: Instant?
        for slot in slots {
            switch slot.phase {
            case .waitingToConnect(let until): next = Swift.min(next ?? until, until)
            case .idle(let since): next = Swift.min(next ?? since + idleTimeout, since + idleTimeout)
            default: break
            }
        }
        return next
    }

    /// The latest time at which a shared slot connects that waits to do so.
    var latestAttempt: Instant? {
        var latest: Instant?
        for slot in slots[shared] {
            if case .waitingToConnect(let until) = slot.phase { latest = Swift.max(latest ?? until, until) }
        }
        return latest
    }
}
