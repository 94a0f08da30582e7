import HTTPCore
import Postgres
import SalternTesting
import Testing

@testable import SalternServer

/// An operation on an account that has reached a bound reads little more than below it, and not more and more: neither rows
/// that were removed and not vacuumed yet, nor, by a plan of a time when a table was small, whole tables.
@Suite struct CostAtBoundTests {
    @Test func `log-ins at the plan's number of sessions read little more than below it`() async throws {
        try await Self.measuring { app in
            let ada = try await app.register()
            let logIn: @Sendable () async throws -> Void = { _ = try await app.logIn(ada) }
            try await Self.expectFlat(app, below: 64, ofThem: 24, operation: logIn)
        }
    }

    @Test func `sessions that are opened and ended read no more and no less once a hundred ends are noted`()
        async throws
    {
        try await Self.measuring { app in
            let ada = try await app.register()
            try await Self.expectFlat(app, below: 64, ofThem: 24) {
                let client = try await app.logIn(ada)
                #expect(try await client.delete("/v1/sessions/current").status == 204)
            }
        }
    }

    @Test func `events of one kind cost no more once there are a hundred`() async throws {
        try await Self.measuring { app in
            let ada = try await app.register()
            try await Self.expectFlat(app, below: 64, ofThem: 24) {
                let receipt = JSONValue.string(Fixtures.uuid())
                let status = try await ada.client.put("/v1/account/receipt", ["receipt": receipt]).status
                #expect(status < 300)
            }
        }
    }

    @Test func `deletions at the bounds of tombstones and kept contents read little more than below them`() async throws
    {
        try await Self.measuring { app in
            try await app.setPlan(
                StorageBound(items: 64, itemBytes: 1_024, bytes: 1 << 20, sessions: 100, shares: 3))
            let ada = try await app.register()
            try await StorageBoundTests.fillTombstones(app, of: ada.id)
            try await Self.expectFlat(app, below: 48, ofThem: 24) {
                let path = try await ada.createItem()
                #expect(try await ada.client.delete(path, ["If-Match": "*"]).status == 200)
            }
        }
    }

    @Test func `shares that are used up read no more however many were`() async throws {
        try await Self.measuring { app in
            let ada = try await app.register()
            try await Self.expectFlat(app, below: 64, ofThem: 24) {
                let share = try await TestShare(ada.client, ShareFixtures.content(["maxViews": 1]))
                #expect(try await app.client.get(share.path).status == 200)
            }
        }
    }

    @Test func `failures that a success forgets read no more however many were`() async throws {
        try await Self.measuring { app in
            let ada = try await app.register()
            try await Self.expectFlat(app, below: 64, ofThem: 24) {
                #expect(try await app.logInStatus(ada.userid, Fixtures.passwordKey("wrong")) == 401)
                let client = try await app.logIn(ada)
                #expect(try await client.delete("/v1/sessions/current").status == 204)
            }
        }
    }

    // MARK: Measuring

    /// Lends a service whose database is never vacuumed and whose blocks are counted.
    private static func measuring(_ body: (TestApplication) async throws -> Void) async throws {
        try await TestApplication.with(connections: 1) { app in
            try await app.administer("CREATE EXTENSION pg_stat_statements SCHEMA public")
            for table in SkewedDatabase.tables + ["receipts"] {
                try await app.administer("ALTER TABLE saltern.\(table) SET (autovacuum_enabled = false)")
            }
            try await body(app)
        }
    }

    /// Expects that the operation reads at most three times as many blocks at its bound as below it, and that this stays so
    /// while others fill the tables and the account leaves dead rows.
    /// - Parameters:
    ///   - below: How many are done below the bound; the last `ofThem` of those are measured.
    private static func expectFlat(
        _ app: TestApplication, below: Int, ofThem measured: Int, operation: @Sendable () async throws -> Void
    ) async throws {
        func blocks(_ count: Int) async throws -> Int64 {
            let before = try await app.execute(SumBlocks()).first ?? 0
            for _ in 0..<count { try await operation() }
            return (try await app.execute(SumBlocks()).first ?? 0) - before
        }
        _ = try await blocks(below - measured)
        let first = try await blocks(measured) / Int64(measured)
        _ = try await blocks(136)
        let early = try await blocks(64) / 64
        try await app.fillByOthers()
        _ = try await blocks(320)
        let late = try await blocks(64) / 64
        #expect(early <= 3 * first, "\(first) blocks below the bound, \(early) at it")
        #expect(late <= early + early / 4 + 8, "\(early) blocks at the bound, \(late) later")
    }
}

/// Blocks that the statements of the database have read so far, from wherever.
private struct SumBlocks: Statement {
    typealias Row = Int64
    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT coalesce(sum(s.shared_blks_hit + s.shared_blks_read), 0)::bigint
        FROM public.pg_stat_statements s JOIN pg_database d ON d.oid = s.dbid
        WHERE d.datname = current_database() AND s.query LIKE '%saltern.%' AND s.query NOT LIKE '%generate_series%'
            AND s.query NOT LIKE 'DELETE FROM saltern.% WHERE account_id = ANY%'
        """
}

extension TestApplication {
    /// Other accounts have rows in the tables that the operations use, and had more.
    fileprivate func fillByOthers() async throws {
        try await administer(
            """
            INSERT INTO saltern.security_events (account_id, occurred_at, event_id, kind)
            SELECT gen_random_uuid(), '2026-01-01', gen_random_uuid(), 'session_ended' FROM generate_series(1, 20000) n;
            INSERT INTO saltern.sessions (account_id, token_hash, session_id, created_at, last_used_at, expires_at)
            SELECT gen_random_uuid(), sha256(n::text::bytea), gen_random_uuid(), '2026-01-01', '2026-01-01', '2126-01-01'
            FROM generate_series(1, 20000) n;
            INSERT INTO saltern.account_shares (account_id, share_id, created_at)
            SELECT gen_random_uuid(), substr(sha256(n::text::bytea), 1, 16), '2026-01-01' FROM generate_series(1, 20000) n;
            INSERT INTO saltern.deleted_contents
                (account_id, item_id, collection, format, body, created_at, expires_at)
            SELECT gen_random_uuid(), gen_random_uuid(), 'default', 'opaque', '\\x00', '2026-01-01', '2126-01-01'
            FROM generate_series(1, 20000) n
            """)
    }
}
