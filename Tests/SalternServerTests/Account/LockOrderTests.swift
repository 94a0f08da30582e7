import HTTPCore
import Postgres
import SalternTesting
import Testing

@testable import SalternServer

@Suite struct LockOrderTests {
    /// Acts after which an account of the walk is of no use to the others.
    private static func succeeds(_ status: Int) -> Bool { (200..<300).contains(status) }

    @Test func `whatever writes locks rows in the order that is written down`() async throws {
        try await TestApplication.with { app in
            for sql in LockOrderGuard.script { try await app.administer(sql) }
            // So that log-ins have sessions to end.
            try await app.administer("UPDATE saltern.plans SET max_sessions = 1 WHERE plan = 'default'")
            try await SeparateClient.with(app.database.ownerURL) { owner in
                for act in WritingAct.all {
                    let written = try await WrittenAccount(app)
                    if act.description == "renew recovery codes" || act.description == "remove second factor" {
                        let phone = try await written.phone()
                        _ = try await written.client.post(
                            "/v1/account/totp/confirm", ["totp": .string(phone.code())])
                    }
                    if act.description == "unlock" {
                        try await app.administer("UPDATE saltern.accounts SET locked_at = now()")
                    }
                    // What a right log-in forgets, and a deletion too.
                    if act.description == "log-in" || act.description == "DELETE account" {
                        _ = try await app.logInStatus(written.account.userid, Fixtures.passwordKey("wrong"))
                    }
                    let run = try await act.prepare(written, owner)
                    let status = try await run(0)
                    switch act.description {
                    case "failed log-in": #expect(status == 401)
                    case "register the userid": #expect(status == 409)
                    default: #expect(Self.succeeds(status), "\(act): \(status)")
                    }
                    #expect(try await app.execute(FindLockOrderFindings()) == [], "\(act)")
                }
            }
            try await Self.rarer(app)
            #expect(try await app.execute(FindLockOrderFindings()) == [])
        }
    }

    /// What has no account to begin with, or happens by the way.
    private static func rarer(_ app: TestApplication) async throws {
        let ada = try await app.register()
        let share = try await TestShare(ada.client, ShareFixtures.content(["maxViews": 1]))
        #expect(try await app.client.get(share.path).status == 200)
        #expect(try await app.client.get(share.path).status == 404)
        app.clock.advance(by: .seconds(120))
        #expect(try await ada.client.get("/v1/account").status == 200)
        try await SeparateClient.with(app.database.ownerURL) { owner in
            let signature = InviteTests.signature(app)
            _ = try await owner.run { database in
                let terms = InviteAdministration.Terms(expiresAt: signature.now + .seconds(60), plan: "pro")
                _ = try await InviteAdministration(database: database).create(2, terms, by: signature)
                _ = try await PlanAdministration(database: database).set(
                    "pro", AccountPlan.Changes(), by: signature)
                let walk = NeverUsedAccounts(
                    database: database, createdBefore: signature.now + .seconds(86_400))
                _ = try await walk.delete(by: signature) { _ in true }
            }
        }
    }

    @Test func `every table has one place in the order`() async throws {
        let tables = LockOrder.allCases.flatMap(\.tables)
        #expect(Set(tables).count == tables.count)
        var migrated: Set<String> = []
        for migration in Schema.migrations {
            for match in migration.sql.matches(of: /CREATE TABLE saltern\.(\w+)/) { migrated.insert(String(match.1)) }
        }
        #expect(Set(tables) == migrated)
    }
}
