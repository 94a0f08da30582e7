import HTTPCore
import Postgres
import SalternTesting
import Testing

@testable import SalternServer

@Suite struct RestoredDatabaseTests {
    private static func act<Result: Sendable>(
        _ app: TestApplication, sliceSize: Int64 = 500,
        _ body: @escaping @Sendable (RestoredDatabase, AuditSignature) async throws -> Result
    ) async throws -> Result {
        let signature = AuditSignature(actor: .account, now: app.clock.now)
        return try await app.asOwner { try await body(RestoredDatabase(database: $0, sliceSize: sliceSize), signature) }
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
            try await app.administer(
                """
                UPDATE saltern.logins
                SET device_generation = device_generation - 1, device_generation_before = device_generation_before - 1
                """)
            let base = try await Self.act(app) { try await $0.moveBase(by: $1) }
            let next = try await endOthers()
            #expect(next.generation == base + 1)
            #expect(lost.accountID == next.accountID && lost.generation < next.generation)
            #expect(try await endOthers().generation == next.generation + 1)
        }
    }

    @Test func `in a restored database too, the generation before a change counts together for seven days`()
        async throws
    {
        try await TemporaryDatabase.with(migrations: Schema.migrations) { database in
            let clock = ManualClock()
            func device(_ reply: TestResponse) throws -> String { try #require(reply.string("deviceToken")) }
            let (ada, phone) = try await TestApplication.with(TestApplication.configuration, database, clock: clock) {
                let ada = try await $0.register()
                return (ada, try device(try await Self.logIn($0, ada, ada.passwordKey)))
            }
            try await database.withCopy { backup in
                // What the time that is lost gave out.
                let lost = try await TestApplication.with(TestApplication.configuration, database, clock: clock) {
                    let lost = try device(try await $0.client.with(token: ada.client.token).delete("/v1/sessions"))
                    return try device(try await Self.logIn($0, ada, ada.passwordKey, device: lost))
                }
                try await TestApplication.with(TestApplication.configuration, backup, clock: clock) { app in
                    let laptop = app.client.with(token: ada.client.token)
                    let newKey = Fixtures.passwordKey("a new password")
                    let changed = try await laptop.put(
                        "/v1/account/credential",
                        [
                            "currentPasswordKey": .string(ada.passwordKey), "passwordKey": .string(newKey),
                            "kdf": ["iterations": 600_000],
                        ])
                    #expect(changed.status == 200)
                    for _ in 0..<5 { #expect(try await Self.logIn(app, ada, ada.passwordKey).status == 401) }
                    #expect(try await Self.logIn(app, ada, newKey).status == 429)
                    // Strangers do not keep the other device out; its token is one of the generation before.
                    #expect(try await Self.logIn(app, ada, newKey, device: phone).status == 201)
                    #expect(try await Self.logIn(app, ada, newKey, device: lost).status == 429)
                    clock.advance(by: KnownDevice.graceOfEarlierGeneration)
                    for _ in 0..<5 { _ = try await Self.logIn(app, ada, ada.passwordKey) }
                    #expect(try await Self.logIn(app, ada, newKey, device: phone).status == 429)
                }
            }
        }
    }

    private static func logIn(
        _ app: TestApplication, _ account: TestAccount, _ key: String, device: String? = nil
    ) async throws -> TestResponse {
        let known: JSONValue = device.map { ["token": .string($0)] } ?? [:]
        return try await app.client.post(
            "/v1/sessions", ["userid": .string(account.userid), "passwordKey": .string(key), "device": known])
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
            #expect(try await app.execute(ReadAuditDetails(action: .sessionsEnded)) == ["3 sessions of all accounts"])
        }
    }

    @Test func `an end of all sessions that is interrupted does not say that it was all`() async throws {
        try await TestApplication.with { app in
            for _ in 0..<3 { _ = try await app.register() }
            let ended = try await Self.act(app, sliceSize: 2) { try await $0.endSessions(by: $1) { _ in false } }
            #expect(ended == 2)
            let details = try await app.execute(ReadAuditDetails(action: .sessionsEnded))
            #expect(details == ["2 sessions of some accounts, interrupted"])
        }
    }
}

private struct CountAuditRows: Statement {
    typealias Row = Int64

    let action: AuditAction

    static let isReadOnly = true
    static let sql: SQL<Self> = "SELECT count(*) FROM saltern.audit_log WHERE action = \(\.action.rawValue)"
}

private struct ReadAuditDetails: Statement {
    typealias Row = String

    let action: AuditAction

    static let isReadOnly = true
    static let sql: SQL<Self> = "SELECT detail FROM saltern.audit_log WHERE action = \(\.action.rawValue)"
}
