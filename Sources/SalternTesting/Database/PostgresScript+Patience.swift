internal import EventLoop
internal import Postgres

extension PostgresScript {
    /// Runs scripts that want a database which nobody is connected to, again while somebody is: on a busy machine a session
    /// takes longer to end than PostgreSQL waits for that, which is five seconds.
    static func runPatiently(
        _ scripts: [String], configuration: PostgresConfiguration, loop: EventLoop
    ) async throws(PostgresError) {
        for _ in 0..<24 {
            do {
                return try await run(scripts, configuration: configuration, loop: loop)
            } catch {
                guard error.sqlState == .objectInUse else { throw error }
            }
        }
        try await run(scripts, configuration: configuration, loop: loop)
    }
}
