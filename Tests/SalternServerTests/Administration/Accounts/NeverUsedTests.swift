import Postgres
import SalternTesting
import Testing

@testable import SalternServer

@Suite struct NeverUsedTests {
    private func walk(
        _ app: TestApplication, deleting: Bool, olderThan age: Duration = .seconds(30 * 86_400),
        proceed: @escaping @Sendable (NeverUsedAccounts.Progress) -> Bool = { _ in true }
    ) async throws -> NeverUsedAccounts.Progress {
        let signature = InviteTests.signature(app)
        return try await app.asOwner {
            let accounts = NeverUsedAccounts(database: $0, createdBefore: signature.now - age)
            return deleting ? try await accounts.delete(by: signature, proceed) : try await accounts.count(proceed)
        }
    }

    /// A way in which an account was used, as SQL on the account `$`. All are registered at the beginning of 2026; moments are
    /// written out, because a cluster adds nothing to a column's time in an UPDATE.
    private static let uses = [
        "UPDATE saltern.accounts SET revision = 1 WHERE account_id = $",
        "UPDATE saltern.accounts SET keyring_revision = 2 WHERE account_id = $",
        "UPDATE saltern.accounts SET credential_revision = 2 WHERE account_id = $",
        "UPDATE saltern.accounts SET locked_at = now() WHERE account_id = $",
        "UPDATE saltern.accounts SET created_at = '2026-02-10Z' WHERE account_id = $",
        "UPDATE saltern.sessions SET last_used_at = '2026-01-01 00:01:01Z' WHERE account_id = $",
        "INSERT INTO saltern.recoveries VALUES ($, sha256('r'), NULL, now())",
        "INSERT INTO saltern.second_factors VALUES ($, sha256('s'), now())",
        """
        INSERT INTO saltern.passkeys VALUES ($, sha256('p'), -7, decode(repeat('00', 65), 'hex'), 0, false, false, 'phone',
            false, NULL, NULL, now())
        """,
        "INSERT INTO saltern.memberships VALUES ($, gen_random_uuid(), gen_random_uuid(), true, now())",
        "INSERT INTO saltern.account_shares VALUES ($, substr(sha256('x'), 1, 16), now())",
        "INSERT INTO saltern.rotations (account_id, rotation_id, opened_at, expires_at) VALUES ($, $, now(), now())",
        "INSERT INTO saltern.receipts VALUES ($, 'receipt', now())",
    ]

    private struct TablesOfAccounts: Statement {
        typealias Row = String
        static let sql: SQL<Self> = """
            SELECT c.relname::text FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
            WHERE c.relnamespace = 'saltern'::regnamespace AND c.relkind IN ('r', 'p') AND a.attname = 'account_id'
            """
    }

    /// Their rows exist since the registration, end by themselves, or follow from what is a use.
    private static let tablesWithoutUse: Set<String> = [
        "accounts", "logins", "sessions", "items", "deleted_contents", "replaced_contents", "second_factor_codes",
        "rotation_items", "kept_keyrings", "security_events", "event_queues", "outgoing_events", "used_challenges",
    ]

    @Test func `each table with rows of accounts is judged`() async throws {
        try await TestApplication.with { app in
            let tables = Set(try await app.execute(TablesOfAccounts())).subtracting(Self.tablesWithoutUse)
            let uses = Self.uses.joined()
            #expect(tables.count == 7)
            for table in tables { #expect(uses.contains("INSERT INTO saltern.\(table) "), "\(table)") }
        }
    }

    @Test func `every use keeps an account, and those without any go with a row each`() async throws {
        try await TestApplication.with { app in
            var kept: Set<String> = []
            for use in Self.uses {
                let account = try await app.register()
                kept.insert(account.id)
                try await app.administer(use.replacing("$", with: "'\(account.id)'"))
            }
            let unused = [try await app.register(), try await app.register(), try await app.register()]
            // A session that was used in the first minute only, and one that has ended, are no use.
            try await app.administer(
                "UPDATE saltern.sessions SET last_used_at = '2026-01-01 00:01Z' WHERE account_id = '\(unused[0].id)'"
            )
            try await app.administer("DELETE FROM saltern.sessions WHERE account_id = '\(unused[1].id)'")
            #expect(try await walk(app, deleting: true).deleted == 0)

            app.clock.advance(by: .seconds(31 * 86_400))
            let counted = try await walk(app, deleting: false)
            #expect(counted.found == 3)
            #expect(counted.looked == Self.uses.count + 3)
            #expect(counted.total == Self.uses.count + 3)
            #expect(counted.deleted == 0)
            let deleted = try await walk(app, deleting: true)
            #expect(deleted.deleted == 3)
            let entries = try await AccountAdministrationTests.audit(app)
            #expect(Set(entries.map { $0.targetAccount?.description }) == Set(unused.map(\.id)))
            #expect(entries.allSatisfy { $0.action == "account_deleted" && $0.detail == "never used" })
            #expect(try await app.execute(CountRows()).first?[1] == Int64(Self.uses.count))
            #expect(try await walk(app, deleting: true).deleted == 0)
        }
    }

    @Test func `a wave of bots goes in batches, can be ended between two, and is gone after the second run`()
        async throws
    {
        try await TestApplication.with { app in
            let ada = try await app.register()
            _ = try await ada.createItem()
            try await app.administer(
                """
                INSERT INTO saltern.logins (userid, account_id, verifier, kdf_iterations)
                SELECT 'bot-' || n, gen_random_uuid(), sha256(n::text::bytea), 600000 FROM generate_series(1, 170) n;
                INSERT INTO saltern.accounts (account_id, userid, created_at)
                SELECT account_id, userid, '2025-01-01' FROM saltern.logins WHERE userid LIKE 'bot-%'
                """)
            let first = try await walk(app, deleting: true) { $0.deleted < 100 }
            #expect(first.deleted == 100)
            #expect((120...250).contains(first.total), "about 171")
            let second = try await walk(app, deleting: true)
            #expect(second.deleted == 70)
            #expect(second.total == second.looked)
            #expect(try await app.execute(CountRows()) == [[1, 1, 1]])
            #expect(try await AuditLogTests.verify(app).sequence == 170)
            #expect(try await ada.client.get("/v1/account").status == 200)
        }
    }

    @Test func `two clean-ups at once and people who delete themselves never wait for each other in a ring`()
        async throws
    {
        try await TestApplication.with(connections: 4) { app in
            var people: [TestAccount] = []
            for _ in 0..<40 { people.append(try await app.register()) }
            app.clock.advance(by: .seconds(40 * 86_400))
            let deleted = try await withThrowingTaskGroup(of: Int.self) { group in
                for _ in 0..<2 { group.addTask { try await walk(app, deleting: true).deleted } }
                for person in people.prefix(20) {
                    group.addTask {
                        let outcome = try? await AccountAdministrationTests.administer(app) {
                            try await $0.delete(.userid(person.userid), by: InviteTests.signature(app))
                        }
                        return outcome == nil ? 0 : 1
                    }
                }
                return try await group.reduce(0, +)
            }
            #expect(deleted == 40)
            #expect(try await app.execute(CountRows()) == [[0, 0, 0]])
            #expect(try await AuditLogTests.verify(app).sequence == 40)
        }
    }
}
