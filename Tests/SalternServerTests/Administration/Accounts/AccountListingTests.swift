import Postgres
import SalternTesting
import Testing

@testable import SalternServer

@Suite struct AccountListingTests {
    private func list(
        _ app: TestApplication, _ filter: AccountFilter = AccountFilter(), after: String = "", limit: Int = .max
    ) async throws -> (userids: [String], next: String?) {
        try await app.asOwner { database in
            var userids: [String] = []
            let next = try await AccountListing(database: database, sliceSize: 3).list(
                filter, after: after, limit: limit
            ) { userids += $0.map(\.userid) }
            return (userids, next)
        }
    }

    @Test func `accounts are listed in order, by prefix, plan and lock, page by page`() async throws {
        try await TestApplication.with { app in
            let userids = ["ada", "ada2", "adb", "ä", "bob", "carl", "dora", "z"]
            for userid in userids.reversed() { _ = try await app.register(userid) }
            _ = try await AccountAdministrationTests.administer(app) {
                _ = try await $0.lock(.userid("dora"), by: InviteTests.signature(app))
                _ = try await $0.lock(.userid("ada2"), by: InviteTests.signature(app))
                return try await $0.assign("pro", to: .userid("z"), by: InviteTests.signature(app))
            }
            // The order of bytes.
            let ordered = ["ada", "ada2", "adb", "bob", "carl", "dora", "z", "ä"]
            let all = try await list(app)
            #expect(all.userids == ordered)
            #expect(all.next == nil)
            for limit in [1, 3, 4, 7, 8] {
                let page = try await list(app, limit: limit)
                #expect(page.userids == Array(ordered.prefix(limit)))
                let rest = try await list(app, after: #require(page.next))
                #expect(page.userids + rest.userids == ordered)
            }
            var filter = AccountFilter()
            filter.useridPrefix = "ad"
            #expect(try await list(app, filter).userids == ["ada", "ada2", "adb"])
            #expect(try await list(app, filter, after: "ada").userids == ["ada2", "adb"])
            filter.isLocked = true
            #expect(try await list(app, filter).userids == ["ada2"])
            filter.useridPrefix = ""
            #expect(try await list(app, filter).userids == ["ada2", "dora"])
            #expect(try await list(app, filter, limit: 1).next == "ada2")
            filter.isLocked = false
            filter.plan = "pro"
            #expect(try await list(app, filter).userids == ["z"])
            filter.useridPrefix = "%"
            #expect(try await list(app, filter).userids.isEmpty)
            filter.useridPrefix = ""
            filter.plan = nil
            filter.useridPart = "d"
            #expect(try await list(app, filter).userids == ["ada", "ada2", "adb", "dora"])
            // A slice without any of them is not the end.
            #expect(try await list(app, filter, after: "adb", limit: 1).userids == ["dora"])
            filter.useridPart = "2"
            filter.isLocked = true
            #expect(try await list(app, filter).userids == ["ada2"])
            filter.useridPart = "_"
            #expect(try await list(app, filter).userids.isEmpty)
            #expect(AccountFilter.canonicalForm(of: "ADA") == "ada")
            #expect(AccountFilter.canonicalForm(of: "ada") == nil)
        }
    }

    @Test func `a listing by prefix or lock reads an index, and no more than it shows`() async throws {
        try await TestApplication.with { app in
            try await app.administer(
                """
                INSERT INTO saltern.logins (userid, account_id, verifier, kdf_iterations)
                SELECT 'user-' || n, gen_random_uuid(), sha256(n::text::bytea), 600000 FROM generate_series(1, 20000) n;
                INSERT INTO saltern.accounts (account_id, userid, created_at, locked_at)
                SELECT account_id, userid, now(), CASE WHEN userid = 'user-777' THEN now() END FROM saltern.logins;
                ANALYZE saltern.logins; ANALYZE saltern.accounts
                """)
            for (sql, index) in [
                (FindLogins.sql.text, "logins_pkey"), (FindLockedAccounts.sql.text, "accounts_locked"),
            ] {
                let arguments =
                    sql == FindLogins.sql.text ? "('user-5', 'user-5', 'user-6', 50)" : "('', '', '~', NULL, NULL, 50)"
                let types =
                    sql == FindLogins.sql.text ? "(text, text, text, bigint)" : "(text, text, text, text, text, bigint)"
                try await app.administer(
                    """
                    PREPARE listing\(types) AS \(sql);
                    DO $do$ DECLARE line text; plan text := '';
                    BEGIN
                        FOR line IN EXECUTE $x$EXPLAIN EXECUTE listing\(arguments)$x$ LOOP plan := plan || line; END LOOP;
                        ASSERT plan LIKE '%\(index)%', plan;
                        ASSERT plan NOT LIKE '%Seq Scan%', plan;
                    END $do$;
                    DEALLOCATE listing
                    """)
            }
        }
    }

    @Test func `an account is described by what can be seen of it`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register("ada", iterations: 700_000)
            _ = try await ada.createItem()
            let id = try #require(AccountID(pathParameter: ada.id))
            let now = app.clock.now
            for reference in [AccountReference.userid("ada"), .id(id)] {
                let (account, iterations) = try await app.asOwner {
                    try await AccountInspection(database: $0, sessions: SessionPolicy()).describe(reference, now: now)
                }
                #expect(account.id == id)
                #expect(account.items == 1)
                #expect(account.sessions == 1)
                #expect(account.lastUsedAt == now)
                #expect(account.secondFactorSince == nil)
                #expect(account.lockedAt == nil)
                #expect(iterations == 700_000)
            }
            await #expect(throws: AccountRefusal.noSuchAccount) {
                try await app.asOwner {
                    _ = try await AccountInspection(database: $0, sessions: SessionPolicy()).describe(
                        .id(.random()), now: now)
                }
            }
        }
    }
}
