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
                    _ = try await connection.execute(PrepareChanges())
                    _ = try await connection.execute(ForceGenericPlan())
                    let generic = try await connection.execute(ExplainChanges())
                    _ = try await connection.execute(ForceCustomPlan())
                    return [generic, try await connection.execute(ExplainChanges())]
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
        ANALYZE saltern.items; ANALYZE saltern.accounts
        """

    private struct ForceGenericPlan: Statement {
        typealias Row = Void
        static let sql = "SET plan_cache_mode = force_generic_plan"
    }

    private struct ForceCustomPlan: Statement {
        typealias Row = Void
        static let sql = "SET plan_cache_mode = force_custom_plan"
    }

    private struct PrepareChanges: Statement {
        typealias Row = Void
        static let sql = "PREPARE changes (uuid, bigint, bigint, bigint, bigint) AS \(FindChanges.sql)"
    }

    private struct ExplainChanges: Statement {
        static let sql = """
            EXPLAIN (ANALYZE, COSTS off, TIMING off, SUMMARY off)
            EXECUTE changes('\(ChangesPlanTests.account)', 4000, 4000, 100, 4194304)
            """

        static func decode(_ row: inout RowReader) throws(PostgresError) -> String { try row.next() }
    }
}
