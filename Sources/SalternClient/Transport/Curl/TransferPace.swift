/// Keeps all transfers of a transport together within a rate, in each direction. Only the loop's thread uses it.
///
/// libcurl's own limits apply to one transfer at a time: several together would exceed the rate.
final class TransferPace {
    enum Direction: CaseIterable {
        case sending, receiving
    }

    /// One direction. Its waiting transfers continue in round-robin order.
    private struct Lane {
        var meter: RateMeter
        var waiting: [CurlTransfer] = []
        /// The transfer that had waited longest when the meter was free.
        var turn: CurlTransfer?
    }

    /// The maximum number of bytes that move at once: libcurl's limit for one call (`CURL_MAX_WRITE_SIZE`).
    static let piece = 16 << 10

    /// The maximum number of bytes that the kernel may receive ahead of reading: those of half a second.
    let receiveBuffer: Int
    private var sending: Lane
    private var receiving: Lane

    /// Creates a pace.
    /// - Parameter bytesPerSecond: The rate of each direction.
    init(bytesPerSecond: Int) {
        sending = Lane(meter: RateMeter(bytesPerSecond: bytesPerSecond))
        receiving = sending
        receiveBuffer = min(max(bytesPerSecond / 2, Self.piece), 4 << 20)
    }

    private subscript(_ direction: Direction) -> Lane {
        get { direction == .sending ? sending : receiving }
        set { if direction == .sending { sending = newValue } else { receiving = newValue } }
    }

    /// Counts bytes that have moved, including those beyond the rate.
    func note(_ byteCount: Int, _ direction: Direction) { self[direction].meter.note(byteCount, at: .now) }

    /// Returns true when the next piece may move. Otherwise ``takeReady()`` returns the transfer later.
    func allows(_ transfer: CurlTransfer, _ direction: Direction) -> Bool {
        let lane = self[direction]
        if lane.meter.delay(at: .now) == .zero, lane.waiting.isEmpty || lane.turn === transfer { return true }
        if !lane.waiting.contains(where: { $0 === transfer }) { self[direction].waiting.append(transfer) }
        return false
    }

    /// Returns the transfers that may continue, at most one for each direction.
    func takeReady() -> [CurlTransfer] {
        Direction.allCases.compactMap { direction in
            guard self[direction].meter.delay(at: .now) == .zero else { return nil }
            let next = self[direction].waiting.isEmpty ? nil : self[direction].waiting.removeFirst()
            self[direction].turn = next
            return next
        }
    }

    /// Removes a transfer that has ended.
    func forget(_ transfer: CurlTransfer) {
        for direction in Direction.allCases {
            self[direction].waiting.removeAll { $0 === transfer }
            if self[direction].turn === transfer { self[direction].turn = nil }
        }
    }

    /// The transfers that wait. Some of them have not begun.
    var everyWaiting: [CurlTransfer] { sending.waiting + receiving.waiting }

    /// The time until a transfer may continue; nil when none waits.
    var delay: Duration? {
        [sending, receiving].filter { !$0.waiting.isEmpty }.map { $0.meter.delay(at: .now) }.min()
    }
}

/// Counts bytes against a rate. Bytes that move only while ``delay(at:)`` is zero stay within the rate. In any period,
/// at most the bytes of the rate and one more piece move.
///
/// An idle period does not allow more bytes later.
struct RateMeter {
    private let bytesPerSecond: Int
    /// The time at which the rate allows all bytes that have moved.
    private var paid: ContinuousClock.Instant?

    /// Creates a meter.
    /// - Parameter bytesPerSecond: The rate, above 0.
    init(bytesPerSecond: Int) {
        precondition(bytesPerSecond > 0, "the rate must be above 0")
        self.bytesPerSecond = bytesPerSecond
    }

    /// Counts bytes that have moved.
    mutating func note(_ byteCount: Int, at now: ContinuousClock.Instant) {
        let seconds = Double(byteCount) / Double(bytesPerSecond)
        paid = max(paid ?? now, now) + .seconds(seconds)
    }

    /// Returns the wait before the next piece; zero when it may move.
    func delay(at now: ContinuousClock.Instant) -> Duration { paid.map { max(now.duration(to: $0), .zero) } ?? .zero }
}
