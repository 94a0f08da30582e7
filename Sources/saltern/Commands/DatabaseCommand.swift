import CommandLineKit
import EventLoop
import Glibc
import Postgres
import SalternServer

/// Provides commands with a database client on a loop of its own.
enum DatabaseCommand {
    /// Help text of commands that need the owner.
    static let ownerHelp = "Connects with SALTERN_OWNER_DATABASE_URL: see `saltern --help`."

    /// Runs `body` with a client, which is closed afterwards.
    /// - Parameters:
    ///   - setting: The one that contains `database`.
    ///   - needsSchema: True if `body` requires the schema of this program.
    /// - Throws: ``CommandFailure`` that contains the remedy.
    static func with<Result: Sendable>(
        _ database: PostgresConfiguration, from setting: Setting, needsSchema: Bool = true,
        _ body: @escaping @Sendable (PostgresClient) async throws -> Result
    ) async throws -> Result {
        let loop = try EventLoop(name: "command")
        try loop.start()
        defer { loop.stop() }
        var database = database
        // Its requests are sequential, and the role may have few connections.
        database.readConnections = 1
        database.commitConnections = 1
        // A person waits for the result, not a request.
        database.acquireTimeout = .seconds(10)
        return try await loop.run { [database] in
            let client = PostgresClient(configuration: database, loop: loop)
            do {
                if needsSchema, let problem = try await SchemaProblem.find(in: client) { throw problem }
                let result = try await body(client)
                await client.shutdown()
                return result
            } catch {
                let isStandby = isAboutWriting(error) ? try? await client.execute(FindRecovery()).first : nil
                await client.shutdown()
                throw failure(error, setting, isStandby: isStandby)
            }
        }
    }

    /// Returns the current time of the database's clock, which stamps everything.
    static func now(_ console: Console) async throws -> Timestamp {
        try await asOwner(console) { try await DatabaseClock.now(of: $0) }
    }

    /// Runs `body` with a client that connects as the schema's owner, if that is the server's database.
    /// - Parameters:
    ///   - statementTimeout: The time limit of one statement, where the default is too short.
    ///   - needsSchema: True if `body` requires the schema of this program.
    /// - Throws: ``CommandFailure`` that contains the remedy.
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
        return try await with(database, from: ownerSetting(console), needsSchema: needsSchema) { client in
            try await DatabaseIdentity.requireOne(client, console)
            return try await body(client)
        }
    }

    /// Returns the setting with the owner's database URL.
    static func ownerSetting(_ console: Console) -> Setting {
        Setting.ownerDatabaseURL.isSet(in: console.environment) ? .ownerDatabaseURL : .databaseURL
    }

    /// Converts an error of the migrator, which has connections of its own, into a message for the operator.
    static func failure(_ error: MigrationError, _ console: Console) async -> CommandFailure {
        var isStandby: Bool?
        if case .database(let error) = error, isAboutWriting(error) {
            isStandby = try? await asOwner(console, needsSchema: false) { try await $0.execute(FindRecovery()).first }
        }
        return failure(error, ownerSetting(console), isStandby: isStandby)
    }

    private static func isAboutWriting(_ error: any Error) -> Bool {
        (error as? PostgresError)?.sqlState == .readOnlyTransaction
    }

    /// Converts an error into a message for the operator, with the remedy.
    /// - Parameters:
    ///   - setting: The one with the database URL.
    ///   - isStandby: The server's reply, when nothing can be written.
    static func failure(_ error: any Error, _ setting: Setting, isStandby: Bool? = nil) -> CommandFailure {
        switch error {
        case let failure as CommandFailure: failure
        case MigrationError.database(let error): failure(error, setting, isStandby: isStandby)
        case PostgresError.unavailable(_, nil):
            CommandFailure(
                "\(error): check that PostgreSQL runs at the address of \(setting), that no firewall drops packets on the "
                    + "way, and that the role has connections left (max_connections, CONNECTION LIMIT)")
        case PostgresError.unavailable(_, let reason): CommandFailure("\(error): \(hint(reason, setting))")
        case PostgresError.timedOut: CommandFailure("\(error): \(hint(.timedOut, setting))")
        case PostgresError.connectionLost: CommandFailure("\(error): \(hint(nil, setting))")
        case let error as PostgresError where error.sqlState == .insufficientPrivilege:
            CommandFailure("\(error): the role of \(setting) lacks the right; use the schema's owner")
        case let error as PostgresError where error.sqlState == .readOnlyTransaction:
            CommandFailure("nothing can be written there: \(readOnlyHint(setting, isStandby))")
        case InstallationError.missing: CommandFailure("\(error): the first start of a server creates it")
        default: CommandFailure("\(error)")
        }
    }

    private static func readOnlyHint(_ setting: Setting, _ isStandby: Bool?) -> String {
        let standby = "\(setting) leads to a standby and must lead to the primary"
        let readOnly =
            "default_transaction_read_only is on for the role or the database of \(setting), or for the whole server"
        return switch isStandby {
        case true?: standby
        case false?: readOnly
        case nil: "\(standby); or \(readOnly)"
        }
    }

    /// Returns the remedy for a failed connection.
    private static func hint(_ reason: ConnectionFailure?, _ setting: Setting) -> String {
        switch reason {
        case .server(.tooManyConnections)?:
            "PostgreSQL runs at the address of \(setting) and must accept one more connection"
        case .server?, .passwordMissing?, .tls?, .otherKindOfServer?, .option?, .resolver?, .unsuitable?:
            "check \(setting)"
        case .timedOut?, .system(ETIMEDOUT)?, .system(EHOSTUNREACH)?, .system(ENETUNREACH)?:
            "check that no firewall drops packets to the address of \(setting), and that the machine is up"
        case .system?, .other?, nil: "check that PostgreSQL runs, and that \(setting) leads there"
        }
    }
}

/// Returns true if the server is a standby.
private struct FindRecovery: Statement {
    typealias Row = Bool

    static let isReadOnly = true
    static let sql: SQL<Self> = "SELECT pg_catalog.pg_is_in_recovery()"
}
