import HTTPCore
import Postgres
import SalternTesting
import Testing
import VaultLog

@testable import SalternServer

@Suite struct PlanTests {
    /// Runs `body` with the rights of the schema's owner.
    private func asOwner<Result: Sendable>(
        _ app: TestApplication, _ body: @escaping @Sendable (PlanAdministration) async throws -> Result
    ) async throws -> Result {
        try await app.asOwner { try await body(PlanAdministration(database: $0)) }
    }

    @Test func `plans are made, changed and given to accounts, and take effect at once`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            #expect(try await asOwner(app) { try await $0.plans().map(\.name) } == ["default", "pro"])
            #expect(try await asOwner(app) { try await $0.plans().last?.limits.itemBytes } == 16_777_216)
            let small = try await asOwner(app) {
                var changes = AccountPlan.Changes()
                changes.items = 1
                changes.deletedDays = 7
                return try await $0.set("small", changes, by: InviteTests.signature(app))
            }
            #expect(small?.limits.items == 1)
            #expect(small?.limits.deletedDays == 7)
            #expect(small?.limits.bytes == 268_435_456)
            _ = try await AccountAdministrationTests.administer(app) {
                try await $0.assign("small", to: .userid(ada.userid), by: InviteTests.signature(app))
            }
            let shown = try await ada.client.get("/v1/account")
            #expect(shown.string("plan") == "small")
            #expect(shown.integer("limits.items") == 1)
            #expect(shown.integer("limits.deletedDays") == 7)

