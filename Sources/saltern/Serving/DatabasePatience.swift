import Postgres
import SalternServer

/// Patience with a database that cannot be used yet: one that starts later than the server, recovers, is a standby until it
/// is promoted, or cannot be reached over the network. What only an operator can mend is not waited for.
struct DatabasePatience {
    let log: Log
    /// Called before each pause.
    var onWaiting: @Sendable () -> Void = {}

    private static let interval = Duration.seconds(1)

    /// Does `body` again until it succeeds or fails for good, and says once why it waits.
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

    /// The error of the database, when it may pass by itself.
    static func passing(_ error: any Error) -> PostgresError? {
        switch error {
        case MigrationError.database(let error): passing(error)
        case PostgresError.unavailable(_, let reason?) where reason.isForGood: nil
        case let error as PostgresError where error.isTransient: error
        default: nil
        }
    }
}
