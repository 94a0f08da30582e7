import Postgres
import SalternServer
import Synchronization

/// Logs the events of the loops' database clients, once for each change.
final class DatabaseReport: Sendable {
    private let log: Log
    private let state = Mutex(State())

    private struct State {
        var failure: ConnectionFailure?
        var stalledLoops = 0
        var refusals: Set<SQLState> = []
    }

    init(log: Log) { self.log = log }

    /// Receives an event. Each client reports it once, so several may report the same.
    func take(_ event: PostgresEvent) {
        switch event {
        case .cannotConnect(let failure):
            let isNew = state.withLock { state in
                defer { state.failure = failure }
                return state.failure != failure
            }
            if isNew { log.write(.error, "database_not_connected", ["reason": failure]) }
        case .connected:
            if state.withLock({ $0.failure.take() }) != nil { log.write(.info, "database_connected") }
        case .takenOver: log.write(.warning, "database_taken_over")
        case .commitsStalled:
            let isNew = state.withLock { state in
                state.stalledLoops += 1
                return state.stalledLoops == 1
            }
            if isNew { log.write(.error, "database_commits_stalled") }
        case .commitsResumed:
            let isLast = state.withLock { state in
                state.stalledLoops -= 1
                return state.stalledLoops == 0
            }
            if isLast { log.write(.info, "database_commits_resumed") }
        case .laterStatementRefused(let code):
            if state.withLock({ $0.refusals.insert(code).inserted }) {
                log.write(.warning, "database_note_refused", ["sqlstate": code])
            }
        }
    }
}

/// The sessions differ from the operator's settings.
struct UnsuitablePooling: Error, CustomStringConvertible {
    let findings: [PoolingFinding]

    var description: String { findings.map(Self.sentence).joined(separator: "; ") }

    /// Returns the finding with its remedy.
    static func sentence(_ finding: PoolingFinding) -> String {
        switch finding {
        case .exchangesSessions:
            "SALTERN_DATABASE_URL: \(finding). Connect directly or through a pooler in session mode, or set "
                + "SALTERN_DATABASE_POOLING=transaction"
        case .setting: "SALTERN_DATABASE_POOLING is transaction, and \(finding), and RECONNECT in the pooler"
        }
    }
}

/// The database may lose acknowledged commits.
struct UnsafeDatabase: Error, CustomStringConvertible {
    let settings: [UnsafeSetting]

    var description: String {
        settings.map { "the database's \($0)" }.joined(separator: "; ")
            + " (SALTERN_ALLOW_UNSAFE_DATABASE=on still serves it, for tests)"
    }
}

/// Waits for a database that is not usable yet.
///
/// Such a database starts later than the server, recovers, is a standby until its promotion, or is unreachable over
/// the network. There is no wait when only an operator can fix the problem.
struct DatabasePatience {
    let log: Log
    /// Called before each pause.
    var onWaiting: @Sendable () -> Void = {}

    private static let interval = Duration.seconds(1)

    /// Repeats `body` until it succeeds or fails permanently. Logs the reason for waiting once.
    func perform<Result>(_ body: () async throws -> Result) async throws -> Result {
        var hasTold = false
        while true {
            do {
                return try await body()
            } catch {
                guard let reason = Self.passing(error) else { throw error }
                if !hasTold { log.write(.warning, "waiting_for_database", ["error": reason]) }
                hasTold = true
                onWaiting()
            }
            try await Task.sleep(for: Self.interval)
        }
    }

    /// Returns the database's error if it may be temporary.
    static func passing(_ error: any Error) -> PostgresError? {
        switch error {
        case MigrationError.database(let error): passing(error)
        case PostgresError.unavailable(_, let reason?) where reason.isForGood: nil
        case let error as PostgresError where error.isTransient: error
        default: nil
        }
    }
}
