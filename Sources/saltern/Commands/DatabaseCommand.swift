import CommandLineKit
import EventLoop
import Postgres
import SalternServer

/// Lends commands a client of the database on a loop of its own.
enum DatabaseCommand {
    /// What the help of commands that need the owner says.
    static let ownerHelp = """
        Connects with SALTERN_OWNER_DATABASE_URL, the role that owns the schema, or with SALTERN_DATABASE_URL.
        Either may be given as a file: SALTERN_OWNER_DATABASE_URL_FILE.
        """

    /// Runs `body` with a client, which is closed afterwards.
    static func with<Result: Sendable>(
        _ database: PostgresConfiguration, _ body: @escaping @Sendable (PostgresClient) async throws -> Result
    ) async throws -> Result {
        let loop = try EventLoop(name: "command")
        try loop.start()
        defer { loop.stop() }
        return try await loop.run {
            let client = PostgresClient(configuration: database, loop: loop)
            do {
                let result = try await body(client)
                await client.shutdown()
                return result
            } catch let failure as CommandFailure {
                await client.shutdown()
                throw failure
            } catch {
                await client.shutdown()
                throw CommandFailure("\(error)")
            }
        }
    }

    /// What time it is by the database's clock, which is what everything is stamped with.
    static func now(_ console: Console) async throws -> Timestamp {
        try await asOwner(console) { try await DatabaseClock.now(of: $0) }
    }

    /// Runs `body` with a client that connects as the schema's owner.
    /// - Parameter statementTimeout: How long one statement may take, where the usual time is not enough.
    static func asOwner<Result: Sendable>(
        _ console: Console, statementTimeout: Duration? = nil,
        _ body: @escaping @Sendable (PostgresClient) async throws -> Result
    ) async throws -> Result {
        var settings = Settings(console.environment)
        let database = settings.ownerDatabase()
        try settings.finish()
        guard var database else { throw CommandFailure("no database is configured") }
        if let statementTimeout {
            database.statementTimeout = statementTimeout
            database.silenceTimeout = statementTimeout + .seconds(10)
        }
        return try await with(database, body)
    }
}
