internal import EventLoop
internal import Postgres

extension PostgresScript {
    /// Runs scripts that need a database without other connections, and repeats them while there are some.
    ///
    /// On a busy machine, the end of a session takes longer than PostgreSQL waits for it, which is five seconds.
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
