import Postgres
import SalternTesting
import Testing

@testable import SalternServer

/// A page costs what it shows, however many items there are beside and before it.
@Suite struct ChangesPlanTests {
    static let account = "00000000-0000-0000-0000-0000000000aa"

    @Test func `a page reads its own changes by the index and no others, with either kind of plan`() async throws {
        try await TestApplication.with { app in
            try await app.administer(Self.fill)
            let plans = try await app.run { [postgres = app.postgres] in
                try await postgres.withConnection { connection in
                    let changes = try Owned(
                        accountID: #require(AccountID(pathParameter: Self.account)),
                        read: FindChanges(
                            range: ChangeRange(
                                since: SyncCursor(revision: 4_000, floor: 4_000), collection: nil, limit: 100,
                                listsAllTombstones: false),
                            byteLimit: 4_194_304))
                    _ = try await connection.execute(
                        Run("PREPARE changes\(SQLLiteral.types(of: changes)) AS \(Owned<FindChanges>.sql.text)"))
                    let explain = Explain(
                        "EXPLAIN (ANALYZE, COSTS off, TIMING off, SUMMARY off) "
                            + "EXECUTE changes\(SQLLiteral.arguments(of: changes))")
                    _ = try await connection.execute(Run("SET plan_cache_mode = force_generic_plan"))
                    let generic = try await connection.execute(explain)
                    _ = try await connection.execute(Run("SET plan_cache_mode = force_custom_plan"))
                    return [generic, try await connection.execute(explain)]
                }
            }
            for plan in plans {
                let scan = plan.first { $0.contains("Index Scan using items_by_revision") }
                #expect(scan?.contains("rows=101 ") == true, "\(plan.joined(separator: "\n"))")
                #expect(!plan.contains { $0.contains("Seq Scan on items") || $0.contains("Bitmap Heap Scan on items") })
            }
        }
    }

    /// 100 accounts with 100 items each, and one with 5,000.
    private static let fill = """
        INSERT INTO saltern.accounts (account_id, userid, revision, created_at)
        VALUES ('\(account)', 'a', 5000, now());
        INSERT INTO saltern.items (account_id, item_id, revision, collection, format, body, created_at, updated_at)
        SELECT '\(account)', gen_random_uuid(), n, 'default', 'opaque', '\\x00', now(), now()
        FROM generate_series(1, 5000) n;
        INSERT INTO saltern.items (account_id, item_id, revision, collection, format, body, created_at, updated_at)
        SELECT ('00000000-0000-0000-0001-' || lpad(a::text, 12, '0'))::uuid, gen_random_uuid(), n, 'default', 'opaque',
            '\\x00', now(), now()
        FROM generate_series(1, 100) a, generate_series(1, 100) n;
        ANALYZE saltern.items; ANALYZE saltern.accounts;
        CREATE FUNCTION public.run(command text) RETURNS void LANGUAGE plpgsql AS 'BEGIN EXECUTE command; END';
        CREATE FUNCTION public.explained(command text) RETURNS SETOF text LANGUAGE plpgsql
            AS 'BEGIN RETURN QUERY EXECUTE command; END'
        """

    private struct Run: Statement {
        typealias Row = Void
        static let sql: SQL<Self> = "SELECT public.run(\(\.command))"
        let command: String

        init(_ command: String) { self.command = command }
    }

    private struct Explain: Statement {
        typealias Row = String
        static let sql: SQL<Self> = "SELECT * FROM public.explained(\(\.command))"
        let command: String

        init(_ command: String) { self.command = command }
    }
}
