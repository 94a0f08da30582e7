import HTTPCore
import Postgres
import SalternTesting
import Testing

@testable import SalternServer

@Suite struct AccountAdministrationTests {
    /// Runs `body` with the rights of the schema's owner.
    static func administer<Result: Sendable>(
        _ app: TestApplication, _ body: @escaping @Sendable (AccountAdministration) async throws -> Result
    ) async throws -> Result {
        try await app.asOwner { try await body(AccountAdministration(database: $0)) }
    }

    static func events(_ app: TestApplication, of account: TestAccount) async throws -> [AccountEvent] {
        try await app.asOwner {
            try await AccountInspection(database: $0, sessions: SessionPolicy()).events(
                .userid(account.userid), limit: 100)
        }
    }

    static func audit(_ app: TestApplication) async throws -> [AuditEntry] {
        let postgres = app.postgres
        return try await app.run { try await AuditReview(database: postgres).latest(100) }
    }

    @Test func `a locked account's sessions end, its key opens nothing, and unlocking it undoes that`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            _ = try await app.logIn(ada)
            app.clock.advance(by: .seconds(1))
            let signature = InviteTests.signature(app)
            let locked = try await Self.administer(app) { try await $0.lock(.userid(ada.userid), by: signature) }
            #expect(locked.isChanged)
            #expect(locked.sessionsEnded == 2)
            #expect(try await ada.client.get("/v1/account").status == 401)
            let refused = try await app.client.post(
                "/v1/sessions", ["userid": .string(ada.userid), "passwordKey": .string(ada.passwordKey)])
            #expect(refused.code == "wrong_credentials")
            // What is so already is not done again.
            let again = try await Self.administer(app) { try await $0.lock(.id(locked.accountID), by: signature) }
            #expect(again == AccountAdministration.Outcome(accountID: locked.accountID, isChanged: false))

            app.clock.advance(by: .seconds(1))
            let later = InviteTests.signature(app)
            #expect(try await Self.administer(app) { try await $0.unlock(.userid(ada.userid), by: later) }.isChanged)
            #expect(try await !Self.administer(app) { try await $0.unlock(.userid(ada.userid), by: later) }.isChanged)
            app.clock.advance(by: .seconds(60))
            _ = try await app.logIn(ada)

            let kinds = try await Self.events(app, of: ada).map(\.kind)
            #expect(kinds.contains("locked") && kinds.contains("unlocked"))
            #expect(kinds.filter { $0 == "session_ended" }.count == 2)
            let entries = try await Self.audit(app)
            #expect(entries.map(\.action) == ["account_unlocked", "account_locked"])
            #expect(entries.allSatisfy { $0.targetAccount?.description == ada.id && $0.actor == "ada" })
        }
    }

    @Test func `no log-in that was under way survives the lock`() async throws {
        try await TestApplication.with(connections: 4) { app in
            for _ in 0..<5 {
                let ada = try await app.register()
                let clients = try await withThrowingTaskGroup(of: TestClient?.self) { group in
                    for _ in 0..<12 { group.addTask { try? await app.logIn(ada) } }
                    _ = try await Self.administer(app) {
                        try await $0.lock(.userid(ada.userid), by: InviteTests.signature(app))
                    }
                    return try await group.reduce(into: []) { $0.append($1) }.compactMap { $0 }
                }
                for client in clients { #expect(try await client.get("/v1/account").status == 401) }
                _ = try await Self.administer(app) {
                    try await $0.unlock(.userid(ada.userid), by: InviteTests.signature(app))
                }
                // None is asleep either.
                for client in clients { #expect(try await client.get("/v1/account").status == 401) }
            }
        }
    }

    @Test func `ended sessions are ended on every node, and the account is told how many`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let other = try await app.logIn(ada)
            let signature = InviteTests.signature(app)
            let ended = try await Self.administer(app) { try await $0.endSessions(.userid(ada.userid), by: signature) }
            #expect(ended.sessionsEnded == 2)
            #expect(try await other.get("/v1/account").status == 401)
            #expect(
                try await Self.administer(app) { try await $0.endSessions(.userid(ada.userid), by: signature) }
                    .isChanged == false)
            let event = try #require(try await Self.events(app, of: ada).first { $0.kind == "sessions_ended" })
            #expect(event.count == 2)
            #expect(try await Self.audit(app).map(\.detail) == ["2 sessions"])
        }
    }

    @Test func `a plan is given with an event and a row, and the same plan again with neither`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            for isChanged in [true, false] {
                let outcome = try await Self.administer(app) {
                    try await $0.assign("pro", to: .userid(ada.userid), by: InviteTests.signature(app))
                }
                #expect(outcome.isChanged == isChanged)
            }
            #expect(try await Self.events(app, of: ada).filter { $0.kind == "plan_changed" }.count == 1)
            #expect(try await Self.audit(app).map(\.detail) == ["plan pro, was default"])
        }
    }

    @Test func `deleting an account leaves a row in the audit log and nothing else`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let bob = try await app.register()
            _ = try await ada.createItem()
            let signature = InviteTests.signature(app)
            _ = try await Self.administer(app) { try await $0.delete(.userid(ada.userid), by: signature) }
            #expect(try await app.execute(CountRows()) == [[1, 1, 1]])
            #expect(try await bob.client.get("/v1/account").status == 200)
            let entry = try #require(try await Self.audit(app).first)
            #expect(entry.action == "account_deleted")
            #expect(entry.targetAccount?.description == ada.id)
            await #expect(throws: AccountRefusal.noSuchUserid(canonical: nil)) {
                try await Self.administer(app) { try await $0.delete(.userid(ada.userid), by: signature) }
            }
        }
    }

    @Test func `acts that meet on one account all happen, one after the other`() async throws {
        try await TestApplication.with(connections: 2) { app in
            let ada = try await app.register()
            try await withThrowingTaskGroup(of: Void.self) { group in
                for index in 0..<12 {
                    group.addTask {
                        _ = try await Self.administer(app) {
                            let signature = InviteTests.signature(app)
                            return index % 2 == 0
                                ? try await $0.lock(.userid(ada.userid), by: signature)
                                : try await $0.unlock(.userid(ada.userid), by: signature)
                        }
                    }
                }
                try await group.waitForAll()
            }
            // The rows tell of turns: each lock is followed by an unlock.
            let actions = try await Self.audit(app).reversed().map(\.action)
            for (index, action) in actions.enumerated() {
                #expect(action == (index % 2 == 0 ? "account_locked" : "account_unlocked"))
            }
            #expect(try await AuditLogTests.verify(app).sequence == Int64(actions.count))
        }
    }
}
