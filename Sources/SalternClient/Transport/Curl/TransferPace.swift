/// Keeps all transfers of a transport together within a rate, in each direction. The loop's thread alone uses it.
///
/// libcurl's own limits hold for one transfer at a time: several at once would exceed the rate together.
final class TransferPace {
    enum Direction: CaseIterable {
        case sending, receiving
    }

    /// One direction. The transfers that wait in it take turns.
    private struct Lane {
        var meter: RateMeter
        var waiting: [CurlTransfer] = []
        /// The one that has waited longest when the meter was free.
        var turn: CurlTransfer?
    }

    /// The most bytes that move at once: those that libcurl hands on in one call (`CURL_MAX_WRITE_SIZE`).
    static let piece = 16 << 10

    /// How many bytes the kernel may take from the line ahead of what is read: those of half a second.
    let receiveBuffer: Int
    private var sending: Lane
    private var receiving: Lane

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

    /// Counts bytes that have moved, whether or not they were allowed.
    func note(_ byteCount: Int, _ direction: Direction) { self[direction].meter.note(byteCount, at: .now) }

    /// Returns whether the next piece may move. Otherwise ``takeReady()`` returns the transfer when it is its turn.
    func allows(_ transfer: CurlTransfer, _ direction: Direction) -> Bool {
        let lane = self[direction]
        if lane.meter.delay(at: .now) == .zero, lane.waiting.isEmpty || lane.turn === transfer { return true }
        if !lane.waiting.contains(where: { $0 === transfer }) { self[direction].waiting.append(transfer) }
        return false
    }

    /// Returns the transfers that may go on, at most one for each direction.
    func takeReady() -> [CurlTransfer] {
        Direction.allCases.compactMap { direction in
            guard self[direction].meter.delay(at: .now) == .zero else { return nil }
            let next = self[direction].waiting.isEmpty ? nil : self[direction].waiting.removeFirst()
            self[direction].turn = next
            return next
        }
    }

    /// Drops a transfer that has ended.
    func forget(_ transfer: CurlTransfer) {
        for direction in Direction.allCases {
            self[direction].waiting.removeAll { $0 === transfer }
            if self[direction].turn === transfer { self[direction].turn = nil }
        }
    }

    /// The transfers that wait, some of which have not begun.
    var everyWaiting: [CurlTransfer] { sending.waiting + receiving.waiting }

    /// The time until a transfer may continue; nil when none waits.
    var delay: Duration? {
        [sending, receiving].filter { !$0.waiting.isEmpty }.map { $0.meter.delay(at: .now) }.min()
    }
}
