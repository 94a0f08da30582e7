import Postgres
import SalternServer

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
