internal import Synchronization

/// What a node knows of its database's readiness: asked by one at a time and at most once a second, whoever wants to
/// know and however many they are.
public final class Readiness: Sendable {
    /// What came of asking.
    enum Answer: Sendable {
        /// Whether the database's schema is one that this program works with.
        case schema(fits: Bool)
        /// It is, and some node of the cluster does not answer.
        case degraded
        /// It did not say so in time.
        case silence
        case failure(any Error)
    }

    private typealias Continuation = CheckedContinuation<Answer?, Never>

    private struct State {
        var latest: (answer: Answer, until: Duration)?
        var isAsking = false
        var waiting: [Continuation] = []
    }

    /// For how long an answer holds.
    static let interval = Duration.seconds(1)
    /// How many wait for an answer; further ones hear the one before, or nothing.
    static let waiterLimit = 64

    private let state = Mutex(State())
    private let time: @Sendable () -> Duration

    /// - Parameter time: The time since any fixed moment.
    init(time: @escaping @Sendable () -> Duration) {
        self.time = time
    }

    private enum Step {
        case known(Answer?)
        case wait
        case ask
    }

    /// The latest answer; a new one when that is too old.
    /// - Parameters:
    ///   - executor: Where `ask` runs.
    ///   - ask: Called when nobody is asking. Has a deadline of its own, and goes on when the caller has gone.
    /// - Returns: Nil when too many wait for the first answer.
    func answer(
        on executor: (any TaskExecutor)? = nil, _ ask: @escaping @Sendable () async -> Answer
    ) async -> Answer? {
        await withCheckedContinuation { continuation in
            let now = time()
            let step: Step = state.withLock { state in
                if let latest = state.latest, now < latest.until { return .known(latest.answer) }
                guard state.waiting.count < Self.waiterLimit else { return .known(state.latest?.answer) }
                state.waiting.append(continuation)
                if state.isAsking { return .wait }
                state.isAsking = true
                return .ask
            }
            switch step {
            case .known(let answer): continuation.resume(returning: answer)
            case .wait: break
            case .ask: Task(executorPreference: executor) { self.tell(await ask()) }
            }
        }
    }

    private func tell(_ answer: Answer) {
        let now = time()
        let waiting = state.withLock { state in
            state.latest = (answer, now + Self.interval)
            state.isAsking = false
            defer { state.waiting.removeAll() }
            return state.waiting
        }
        for continuation in waiting { continuation.resume(returning: answer) }
    }
}
