import Foundation
import Postgres
import SalternTesting
import Testing

@testable import SalternServer

@Suite struct SchemaTests {
    @Test func `the program holds every migration of the folder, byte for byte`() throws {
        let files = try FileManager.default.contentsOfDirectory(atPath: Self.folder("Migrations"))
            .filter { $0.hasSuffix(".sql") }.sorted()
        let names = Schema.migrations.map { migration in
            "\(String(repeating: "0", count: 4 - String(migration.version).count))\(migration.version)_\(migration.name).sql"
        }
        #expect(files == names)
        for (file, migration) in zip(files, Schema.migrations) {
            let text = try String(contentsOfFile: Self.folder("Migrations") + "/" + file, encoding: .utf8)
            #expect(migration.sql == text, "\(file)")
        }
        #expect(Schema.migrations.map(\.version) == Array(1...Schema.known))
    }

    @Test func `parts.txt has every part that the migrations make, and no other`() async throws {
        try await TestApplication.with { app in
            let found = Set(try await app.execute(FindSchemaParts(role: Schema.serverRole)))
            // Who may change a table may change each of its columns.
            let parts = found.filter { part in
                guard let column = part.wholeMatch(of: /GRANT (\w+) \(\w+\) ON (\w+)/) else { return true }
                return !found.contains("GRANT \(column.1) ON \(column.2)")
            }
            let text = try String(contentsOfFile: Self.folder("Migrations/parts.txt"), encoding: .utf8)
            #expect(text == parts.sorted().map { $0 + "\n" }.joined())
        }
    }

    @Test func `every table of an account has a key that starts with it, and nothing that cannot be distributed`()
        async throws
    {
        try await TestApplication.with { app in
            let tables = try await app.execute(DescribeTables())
            #expect(tables.count >= 20)
            for table in tables {
                #expect(
                    Schema.placements.contains { $0.table == table.name }, "\(table.name) has no place on a cluster")
                if table.name == "schema_migrations" { continue }
                if let distribution = Self.distributionColumn(of: table.name) {
                    #expect(
                        table.uniqueKeys.allSatisfy { $0.hasPrefix(distribution) }, "\(table.name) \(table.uniqueKeys)")
                    #expect(table.uniqueKeys.count == 1, "\(table.name)")
                }
                #expect(table.foreignKeys == 0, "\(table.name)")
                #expect(table.triggers == 0, "\(table.name)")
                #expect(table.generatedDefaults == 0, "\(table.name)")
                // The server's role owns nothing.
                #expect(table.owner != "saltern_server", "\(table.name)")
            }
            #expect(try await app.execute(CountSequences()) == [0])
        }
    }

    /// The column by whose value a table's rows are spread over nodes; nil for a table that every node has whole.
    static func distributionColumn(of table: String) -> String? {
        guard case .spread(let column, _) = Schema.placements.first(where: { $0.table == table })?.kind else {
            return nil
        }
        return column
    }

    @Test func `the server's role can read and write rows and do nothing else`() async throws {
        try await TestApplication.with { app in
            for sql in [
                "CREATE TABLE saltern.mine (id int)", "DROP TABLE saltern.items", "TRUNCATE saltern.items",
                "ALTER TABLE saltern.items ADD COLUMN x int", "UPDATE saltern.plans SET max_items = 1",
                "DELETE FROM saltern.plans", "UPDATE saltern.installation SET salt_prefix = 'x'",
                "DELETE FROM saltern.installation", "DELETE FROM saltern.schema_migrations",
                "DELETE FROM saltern.audit_log", "UPDATE saltern.audit_log SET actor = 'x'",
                "DELETE FROM saltern.audit_head", "UPDATE saltern.invites SET expires_at = 'infinity'",
                "DELETE FROM saltern.services", "UPDATE saltern.services SET audience = 'x'",
                "DELETE FROM saltern.invites", "INSERT INTO saltern.invites SELECT * FROM saltern.invites",
                "INSERT INTO saltern.schema_migrations VALUES (9, 'x', sha256('x'), now())", "CREATE SCHEMA mine",
            ] {
                let error = await #expect(throws: PostgresError.self, "\(sql)") {
                    try await app.script(sql, url: app.database.serverURL)
                }
                #expect(error?.sqlState == .insufficientPrivilege, "\(sql)")
            }
        }
    }

    private static let impossibleRows = [
        "INSERT INTO saltern.logins VALUES ('a', gen_random_uuid(), '\\x00', 600000)",
        "INSERT INTO saltern.logins VALUES ('', gen_random_uuid(), sha256('x'), 600000)",
        "INSERT INTO saltern.logins VALUES ('a', gen_random_uuid(), sha256('x'), 10000001)",
        """
        INSERT INTO saltern.shares
            (share_id, manage_hash, format, salt, iterations, sealed, created_at, updated_at, max_views, views)
        VALUES ('\\x00', sha256('x'), 'opaque', sha256('x'), 1000, '\\x00', now(), now(), 1, 2)
        """,
        """
        INSERT INTO saltern.failed_attempts
            (subject, counter, counts, since, latest, streak, first_failed_at, last_failed_at, blocked_until)
        VALUES (sha256('x'), sha256('x'), '{1}', ARRAY[now()], ARRAY[now()], 1, now(), now(), now())
        """,
        "INSERT INTO saltern.accounts (account_id, userid, created_at, item_count) VALUES (gen_random_uuid(), 'a', now(), -1)",
        """
        INSERT INTO saltern.items (account_id, item_id, revision, collection, created_at, updated_at)
        VALUES (gen_random_uuid(), gen_random_uuid(), 1, 'default', now(), now())
        """,
        """
        INSERT INTO saltern.items (account_id, item_id, revision, deleted, collection, format, body, created_at, updated_at)
        VALUES (gen_random_uuid(), gen_random_uuid(), 1, true, 'default', 'opaque', '\\x00', now(), now())
        """,
    ]

    @Test func `the database itself refuses rows that cannot be`() async throws {
        try await TestApplication.with { app in
            for sql in Self.impossibleRows {
                let error = await #expect(throws: PostgresError.self, "\(sql)") { try await app.administer(sql) }
                #expect(error?.sqlState == .checkViolation, "\(sql)")
            }
        }
    }

    /// A folder of the package, found from this file.
    static func folder(_ name: String) -> String {
        URL(filePath: #filePath).appending(path: "../../../../../" + name).standardized.path
    }
}

