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
    /// - Parameters:
    ///   - variable: The setting that `database` comes from.
    ///   - needsSchema: Whether `body` works with the schema, as this program knows it.
    /// - Throws: ``CommandFailure`` that says what to do.
    static func with<Result: Sendable>(
        _ database: PostgresConfiguration, from variable: String, needsSchema: Bool = true,
        _ body: @escaping @Sendable (PostgresClient) async throws -> Result
    ) async throws -> Result {
        let loop = try EventLoop(name: "command")
        try loop.start()
        defer { loop.stop() }
        return try await loop.run {
            let client = PostgresClient(configuration: database, loop: loop)
            do {
                if needsSchema, let problem = try await SchemaProblem.find(in: client) { throw problem }
                let result = try await body(client)
                await client.shutdown()
                return result
            } catch {
                await client.shutdown()
                throw failure(error, variable)
            }
        }
    }

    /// What time it is by the database's clock, which is what everything is stamped with.
    static func now(_ console: Console) async throws -> Timestamp {
        try await asOwner(console) { try await DatabaseClock.now(of: $0) }
    }

    /// Runs `body` with a client that connects as the schema's owner.
    /// - Parameters:
    ///   - statementTimeout: How long one statement may take, where the usual time is not enough.
    ///   - needsSchema: Whether `body` works with the schema, as this program knows it.
    /// - Throws: ``CommandFailure`` that says what to do.
    static func asOwner<Result: Sendable>(
        _ console: Console, statementTimeout: Duration? = nil, needsSchema: Bool = true,
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
        return try await with(database, from: ownerVariable(console), needsSchema: needsSchema, body)
    }

    /// The setting that says where the owner connects.
    static func ownerVariable(_ console: Console) -> String {
        let name = "SALTERN_OWNER_DATABASE_URL"
        return [name, name + "_FILE"].contains { console.environment[$0] != nil } ? name : "SALTERN_DATABASE_URL"
    }

    /// What an operator is told of an error: what it is, and what to do about it.
    /// - Parameter variable: The setting that says where the database is.
    static func failure(_ error: any Error, _ variable: String) -> CommandFailure {
        switch error {
        case let failure as CommandFailure: failure
        case MigrationError.database(let error): failure(error, variable)
        case PostgresError.unavailable, PostgresError.timedOut, PostgresError.connectionLost:
            CommandFailure("\(error): look whether PostgreSQL runs, and whether \(variable) leads there")
        case let error as PostgresError where error.sqlState == .insufficientPrivilege:
            CommandFailure("\(error): the role of \(variable) may not do that, the schema's owner may")
        case let error as PostgresError where error.sqlState == .readOnlyTransaction:
            CommandFailure("\(error): \(variable) leads to a standby, and has to lead to the primary")
        case InstallationError.missing: CommandFailure("\(error): a server makes it when it starts for the first time")
        default: CommandFailure("\(error)")
        }
    }
}
