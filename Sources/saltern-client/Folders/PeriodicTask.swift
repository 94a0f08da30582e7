import Synchronization

/// A task that is due at once, and then once in a period. After an error it is due at the next call.
final class PeriodicTask: Sendable {
    private let period: Duration
    private let nextRun = Mutex<ContinuousClock.Instant?>(nil)

    init(every period: Duration) { self.period = period }

    /// Runs the work if it is due. Calls do not overlap, because a folder has one round after another.
    func runIfDue(at moment: ContinuousClock.Instant = .now, _ work: () async throws -> Void) async {
        guard nextRun.withLock({ $0.map { moment >= $0 } ?? true }), (try? await work()) != nil else { return }
        nextRun.withLock { $0 = moment + period }
    }
}
