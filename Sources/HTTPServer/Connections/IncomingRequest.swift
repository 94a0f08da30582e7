internal import EventLoop
internal import HTTPCore

/// An admitted request during the arrival of its body.
struct IncomingRequest: Sendable {
    let head: RequestHead
    let plan: RequestPlan
    /// The network of the client's address.
    let network: UInt64
    /// The sender that the body's memory is charged to. Nil while only the address is known.
    var memoryOwner: MemoryBudget.Owner?
    var body = IncomingBody()
    /// The charge of the body in its budget.
    var charge: MemoryCharge?
    /// Bytes that arrived before the body had to wait for memory. No more bytes are read meanwhile.
    var heldBack: ZeroizingBuffer?
    /// The time since which the body has borrowed memory.
    var lentSince: ContinuousClock.Instant?

    init(head: RequestHead, plan: RequestPlan, network: UInt64) {
        self.head = head
        self.plan = plan
        self.network = network
    }

    /// The maximum length of the body.
    var longest: Int {
        switch head.framing {
        case .none: 0
        case .length(let length): length
        case .chunked: plan.bodyLimit
        }
    }

    /// Charges the peak memory of a body with this capacity.
    ///
    /// Memory beyond the sender's quota is requested once, for the body's maximum length. No body holds a part and
    /// waits for the rest. Memory of an unidentified sender can be recalled.
    /// - Parameter wake: Called from any thread when a waiting body may request again, and when others need this
    ///   memory.
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
        guard peak > budget.quota else { return charge.resize(to: peak) ? .granted : .refused }
        return charge.borrow(plan.memory.peak(of: longest), from: network, wake: wake)
    }
}

/// The received bytes of a body.
///
/// Its capacity grows by the factor 4, or 2 for unidentified senders, and never above the announced or permitted
/// length. A body is therefore copied a few times at most. A sender that announces much and sends little takes little
/// memory.
struct IncomingBody {
    private(set) var bytes = ZeroizingBuffer()

    /// Bodies up to this size are not charged. Connections have a limit of their own.
    static let freeBytes = 16 * 1_024
    /// The same limit for unidentified senders.
    static let freeUnidentifiedBytes = smallestCapacity
    private static let smallestCapacity = 4 * 1_024

    /// Returns the bytes, and leaves none.
    mutating func take() -> ZeroizingBuffer {
        defer { bytes = ZeroizingBuffer() }
        return bytes
    }

    /// Returns the capacity for `count` more bytes of a body with at most `longest`.
    func capacity(adding count: Int, atMost longest: Int, isIdentified: Bool) -> Int {
        let needed = bytes.count + count
        if needed <= bytes.capacity { return bytes.capacity }
        return max(needed, min(longest, max(bytes.capacity * (isIdentified ? 4 : 2), Self.smallestCapacity)))
    }

    /// Appends bytes.
    /// - Parameter capacity: The result of ``capacity(adding:atMost:isIdentified:)``.
    mutating func append(_ more: UnsafeRawBufferPointer, capacity: Int) {
        if capacity > bytes.capacity { bytes.reserveCapacity(capacity) }
        bytes.append(more)
    }
}