            _ = try await ada.createItem()
            let second = try await ada.client.put(
                "/v1/items/\(Fixtures.uuid())", ItemTests.item(), ["If-None-Match": "*"])
            #expect(second.code == "quota_exceeded")
            let changed = try await asOwner(app) {
                var changes = AccountPlan.Changes()
                changes.items = 2
                return try await $0.set("small", changes, by: InviteTests.signature(app))
            }
            #expect(changed?.limits.deletedDays == 7)
            _ = try await ada.createItem()
        }
    }

    @Test func `a plan limits vaults, memberships and members, and keeps them when it is lowered`() async throws {
        try await TestApplication.with { app in
            let small = try await asOwner(app) {
                var changes = AccountPlan.Changes()
                (changes.vaults, changes.memberships, changes.vaultMembers) = (1, 2, 2)
                (changes.vaultItems, changes.vaultBytes) = (1, 1_000)
                return try await $0.set("small", changes, by: InviteTests.signature(app))
            }
            #expect(small?.limits.vaults == 1 && small?.limits.vaultItems == 1)
            let ada = try await app.register()
            var scene = try await VaultScene(app, ada)
            _ = try await AccountAdministrationTests.administer(app) {
                try await $0.assign("small", to: .userid(ada.userid), by: InviteTests.signature(app))
            }
            let shown = try await ada.client.get("/v1/account")
            #expect(shown.integer("limits.vaultMembers") == 2)
            #expect(shown.integer("usage.vaults") == 1 && shown.integer("usage.memberships") == 1)
            #expect(try await ada.client.get(scene.path).integer("limits.items") == 1)
            let head = ["If-None-Match": "*", "Vault-Head": "1"]
            let path = "\(scene.path)/items"
            #expect(try await ada.client.put("\(path)/\(Fixtures.uuid())", scene.item(), head).status == 201)
            let second = try await ada.client.put("\(path)/\(Fixtures.uuid())", scene.item(), head)
            #expect(second.code == "quota_exceeded" && second.string("limit") == "items", "\(second)")
            _ = try await scene.join(as: .reader)
            let secrets = try await scene.invite(as: .reader)
            let eve = try VaultScene.Sharer(try await app.register())
            let third = try await eve.client.post(
                "/v1/invitations/\(secrets.id.text)/acceptance", scene.joining(secrets, eve).body)
            #expect(third.code == "quota_exceeded" && third.string("limit") == "members", "\(third)")
            // The plan is in use as long as a vault has it.
            await #expect(throws: PlanAdministration.Refusal.isInUse(accounts: true)) {
                try await asOwner(app) { try await $0.remove("small", by: InviteTests.signature(app)) }
            }
        }
    }

    @Test func `nobody gets a plan that is not there, and the server's role changes none`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            for (reference, plan, refusal) in [
                (AccountReference.userid(ada.userid), "gold", AccountRefusal.noSuchPlan),
                (.userid("nobody"), "pro", .noSuchUserid(canonical: nil)),
                (.userid("Nobody"), "pro", .noSuchUserid(canonical: "nobody")),
                (.id(.random()), "pro", .noSuchAccount),
            ] {
                await #expect(throws: refusal) {
                    _ = try await AccountAdministrationTests.administer(app) {
                        try await $0.assign(plan, to: reference, by: InviteTests.signature(app))
                    }
                }
            }
            let error = await #expect(throws: PostgresError.self) {
                try await app.execute(SetPlan(name: "mine", changes: AccountPlan.Changes()))
            }
            #expect(error?.sqlState == .insufficientPrivilege)
        }
    }

    @Test(.enabled(if: !TestEnvironment.isCluster))
    func `a plan stays when it is removed while a command gives it to an account`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let (assigned, removed) = try await HeldRow.hold(LockAuditHead(), in: app) { held in
                // The last statement of the command waits for the end of the audit log. The account is changed by then.
                let assigned = Task {
                    try await AccountAdministrationTests.administer(app) {
                        try await $0.assign("pro", to: .userid(ada.userid), by: InviteTests.signature(app))
                    }
                }
                try await eventually { try await held.execute(CountWaitingCommands()) == [1] }
                let removed = Task {
                    try await asOwner(app) { try await $0.remove("pro", by: InviteTests.signature(app)) }
                }
                try await eventually { try await held.execute(CountWaitingCommands()) == [2] }
                return (assigned, removed)
            }
            #expect(try await assigned.value.isChanged)
            await #expect(throws: PlanAdministration.Refusal.isInUse(accounts: true)) { try await removed.value }
            #expect(try await ada.client.get("/v1/account").string("plan") == "pro")
            let postgres = app.postgres
            let entries = try await app.run { try await AuditReview(database: postgres).latest(10) }
            #expect(!entries.contains { $0.action == "plan_removed" })
        }
    }

    @Test func `fifty writers at the edge of a limit never exceed it`() async throws {
        try await TestApplication.with(connections: 8) { app in
            try await app.administer("UPDATE saltern.plans SET max_items = 60, max_bytes = 4000")
            let ada = try await app.register()
            let statuses = try await withThrowingTaskGroup(of: [Int].self) { group in
                for writer in 0..<50 {
                    group.addTask {
                        var statuses: [Int] = []
                        for round in 0..<4 {
                            let id = Fixtures.uuid()
                            if (writer + round) % 3 == 0 {
                                let operations = (0..<3).map { _ in BatchTests.put(Fixtures.uuid(), 0) }
                                statuses.append(
                                    try await ada.client.post(
                                        "/v1/items/batch", ["operations": .array(operations)]
                                    ).status)
                            } else {
                                statuses.append(
                                    try await ada.client.put(
                                        "/v1/items/\(id)", ItemTests.item(), ["If-None-Match": "*"]
                                    ).status)
                            }
                        }
                        return statuses
                    }
                }
                return try await group.reduce(into: []) { $0 += $1 }
            }
            #expect(statuses.contains(403))
            #expect(Set(statuses).isSubset(of: [200, 201, 403]))
            let counted = try #require(try await app.execute(CountedAndStored()).first)
            // 43 items of 92 bytes fit into 4,000.
            #expect(counted.storedItems == 43)
            #expect(counted.items == 43)
            #expect(counted.bytes == counted.storedBytes)
        }
    }
}

private struct LockAuditHead: Statement {
    typealias Row = Int64
    static let sql: SQL<Self> = "SELECT h.sequence FROM saltern.audit_head h WHERE h.singleton FOR UPDATE"
}

/// Counts the sessions that wait for this one, directly or behind another one.
private struct CountWaitingCommands: Statement {
    typealias Row = Int64
    static let sql: SQL<Self> = """
        SELECT count(DISTINCT l.pid) FROM pg_locks l
        WHERE NOT l.granted AND (pg_backend_pid() = ANY(pg_blocking_pids(l.pid)) OR EXISTS (
            SELECT FROM unnest(pg_blocking_pids(l.pid)) b WHERE pg_backend_pid() = ANY(pg_blocking_pids(b))))
        """
}
