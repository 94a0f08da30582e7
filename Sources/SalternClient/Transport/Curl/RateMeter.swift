/// Counts bytes against a rate. Whatever moves only while ``delay(at:)`` is zero stays within the rate: from any moment on, the
/// bytes of a time are at most those of the rate, and one piece more.
///
/// An idle time is not made up for later.
struct RateMeter {
    private let bytesPerSecond: Int
    /// When everything that has moved is paid for.
    private var paid: ContinuousClock.Instant?

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

    /// Returns how long nothing may move; zero when the next piece may.
    func delay(at now: ContinuousClock.Instant) -> Duration { paid.map { max(now.duration(to: $0), .zero) } ?? .zero }
}
