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
        precondition(bytesPerSecond > 0, "a rate of nothing never ends")
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
