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
