internal import HTTPCore
internal import Postgres
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

/// `GET /v1/health/ready`: returns 200 if the database answers and the program works with its schema.
///
/// If a node of a cluster is missing, the status is `degraded`: the service continues for accounts on other nodes.
///
/// The route has no rate limit, because the database is queried at most once a second.
struct ShowReadiness: OpenEndpoint {
    let database: PostgresClient
    let readiness: Readiness

    private let ready = Self.response("ready")
    private let degraded = Self.response("degraded")

    private static func response(_ status: String) -> Response {
        .json { writer in writer.object { writer in writer.member("status", status) } }
    }

    func respond(to request: Request) async throws -> Response {
        let answer = await readiness.answer(on: database.loop) { [database, deadline = readiness.deadline] in
            await Self.ask(database, within: deadline)
        }
        switch answer {
        case .schema(fits: true): return ready
        case .degraded: return degraded
        case .schema: throw NotReady.schemaDiffers
        case .silence, nil: throw NotReady.databaseIsSlow
        case .failure(let error): throw error
        }
    }

    private static func ask(_ database: PostgresClient, within deadline: Duration) async -> Readiness.Answer {
        await withTaskGroup(of: Readiness.Answer.self) { group in
            group.addTask {
                do throws(PostgresError) {
                    let fits = try await database.execute(ReadSchemaVersion()).first == .fits
                    guard fits, await !Self.isWhole(database) else { return .schema(fits: fits) }
                    return .degraded
                } catch {
                    return .failure(error)
                }
            }
            group.addTask {
                try? await Task.sleep(for: deadline)
                return .silence
            }
            defer { group.cancelAll() }
            return await group.next() ?? .silence
        }
    }

    /// Returns true if all nodes with accounts answer.
    private static func isWhole(_ database: PostgresClient) async -> Bool {
        guard database.isDistributed else { return true }
        return (try? await database.execute(ReadEveryNode())) != nil
    }
}

/// Sends a query to all nodes. An empty result is sufficient.
struct ReadEveryNode: Statement {
    typealias Row = Bool

    static let isReadOnly = true
    static let sql: SQL<Self> = "SELECT true FROM saltern.recoveries LIMIT 1"
}

/// Reasons for which the service is not ready.
enum NotReady: ProblemConvertible {
    case databaseIsSlow
    case schemaDiffers
    /// The starting server waits for the database.
    case isStarting

    var problem: Problem {
        switch self {
        case .databaseIsSlow:
            Problem(
                .serviceUnavailable, "database_unavailable", detail: "The database did not answer in time.",
                responseFields: ["Retry-After": "5"])
        case .isStarting:
            Problem(
                .serviceUnavailable, "database_unavailable",
                detail: "The server is starting and waits for its database. Send the same request again.",
                responseFields: ["Retry-After": "5"])
        case .schemaDiffers:
            Problem(
                .serviceUnavailable, "schema_mismatch", detail: "The database has another schema version.",
                responseFields: ["Retry-After": "60"])
        }
    }
}

/// `GET /v1/health/live`: returns 200 while the process and its loop run, without any query.
struct ShowLiveness: OpenEndpoint {
    static let response: Response = .json { writer in
        writer.object { writer in writer.member("status", "live") }
    }

    func respond(to request: Request) async -> Response { Self.response }
}
