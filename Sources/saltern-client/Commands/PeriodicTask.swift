import Synchronization

/// What is due at once, and then once in a period. What failed is due again the next time that somebody asks.
final class PeriodicTask: Sendable {
    private let period: Duration
    private let nextRun = Mutex<ContinuousClock.Instant?>(nil)

    init(every period: Duration) { self.period = period }

    /// Does the work if it is due. Nothing asks twice at the same time: a folder has one round after another.
    func runIfDue(at moment: ContinuousClock.Instant = .now, _ work: () async throws -> Void) async {
        guard nextRun.withLock({ $0.map { moment >= $0 } ?? true }), (try? await work()) != nil else { return }
        nextRun.withLock { $0 = moment + period }
    }
}