/// Every table of the schema with what matters for distribution.
private struct DescribeTables: Statement {
    struct Row: Sendable {
        let name: String
        let owner: String
        /// Columns of each unique index, joined by commas.
        let uniqueKeys: [String]
        let foreignKeys: Int64
        let triggers: Int64
        let generatedDefaults: Int64
    }

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT c.relname::text, pg_get_userbyid(c.relowner)::text,
            ARRAY(
                SELECT (
                    SELECT string_agg(a.attname, ',' ORDER BY k.place)
                    FROM unnest(x.indkey::int2[]) WITH ORDINALITY AS k(number, place)
                    JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = k.number
                ) FROM pg_index x WHERE x.indrelid = c.oid AND x.indisunique
            ),
            (SELECT count(*) FROM pg_constraint k WHERE k.conrelid = c.oid AND k.contype = 'f'),
            (SELECT count(*) FROM pg_trigger t WHERE t.tgrelid = c.oid),
            (SELECT count(*) FROM pg_attrdef d WHERE d.adrelid = c.oid AND pg_get_expr(d.adbin, d.adrelid) ~ '\\(')
        FROM pg_class c
        WHERE c.relnamespace = 'saltern'::regnamespace AND c.relkind IN ('r', 'p')
        ORDER BY c.relname
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row { try row.read(Row.init) }
}

/// Sequences of the schema.
private struct CountSequences: Statement {
    typealias Row = Int64
    static let isReadOnly = true
    static let sql: SQL<Self> =
        "SELECT count(*) FROM pg_class WHERE relnamespace = 'saltern'::regnamespace AND relkind = 'S'"
}
