internal import EventLoop
internal import HTTPCore

/// A request whose head has been admitted and whose body is arriving.
struct IncomingRequest: Sendable {
    let head: RequestHead
    let plan: Plan
    /// Of whom it comes, as far as addresses tell.
    let network: UInt64
    /// Whose the body's memory is; nil as long as nobody but the address is known.
    var memoryOwner: MemoryBudget.Owner?
    var body = IncomingBody()
    /// What the body counts among the memory of its kind.
    var charge: MemoryCharge?
    /// What was read of the body before it had to wait for memory. Nothing more is read meanwhile.
    var heldBack: ZeroizingBuffer?
    /// Since when memory has been lent to it.
    var lentSince: ContinuousClock.Instant?

    init(head: RequestHead, plan: Plan, network: UInt64) {
        self.head = head
        self.plan = plan
        self.network = network
    }

    /// The most that the body can have.
    var longest: Int {
        switch head.framing {
        case .none: 0
        case .length(let length): length
        case .chunked: plan.bodyLimit
        }
    }

    /// Counts the memory that a body of such a capacity takes at its peak.
    ///
    /// What is beyond the sender's part is asked for once and for the longest that the body can become, so nobody has
    /// some of it and waits for more. What belongs to an address alone is held until others need it.
    /// - Parameter wake: Called from any thread when a body that waits may ask again, and when others need what this one has.
    mutating func reserve(
        _ capacity: Int, in budgets: ServerBudgets, at now: ContinuousClock.Instant,
        wake: @escaping @Sendable () -> Void
    ) -> MemoryGrant {
        guard capacity > (memoryOwner == nil ? IncomingBody.freeUnidentifiedBytes : IncomingBody.freeBytes) else {
            return .granted
        }
        let budget = memoryOwner == nil ? budgets.unidentifiedBodies : budgets.bodies
        let charge = charge ?? budget.open(for: memoryOwner ?? .address(network))
        self.charge = charge
        let peak = plan.memory.peak(of: capacity)
        if peak <= charge.count { return .granted }
        if memoryOwner == nil { return charge.hold(peak, at: now, wake: wake) ? .granted : .refused }
        guard peak > budget.part else { return charge.resize(to: peak) ? .granted : .refused }
        return charge.borrow(plan.memory.peak(of: longest), from: network, wake: wake)
    }
}

/// The bytes of a body so far.
///
/// Room is made for four times as much whenever it is full, for twice as much while only the address is known, and never for
/// more than was announced or may come: a body is moved a few times at most. Who announces much and sends little has little
/// memory here.
struct IncomingBody {
    private(set) var bytes = ZeroizingBuffer()

    /// Bodies up to this size are not counted: connections are limited by themselves.
    static let freeBytes = 16 * 1_024
    /// The same, as long as only the address is known.
    static let freeUnidentifiedBytes = smallestCapacity
    private static let smallestCapacity = 4 * 1_024

    /// The bytes, for whoever goes on with them.
    mutating func take() -> ZeroizingBuffer {
        defer { bytes = ZeroizingBuffer() }
        return bytes
    }

    /// How much room there has to be so that `count` more bytes fit, of `longest` that there can be.
    func capacity(adding count: Int, atMost longest: Int, isIdentified: Bool) -> Int {
        let needed = bytes.count + count
        if needed <= bytes.capacity { return bytes.capacity }
        return max(needed, min(longest, max(bytes.capacity * (isIdentified ? 4 : 2), Self.smallestCapacity)))
    }

    /// Adds bytes.
    /// - Parameter capacity: What ``capacity(adding:atMost:isIdentified:)`` said.
    mutating func append(_ more: UnsafeRawBufferPointer, capacity: Int) {
        if capacity > bytes.capacity { bytes.reserveCapacity(capacity) }
        bytes.append(more)
    }
}
