import Postgres
import SalternTesting
import Testing

@testable import SalternServer

@Suite struct RestoredDatabaseTests {
    private static func act<Result: Sendable>(
        _ app: TestApplication, _ body: @escaping @Sendable (RestoredDatabase, AuditSignature) async throws -> Result
    ) async throws -> Result {
        let signature = AuditSignature(actor: .account, now: app.clock.now)
        return try await SeparateClient.with(app.database.ownerURL) { client in
            try await client.run { try await body(RestoredDatabase(database: $0), signature) }
        }
    }

    @Test func `the base rises each time it is told, and the audit log says so`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            _ = try await ada.createItem()
            let cursor = try #require(try await ada.client.get("/v1/changes").string("cursor"))
            let first = try await Self.act(app) { try await $0.moveBase(by: $1) }
            #expect(try await ada.client.get("/v1/changes?since=\(cursor)").code == "cursor_expired")
            let second = try await Self.act(app) { try await $0.moveBase(by: $1) }
            #expect(second > first)
            let third = try #require(
                try await ada.client.put("/v1/items/\(Fixtures.uuid())", ItemTests.item(), ["If-None-Match": "*"])
                    .integer("revision"))
            #expect(Int64(third) == second + 1)
            let entries = try await app.execute(CountAuditRows(action: .databaseRestored))
            #expect(entries == [2])
        }
    }

    @Test func `a generation of device tokens that began in the lost time does not begin again`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let tokens = DeviceTokens(keys: app.configuration.masterKey.subkeys("known-device"))
            func endOthers() async throws -> KnownDevice {
                let reply = try await ada.client.delete("/v1/sessions")
                let token = try #require(reply.string("deviceToken"))
                return try #require(tokens.device(token))
            }
            let lost = try await endOthers()
            // What a restore does, in short.
            try await app.administer("UPDATE saltern.logins SET device_generation = device_generation - 1")
            let base = try await Self.act(app) { try await $0.moveBase(by: $1) }
            let next = try await endOthers()
            #expect(next.generation == base + 1)
            #expect(lost.accountID == next.accountID && lost.generation < next.generation)
            #expect(try await endOthers().generation == next.generation + 1)
        }
    }

    @Test func `all sessions of all accounts end, and the people read of it`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let phone = try await app.logIn(ada, device: "phone")
            let grace = try await app.register()
            let ended = try await Self.act(app) { try await $0.endSessions(by: $1) { _ in true } }
            #expect(ended == 3)
            for client in [ada.client, phone, grace.client] {
                #expect(try await client.get("/v1/account").status == 401)
            }
            let events = try await app.logIn(ada).get("/v1/account/events")
            #expect(events.text.contains("sessions_ended"))
            #expect(try await app.execute(CountAuditRows(action: .sessionsEnded)) == [1])
        }
    }
}

private struct CountAuditRows: Statement {
    typealias Row = Int64

    let action: AuditAction

    static let isReadOnly = true
    static let sql: SQL<Self> = "SELECT count(*) FROM saltern.audit_log WHERE action = \(\.action.rawValue)"
}
