import HTTPCore
import Postgres
import SalternTesting
import Testing
import VaultLog

@testable import SalternServer

@Suite struct PurgeTests {
    private func purge(
        _ app: TestApplication, biteSize: Int = 500, biteBytes: Int64 = 1_000_000
    ) async throws -> Purge.Report? {
        let sessions = SessionPolicy(idleTimeout: .seconds(200 * 86_400), lifetime: .seconds(365 * 86_400))
        let policy = PurgePolicy(biteSize: biteSize, biteBytes: biteBytes)
        return try await app.run { [postgres = app.postgres, now = app.clock.now] in
            try await Purge(database: postgres, sessions: sessions, policy: policy, now: now).run()
        }
    }

    private static let day = Duration.seconds(86_400)

    @Test func `tombstones, contents and sessions go when they are due, in small bites, and cursors expire`()
        async throws
    {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let kept = try await ada.createItem()
            for _ in 0..<7 {
                _ = try await ada.client.delete(try await ada.createItem(), ["If-Match": "*"])
            }
            let bob = try await app.register()
            _ = try await bob.client.delete(try await bob.createItem(), ["If-Match": "*"])
            let old = try #require(try await ada.client.get("/v1/changes?limit=1").string("cursor"))
            let behind = SyncCursor(revision: 5, floor: 5).text

            #expect(try await purge(app) == Purge.Report())
            app.clock.advance(by: .seconds(30 * 86_400))
            #expect(try await purge(app, biteSize: 3) == Purge.Report(contents: 8))
            app.clock.advance(by: .seconds(60 * 86_400 - 1))
            #expect(try await purge(app) == Purge.Report())
            let client = try await app.logIn(ada)
            #expect(try await client.get("/v1/changes?since=\(behind)").array("changes")?.count == 5)
            app.clock.advance(by: .seconds(1))
            #expect(try await purge(app, biteSize: 3) == Purge.Report(tombstones: 8))
            #expect(try await purge(app) == Purge.Report())

            #expect(try await client.get("/v1/changes?since=\(behind)").code == "cursor_expired")
            #expect(try await client.get("/v1/changes?since=\(old)").status == 200)
            let all = try await client.get("/v1/changes")
            #expect(all.array("changes")?.count == 1)
            #expect(try await client.get(kept).status == 200)
            #expect(try await client.get("/v1/account").integer("usage.items") == 1)

            app.clock.advance(by: .seconds(200 * 86_400))
            // The first login of each; Ada's second one removed hers, because for the service it was idle.
            let report = try await purge(app, biteSize: 1)
            #expect(report?.sessions == 2)
        }
    }

    @Test func `no bite has more rows or sealed bytes than the policy says, but for a single long row`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            // 128 sealed bytes each, and 428.
            let (item, long) = (StorageBoundTests.item(100), StorageBoundTests.item(400))
            let path = try await ada.createItem(long)
            for _ in 0..<8 {
                app.clock.advance(by: ItemVersion.interval)
                let next = StorageBoundTests.item(100)
                #expect(try await ada.client.put(path, next, ["If-Match": "*"]).status == 200)
            }
            for content in [item, long, item, item, item, item] {
                _ = try await ada.client.delete(try await ada.createItem(content), ["If-Match": "*"])
            }
            try await app.administer(
                """
                CREATE FUNCTION public.refuse_more() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN
                    IF (SELECT count(*) > 3 OR (count(*) > 1 AND sum(octet_length(body)) > 300) FROM gone) THEN
                        RAISE ''too many''; END IF; RETURN NULL; END'
                """)
            for table in ["replaced_contents", "deleted_contents"] {
                try await app.administer(
                    """
                    CREATE TRIGGER bound AFTER DELETE ON saltern.\(table) REFERENCING OLD TABLE AS gone
                        FOR EACH STATEMENT EXECUTE FUNCTION public.refuse_more()
                    """)
            }
            app.clock.advance(by: .seconds(31 * 86_400))
            let report = try await purge(app, biteSize: 3, biteBytes: 300)
            #expect(report == Purge.Report(contents: 6, versions: 8))
            #expect(try await app.execute(FindWrongCounters()) == [])
        }
    }

    @Test func `what was purged stays purged when an older tombstone follows`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            for _ in 0..<2 { _ = try await ada.client.delete(try await ada.createItem(), ["If-Match": "*"]) }
            // Nodes' clocks differ: the later tombstone says that it is the older one.
            try await app.administer(
                "UPDATE saltern.items SET updated_at = updated_at - interval '50 days' WHERE revision = 4")
            let between = SyncCursor(revision: 3, floor: 3).text
            app.clock.advance(by: .seconds(60 * 86_400))
            #expect(try await purge(app)?.tombstones == 1)
            app.clock.advance(by: .seconds(40 * 86_400))
            #expect(try await purge(app)?.tombstones == 1)
            let client = try await app.logIn(ada)
            #expect(try await client.get("/v1/changes?since=\(between)").code == "cursor_expired")
        }
    }

    @Test func `an item that lives again is not purged`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let path = try await ada.createItem()
            _ = try await ada.client.delete(path, ["If-Match": "*"])
            _ = try await ada.client.send(.post, path + "/restore", fields: ["If-Match": "*"])
            app.clock.advance(by: .seconds(91 * 86_400))
            #expect(try await purge(app)?.tombstones == 0)
            let account = try await app.logIn(ada)
            #expect(try await account.get(path).status == 200)
        }
    }

    @Test func `a purge that is cancelled ends after a bite, and takes no account to be held`() async throws {
        try await TestApplication.with(connections: 2) { app in
            for _ in 0..<3 { _ = try await app.register() }
            try await app.administer(
                """
                INSERT INTO saltern.items (account_id, item_id, revision, deleted, collection, created_at, updated_at)
                SELECT account_id, gen_random_uuid(), 1, true, 'default', now(), '2001-01-01' FROM saltern.accounts
                """)
            await #expect(throws: (any Error).self) {
                try await app.run { [postgres = app.postgres, now = app.clock.now] in
                    let purge = Purge(
                        database: postgres, sessions: SessionPolicy(), policy: PurgePolicy(biteSize: 1), now: now)
                    return try await purge.run { removed in
                        if removed > 0 { withUnsafeCurrentTask { $0?.cancel() } }
                    }
                }
            }
            // PostgreSQL frees the lock when it has noticed that the connection was closed.
            try await app.administer("SELECT pg_advisory_xact_lock(x'73616c7470757267'::bigint)")
            #expect(try await purge(app) == Purge.Report(tombstones: 2))
        }
    }

    @Test func `one node purges at a time`() async throws {
        try await TestApplication.with { app in
            let report = try await app.run { [postgres = app.postgres, now = app.clock.now] in
                try await postgres.withConnection { connection in
                    let isTaken = try await connection.execute(TakePurgeLock()).first
                    #expect(isTaken == true)
                    return try await Purge(
                        database: postgres, sessions: SessionPolicy(), policy: PurgePolicy(), now: now
                    ).run()
                }
            }
            #expect(report == nil)
        }
    }

    @Test func `a lock that a transaction holds keeps another node from purging, and goes with it`() async throws {
        try await TestApplication.with { app in
            let reports = try await app.run { [postgres = app.postgres, now = app.clock.now] in
                let purge = Purge(database: postgres, sessions: SessionPolicy(), policy: PurgePolicy(), now: now)
                let during = try await postgres.withTransaction { holder in
                    let isTaken = try await holder.execute(HoldPurgeLock()).first
                    #expect(isTaken == true)
                    return try await purge.run()
                }
                return [during, try await purge.run()]
            }
            #expect(reports == [nil, Purge.Report()])
        }
    }

    @Test func `many accounts have their bites together, but for one that somebody holds`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            try await app.administer(
                """
                INSERT INTO saltern.accounts (account_id, userid, created_at, tombstone_count)
                SELECT md5('account ' || n)::uuid, n, now(), 1 FROM generate_series(1, 39) n;
                INSERT INTO saltern.items (account_id, item_id, revision, deleted, collection, created_at, updated_at)
                SELECT account_id, gen_random_uuid(), 1, true, 'default', now(), '2001-01-01' FROM saltern.accounts
                """)
            let report = try await app.run { [postgres = app.postgres, id = ada.id, now = app.clock.now] in
                try await postgres.withTransaction { holder in
                    _ = try await holder.execute(LockAccount(accountID: try #require(AccountID(pathParameter: id))))
                    return try await Purge(
                        database: postgres, sessions: SessionPolicy(), policy: PurgePolicy(), now: now
                    ).run()
                }
            }
            #expect(report == Purge.Report(tombstones: 39, skippedAccounts: 1))
            #expect(try await purge(app) == Purge.Report(tombstones: 1))
        }
    }

    private func backlog(_ app: TestApplication) async throws -> [String: PurgeBacklog.Part] {
        let backlog = try await app.run { [postgres = app.postgres, now = app.clock.now] in
            try await PurgeBacklog.read(postgres, policy: PurgePolicy(), now: now)
        }
        return Dictionary(uniqueKeysWithValues: backlog.parts.map { ($0.kind, $0) })
    }

    @Test func `due rows of vaults are counted with those of accounts`() async throws {
        try await TestApplication.with { app in
            var vault = try await VaultScene(app)
            let ada = vault.founder
            _ = try await ada.client.delete(try await ada.account.createItem(), ["If-Match": "*"])
            _ = try await vault.invite(as: .reader)
            for _ in 0..<2 {
                let path = "\(vault.path)/items/\(Fixtures.uuid())"
                let put = try await ada.client.put(path, vault.item(), vault.fields(["If-None-Match": "*"]))
                #expect(put.status == 201, "\(put)")
                #expect(try await ada.client.delete(path, vault.fields(["If-Match": "*"])).status == 200)
            }
            #expect(try await backlog(app).values.allSatisfy { $0.rows == 0 && $0.overdue == .zero })

            app.clock.advance(by: .seconds(30 * 86_400 + 7_200))
            var due = try await backlog(app)
            #expect(due["contents"] == PurgeBacklog.Part(kind: "contents", rows: 3, overdue: .seconds(7_200)))
            #expect(
                due["invitations"]
                    == PurgeBacklog.Part(kind: "invitations", rows: 1, overdue: .seconds(29 * 86_400 + 7_200)))

            let now = app.clock.now.unixMicroseconds / 1_000_000
            try await app.administer(
                """
                INSERT INTO saltern.vault_deleted_contents
                    (vault_id, item_id, collection, format, body, created_at, expires_at)
                SELECT vault_id, gen_random_uuid(), 'default', 'opaque', '\\x00', created_at,
                    to_timestamp(\(now)) - interval '5 hours'
                FROM saltern.vaults, generate_series(1, 1000) n;
                INSERT INTO saltern.vault_replaced_contents
                    (vault_id, item_id, revision, collection, format, body, created_at, updated_at, replaced_at,
                    expires_at)
                SELECT vault_id, gen_random_uuid(), n, 'default', 'opaque', '\\x00', created_at, created_at, created_at,
                    to_timestamp(\(now)) - n * interval '1 hour'
                FROM saltern.vaults, generate_series(1, 4) n
                """)
            due = try await backlog(app)
            #expect(
                due["contents"]
                    == PurgeBacklog.Part(kind: "contents", rows: PurgeBacklog.countLimit, overdue: .seconds(18_000)))
            #expect(due["versions"] == PurgeBacklog.Part(kind: "versions", rows: 4, overdue: .seconds(14_400)))

            app.clock.advance(by: .seconds(90 * 86_400))
            #expect(try await backlog(app)["tombstones"]?.rows == 3)
            _ = try await purge(app)
            #expect(try await backlog(app).values.allSatisfy { $0.rows == 0 && $0.overdue == .zero })
        }
    }

    @Test func `what is due and not yet purged is told of each kind, with its age, and nothing is afterwards`()
        async throws
    {
        try await TestApplication.with { app in
            let ada = try await app.register()
            for _ in 0..<3 { _ = try await ada.client.delete(try await ada.createItem(), ["If-Match": "*"]) }
            #expect(try await backlog(app).values.allSatisfy { $0.rows == 0 && $0.overdue == .zero })

            app.clock.advance(by: .seconds(30 * 86_400 + 7_200))
            var due = try await backlog(app)
            #expect(due["contents"] == PurgeBacklog.Part(kind: "contents", rows: 3, overdue: .seconds(7_200)))
            #expect(due["tombstones"]?.rows == 0)

            // A committed rotation has released what nobody knows the age of.
            try await app.administer(
                """
                UPDATE saltern.deleted_contents SET expires_at = 'epoch' WHERE item_id IN (
                    SELECT item_id FROM saltern.deleted_contents LIMIT 1)
                """)
            due = try await backlog(app)
            #expect(due["contents"] == PurgeBacklog.Part(kind: "contents", rows: 3, overdue: .seconds(7_200)))

            app.clock.advance(by: .seconds(500 * 86_400))
            let now = app.clock.now.unixMicroseconds / 1_000_000
            try await app.administer(
                """
                INSERT INTO saltern.failed_attempts
                    (subject, counter, counts, since, latest, streak, first_failed_at, last_failed_at, blocked_until)
                SELECT sha256(n::text::bytea), sha256(n::text::bytea), '{1,0,0,0,0}', array_fill(now(), '{5}'),
                    array_fill(now(), '{5}'), 1, to_timestamp(\(now)) - n * interval '31 days',
                    to_timestamp(\(now)) - CASE WHEN n > 3 THEN interval '1 day' ELSE n * interval '31 days' END,
                    to_timestamp(\(now))
                FROM generate_series(1, 1203) n;
                INSERT INTO saltern.security_events (account_id, occurred_at, event_id, kind)
                SELECT account_id, to_timestamp(\(now)) - n * interval '1 minute' - interval '400 days',
                    gen_random_uuid(), 'exported'
                FROM saltern.accounts, generate_series(1, 1200) n
                """)
            due = try await backlog(app)
            // The others are older, and somebody goes on adding to them.
            #expect(due["attempts"]?.rows == 3)
            #expect(due["attempts"]?.overdue == .seconds(3 * 31 * 86_400 - 30 * 86_400))
            #expect(due["events"]?.rows == PurgeBacklog.countLimit)
            #expect(due["events"]?.overdue == .seconds(1_200 * 60))

            _ = try await purge(app)
            #expect(try await backlog(app).values.allSatisfy { $0.rows == 0 && $0.overdue == .zero })
        }
    }

    @Test func `what is due is found by its index`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            try await app.administer(
                """
                INSERT INTO saltern.items
                    (account_id, item_id, revision, deleted, collection, format, body, created_at, updated_at)
                SELECT '\(ada.id)', gen_random_uuid(), n, n % 50 = 0, 'default', CASE WHEN n % 50 > 0 THEN 'opaque' END,
                    CASE WHEN n % 50 > 0 THEN '\\x00'::bytea END, now(), now() - n * interval '1 minute'
                FROM generate_series(1, 20000) n;
                ANALYZE saltern.items
                """)
            let plan = try await app.execute(ExplainOldTombstones())
            #expect(
                plan.contains { $0.contains("Index Scan using tombstones_by_age") }, "\(plan.joined(separator: "\n"))")
        }
    }

    private struct ExplainOldTombstones: Statement {
        typealias Row = String
        static let isReadOnly = true
        static let sql: SQL<Self> = "EXPLAIN \(FindOldTombstones.sql, of: \.explained)"
        let explained = FindOldTombstones(before: Timestamp(unixSeconds: 0), limit: 500)
    }
}
