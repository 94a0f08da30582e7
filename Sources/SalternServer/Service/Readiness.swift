internal import Synchronization

/// The readiness of a node's database. One query runs at a time, at most once a second, for any number of callers.
public final class Readiness: Sendable {
    /// The result of a query.
    enum Answer: Sendable {
        /// True if the program works with the database's schema.
        case schema(fits: Bool)
        /// The schema fits, and a node of the cluster does not answer.
        case degraded
        /// The query exceeded its deadline.
        case silence
        case failure(any Error)
    }

    private typealias Continuation = CheckedContinuation<Answer?, Never>

    private struct State {
        var latest: (answer: Answer, until: Duration)?
        var isAsking = false
        var waiting: [Continuation] = []
    }

    /// The validity of a result.
    static let interval = Duration.seconds(1)
    /// Maximum number of waiters. Further callers receive the previous result, or none.
    static let waiterLimit = 64

    /// Time limit of the query.
    let deadline: Duration
    private let state = Mutex(State())
    private let time: @Sendable () -> Duration

    /// - Parameters:
    ///   - deadline: The time limit of the query.
    ///   - time: The time since any fixed moment.
    init(deadline: Duration, time: @escaping @Sendable () -> Duration) {
        self.deadline = deadline
        self.time = time
    }

    private enum Step {
        case known(Answer?)
        case wait
        case ask
    }

    /// Returns the latest result, or a new one if that is too old.
    ///
    /// - Parameters:
    ///   - executor: The executor of `ask`.
    ///   - ask: Sends the query if none is running. It has its own deadline, and continues if the caller is cancelled.
    /// - Returns: Nil if too many callers wait for the first result.
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
