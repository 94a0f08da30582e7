import CommandLineKit
import EventLoop
import Postgres

/// Identifies the database of a connection. A standby and its primary have the same identity.
struct DatabaseIdentity: Equatable, Sendable {
    private let name: String
    private let object: String
    /// The cluster's identifier; nil where the role may not read it.
    private let cluster: String?
    /// All nodes of a distributed database, which each of them lists; nil for others.
    private let nodes: String?

    /// The application name of sessions that read an identity, so that a restore does not take them for a server's.
    static let applicationName = "saltern identity"

    /// Returns true if both may be the same database.
    func isPossibly(_ other: DatabaseIdentity) -> Bool {
        guard name == other.name else { return false }
        // The owner uses the coordinator, and a server any node.
        if let nodes, let others = other.nodes { return nodes == others }
        guard object == other.object else { return false }
        guard let cluster, let others = other.cluster else { return true }
        return cluster == others
    }

    /// Rejects settings in which the owner's URL leads to another database than the server's.
    ///
    /// Nothing is compared if one URL is missing, or if the server's URL does not work. Before the first migration its
    /// role need not exist.
    /// - Parameter owner: A client that is connected as the owner.
    /// - Throws: ``CommandFailure`` with the code `two_databases`, or a `PostgresError` of the owner's connection.
    static func requireOne(_ owner: PostgresClient, _ console: Console) async throws {
        var settings = Settings(console.environment)
        guard DatabaseCommand.ownerSetting(console) != .databaseURL,
            settings.text(.databaseURL) != nil, let server = settings.serverDatabase()
        else { return }
        let expected = try await read(from: owner)
        let found = await read(server, .databaseURL)
        guard let found, !expected.isPossibly(found) else { return }
        throw CommandFailure(
            "\(DatabaseCommand.ownerSetting(console)) leads to the database \(expected.name) and "
                + "\(Setting.databaseURL) to \(found.name)\(expected.name == found.name ? " of another cluster" : ""): "
                + "nothing was done", status: 1, code: "two_databases")
    }

    /// Rejects a superuser's URL that leads to another cluster than the owner's or the server's. Roles and a database
    /// would be created there.
    ///
    /// Nothing is compared with a URL that does not work: its role and its database need not exist.
    /// - Throws: ``CommandFailure`` with the code `two_databases`.
    static func requireCluster(
        of owner: PostgresConfiguration, and server: PostgresConfiguration?, superuser: PostgresConfiguration,
        _ console: Console
    ) async throws {
        guard let made = await read(superuser, .superuserDatabaseURL)?.cluster else { return }
        for (database, setting) in [
            (owner, DatabaseCommand.ownerSetting(console)), (server, Setting.databaseURL),
        ] {
            guard let database, let found = await read(database, setting), let cluster = found.cluster else {
                continue
            }
            // A server uses any node of a distributed database, and each node has an identifier of its own.
            if cluster == made || setting == .databaseURL && found.nodes != nil { continue }
            throw CommandFailure(
                "\(Setting.superuserDatabaseURL) leads to another cluster than \(setting): nothing was done", status: 1,
                code: "two_databases")
        }
    }

    /// Returns the identity of a database; nil if it cannot be used.
    private static func read(_ database: PostgresConfiguration, _ setting: Setting) async -> DatabaseIdentity? {
        var database = database
        database.applicationName = applicationName
        return try? await DatabaseCommand.with(database, from: setting, needsSchema: false) {
            try await read(from: $0)
        }
    }

    private static func read(from client: PostgresClient) async throws -> DatabaseIdentity {
        let found = try await client.execute(FindIdentity()).first
        let cluster = found?.mayReadCluster == true ? try await client.execute(FindCluster()).first : nil
        let nodes = found?.isDistributed == true ? try await client.execute(FindNodes()).first ?? nil : nil
        return DatabaseIdentity(name: found?.name ?? "", object: found?.object ?? "", cluster: cluster, nodes: nodes)
    }
}

private struct FindIdentity: Statement {
    struct Row: DecodableRow {
        let name: String
        let object: String
        let mayReadCluster: Bool
        let isDistributed: Bool

        init(row: inout RowReader) throws(PostgresError) {
            name = try row.next()
            object = try row.next()
            mayReadCluster = try row.next()
            isDistributed = try row.next()
        }
    }

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT d.datname::text, d.oid::text,
            pg_catalog.has_function_privilege('pg_catalog.pg_control_system()', 'EXECUTE'),
            pg_catalog.to_regclass('pg_catalog.pg_dist_node') IS NOT NULL
        FROM pg_catalog.pg_database d WHERE d.datname = pg_catalog.current_database()
        """
}

private struct FindCluster: Statement {
    typealias Row = String

    static let isReadOnly = true
    static let sql: SQL<Self> = "SELECT c.system_identifier::text FROM pg_catalog.pg_control_system() c"
}

private struct FindNodes: Statement {
    typealias Row = String?

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT pg_catalog.string_agg(n.nodename || ':' || n.nodeport, ',' ORDER BY n.nodeid) FROM pg_catalog.pg_dist_node n
        """
}
