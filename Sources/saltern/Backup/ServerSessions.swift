import CommandLineKit
import Postgres

/// The sessions of servers in a database that is about to be restored.
///
/// A server disconnects within seconds from a database that has lost its schema or has the mark of a restore. It does
/// not use new connections there. So once the sessions from before the mark are gone, no server uses the restored rows
/// until the mark is removed. A pooler that exchanges sessions keeps its own.
enum ServerSessions {
    /// The time limit for servers, which check every five seconds.
    private static let patience = Duration.seconds(20)
    private static let interval = Duration.milliseconds(200)

    /// Waits for the current sessions to end. Call it when the mark is set.
    /// - Throws: ``CommandFailure`` that names the remaining sessions.
    static func waitUntilGone(_ console: Console, within patience: Duration = patience) async throws {
        let wish = console.wish
        try await DatabaseCommand.asOwner(console, needsSchema: false) { database in
            var left = try await database.execute(FindServerSessions())
            if !left.isEmpty { console.notice("waiting for servers to disconnect from the database", code: "waiting") }
            let deadline = ContinuousClock.now + patience
            while !left.isEmpty {
                if let wish, wish.isThere { throw wish.fulfilled("ended by a signal") }
                guard ContinuousClock.now < deadline else { throw CommandFailure(refusal(left)) }
                try await Task.sleep(for: interval)
                let present = try await database.execute(FindServerSessions()).map(\.process)
                left.removeAll { !present.contains($0.process) }
            }
        }
    }

    /// Reports current sessions after a rollback of the database itself, which servers may keep using.
    static func tell(_ console: Console) async throws {
        let there = try await DatabaseCommand.asOwner(console) { try await $0.execute(FindServerSessions()) }
        guard !there.isEmpty else { return }
        console.notice(
            "servers are connected to the database: \(names(there)): revisions and tokens that they issued after the "
                + "rollback may be repeated", code: "servers_connected")
    }

    private static func refusal(_ sessions: [FindServerSessions.Row]) -> String {
        "servers are still connected to the database: \(names(sessions)): stop them, or run RECONNECT in "
            + "the pooler that keeps their sessions, and restore again"
    }

    private static func names(_ sessions: [FindServerSessions.Row]) -> String {
        let names = Dictionary(grouping: sessions, by: \.name).map { "\($0.value.count) of \($0.key)" }
        return names.sorted().joined(separator: ", ")
    }
}

/// Returns sessions of roles with a server's rights.
///
/// It excludes superusers and the current role, which have those rights too: one such session is the command's own.
private struct FindServerSessions: Statement {
    private let identity = DatabaseIdentity.applicationName

    struct Row: DecodableRow {
        let process: Int32
        /// The role and the application's name, independent of the session's use.
        let name: String

        init(row: inout RowReader) throws(PostgresError) {
            process = try row.next()
            name = try row.next()
        }
    }

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT a.pid, r.rolname || coalesce(' (' || nullif(
            CASE WHEN a.application_name LIKE 'saltern %' THEN 'saltern' ELSE a.application_name END, '') || ')', '')
        FROM pg_catalog.pg_stat_activity a JOIN pg_catalog.pg_roles r ON r.oid = a.usesysid
            JOIN pg_catalog.pg_roles g ON g.rolname = 'saltern_server'
        WHERE a.datname = pg_catalog.current_database() AND NOT r.rolsuper AND r.rolname <> current_user
            AND pg_catalog.pg_has_role(r.oid, g.oid, 'MEMBER')
            AND a.application_name NOT LIKE \(\.identity) || '%'
        """
}
