import HTTPCore
import Postgres
import SalternTesting
import Testing

@testable import SalternServer

@Suite struct DeletionTests {
    private static func body(_ account: TestAccount) -> [UInt8] {
        TestClient.document(["currentPasswordKey": .string(account.passwordKey)])
    }

    private static func delete(_ account: TestAccount) async throws -> TestResponse {
        try await account.client.send(.delete, "/v1/account", body: body(account))
    }

    /// What may name an account that is gone.
    private static let kept: Set<String> = ["audit_log.target_account"]

    /// Filled only where the operator has destinations. The last event of an account is its deletion: OutboxTests.
    private static let reported: Set<String> = ["event_queues.account_id", "outgoing_events.account_id"]

    /// An account that owns vaults is deleted with them: VaultTests.
    private static let shared: Set<String> = ["memberships.account_id", "vaults.owner_account"]

    @Test func `nothing of an account is left in any table but the audit stub, and others keep everything`()
        async throws
    {
        try await TestApplication.with { app in
            try await app.prepareAccountRows()
            let ada = try await app.register()
            let bob = try await app.register()
            for account in [ada, bob] { try await app.fillEveryTable(account) }
            let before = try await app.accountRows(ada)
            for (name, rows) in before where !Self.kept.union(Self.reported).union(Self.shared).contains(name) {
                #expect(rows > 0, "\(name) is a place that this test does not fill")
            }
            let bobs = try await app.accountRows(bob)
            #expect(try await Self.delete(ada).status == 204)
            for (name, rows) in try await app.accountRows(ada) {
                #expect(rows == (Self.kept.contains(name) ? 1 : 0), "\(name)")
            }
            #expect(try await app.accountRows(bob) == bobs)
        }
    }

    @Test func `afterwards there is no such session, log-in or userid, and somebody else can be Ada`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register("ada")
            _ = try await ada.createItem()
            let phone = try await app.logIn(ada)
            #expect(try await Self.delete(ada).status == 204)
            for client in [ada.client, phone] { #expect(try await client.get("/v1/account").status == 401) }
            #expect(try await Self.delete(ada).status == 401)
            #expect(try await app.logInStatus("ada", ada.passwordKey) == 401)
            let other = try await app.register("ada")
            #expect(other.id != ada.id)
            #expect(try await other.client.get("/v1/items").array("items")?.isEmpty == true)
        }
    }

    @Test func `the audit log keeps who, what and when, and stays whole`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let before = try await AuditLogTests.databaseTime(app)
            #expect(try await Self.delete(ada).status == 204)
            let entry = try #require(try await app.execute(FindAuditEntries(after: 0, limit: 10)).first)
            #expect(entry.actor == "account")
            #expect(entry.action == "account_deleted")
            #expect(entry.targetAccount?.description == ada.id)
            #expect(entry.detail == nil)
            #expect(before <= entry.occurredAt)
            #expect(entry.occurredAt <= before + .seconds(600))
        }
    }

    @Test func `failures that were counted for the userid or its sessions are forgotten`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register("ada")
            let wrong = Fixtures.passwordKey("wrong")
            #expect(try await app.logInStatus("ada", wrong) == 401)
            #expect(try await app.logInStatus("nobody", wrong) == 401)
            let refused = try await ada.client.send(
                .delete, "/v1/account", body: TestClient.document(["currentPasswordKey": .string(wrong)]))
            #expect(refused.status == 403)
            #expect(try await app.execute(CountFailures()) == [3])
            #expect(try await Self.delete(ada).status == 204)
            #expect(try await app.execute(CountFailures()) == [1])
        }
    }

    private struct CountFailures: Statement {
        typealias Row = Int64
        static let isReadOnly = true
        static let sql: SQL<Self> = "SELECT count(*) FROM saltern.failed_attempts"
    }

    @Test func `live streams end`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let stream = await ada.client.stream("/v1/changes/stream")
            #expect(await stream.next()?.hasPrefix("retry: ") == true)
            #expect(await stream.next() != nil)
            #expect(try await Self.delete(ada).status == 204)
            // Or else this goes on for ever.
            while await stream.next() != nil {}
        }
    }

    @Test func `the present key is needed, and nothing happens without it`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let wrong = TestClient.document(["currentPasswordKey": .string(Fixtures.passwordKey("wrong"))])
            let refused = try await ada.client.send(.delete, "/v1/account", body: wrong)
            #expect(refused.status == 403)
            #expect(refused.code == "wrong_credentials")
            #expect(try await ada.client.delete("/v1/account").code == "missing_body")
            #expect(try await ada.client.send(.delete, "/v1/account", body: Array("{}".utf8)).code == "missing_member")
            #expect(try await ada.client.get("/v1/account").status == 200)
        }
    }

    @Test func `many rows are removed slice by slice, none is passed over`() async throws {
        try await TestApplication.with { app in
            try await app.prepareAccountRows()
            let ada = try await app.register()
            // More than two slices of rows; and some rows that are more than a slice of bytes together.
            try await app.administer(
                """
                INSERT INTO saltern.items
                    (account_id, item_id, revision, collection, format, body, created_at, updated_at)
                SELECT '\(ada.id)', gen_random_uuid(), n, 'default', 'opaque',
                    CASE WHEN n % 500 = 0 THEN convert_to(repeat('x', 24 * 1048576), 'UTF8') ELSE '\\x01' END,
                    now(), now()
                FROM generate_series(1, 2500) n
                """)
            try await app.administer(
                """
                INSERT INTO saltern.security_events (account_id, occurred_at, event_id, kind)
                SELECT '\(ada.id)', now(), gen_random_uuid(), 'exported' FROM generate_series(1, 2500)
                """)
            #expect(try await Self.delete(ada).status == 204)
            #expect(try await app.accountRows(ada).filter { $0.value > 0 }.keys.sorted() == Self.kept.sorted())
        }
    }
}
