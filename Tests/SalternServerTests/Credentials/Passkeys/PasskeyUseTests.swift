import Cryptography
import HTTPCore
import Postgres
import SalternTesting
import Testing

@testable import SalternServer

/// What a used or rejected assertion leaves behind.
@Suite struct PasskeyUseTests {
    /// A row of the account's passkeys.
    private struct Uses: Statement {
        static let isReadOnly = true
        static let sql: SQL<Self> =
            "SELECT k.sign_count, k.last_used_at, k.backed_up FROM saltern.passkeys k ORDER BY k.credential_id"

        struct Row: Sendable, Equatable {
            let signCount: Int64
            let lastUsedAt: Timestamp?
            let isBackedUp: Bool
        }

        static func decode(_ row: inout RowReader) throws(PostgresError) -> Row { try row.read(Row.init) }
    }

    private struct CountAllUsedChallenges: Statement {
        typealias Row = Int64
        static let isReadOnly = true
        static let sql: SQL<Self> = "SELECT count(*) FROM saltern.used_challenges"
    }

    private static func open(_ app: TestApplication, _ key: SoftwareAuthenticator) async throws -> TestResponse {
        let answer = try await key.get(app.passkeyLogInOptions())
        return try await app.client.post("/v1/passkeys/sessions", ["credential": answer])
    }

    @Test func `a replayed assertion changes nothing`() async throws {
        try await TestApplication.with(TestApplication.withPasskeys) { app in
            let ada = try await app.register()
            let key = try await app.addPasskey(ada, logsIn: true)
            let alone = try await key.get(app.passkeyLogInOptions())
            #expect(try await app.client.post("/v1/passkeys/sessions", ["credential": alone]).status == 201)
            let second = try key.get(#require(try await app.tryLogIn(ada)["publicKey"]))
            #expect(try await app.tryLogIn(ada, passkey: second).status == 201)
            let before = try await app.execute(Uses())
            let sessions = try await ada.client.get("/v1/sessions").array("sessions")?.count
            app.clock.advance(by: .seconds(60))
            #expect(try await app.client.post("/v1/passkeys/sessions", ["credential": alone]).code == "wrong_passkey")
            #expect(try await app.tryLogIn(ada, passkey: second).code == "wrong_passkey")
            #expect(try await app.execute(Uses()) == before)
            #expect(try await ada.client.get("/v1/sessions").array("sessions")?.count == sessions)
        }
    }

    @Test func `the removal of a passkey ends the sessions that it has opened`() async throws {
        try await TestApplication.with(TestApplication.withPasskeys) { app in
            let ada = try await app.register()
            let stolen = try await app.addPasskey(ada, logsIn: true)
            let kept = try await app.addPasskey(ada, logsIn: true)
            func token(_ reply: TestResponse) throws -> TestClient {
                app.client.with(token: reply.string("session.token"))
            }
            let alone = try token(await Self.open(app, stolen))
            let second = try token(
                await app.tryLogIn(ada, passkey: stolen.get(#require(await app.tryLogIn(ada)["publicKey"]))))
            let other = try token(await Self.open(app, kept))
            let path = "/v1/account/passkeys/"
            let proof = TestClient.document(ada.currentKey)
            #expect(try await other.send(.delete, path + stolen.idText, body: proof).status == 204)
            for ended in [alone, second] { #expect(try await ended.get("/v1/account").status == 401) }
            for live in [other, ada.client] { #expect(try await live.get("/v1/account").status == 200) }
            #expect(try await app.events(of: ada).filter { $0 == "session_ended" }.count == 2)
            // The caller's session stays, because the caller has the password key.
            #expect(try await other.send(.delete, path + kept.idText, body: proof).status == 204)
            #expect(try await other.get("/v1/account").status == 200)
        }
    }

    @Test func `an operator who removes passkeys ends the sessions that they have opened`() async throws {
        try await TestApplication.with(TestApplication.withPasskeys) { app in
            let ada = try await app.register("ada")
            let key = try await app.addPasskey(ada, logsIn: true)
            let opened = try await Self.open(app, key)
            let client = app.client.with(token: opened.string("session.token"))
            #expect(try await client.get("/v1/account").status == 200)
            _ = try await app.asOwner {
                try await SecondFactorAdministration(database: $0).remove(
                    of: .userid("ada"), by: AuditSignature(actor: AuditLogTests.admin, now: app.clock.now))
            }
            #expect(try await client.get("/v1/account").status == 401)
            #expect(try await ada.client.get("/v1/account").status == 200)
        }
    }

    @Test func `the used challenges of an account are bounded without a purge`() async throws {
        try await TestApplication.with(TestApplication.withPasskeys) { app in
            let ada = try await app.register()
            let key = try await app.addPasskey(ada, logsIn: true)
            let eve = try await app.register()
            let others = try await app.addPasskey(eve, logsIn: true)
            try await app.administer(
                """
                INSERT INTO saltern.used_challenges SELECT '\(ada.id)', sha256(n::text::bytea), '2026-01-01T00:04:59Z'
                FROM generate_series(1, \(TooManyPasskeyUses.limit - 2)) n
                """)
            #expect(try await Self.open(app, key).status == 201)
            let refused = try await Self.open(app, key)
            #expect(refused.status == 429 && refused.code == "too_many_passkey_uses")
            #expect(refused["limit"] == 200 && refused.fields["Retry-After"] != nil)
            let second = try key.get(#require(try await app.tryLogIn(ada)["publicKey"]))
            #expect(try await app.tryLogIn(ada, passkey: second).code == "too_many_passkey_uses")
            #expect(try await app.execute(CountAllUsedChallenges()) == [TooManyPasskeyUses.limit + 1])
            // Other accounts are not concerned, and expired rows go with the next use.
            #expect(try await Self.open(app, others).status == 201)
            app.clock.advance(by: .seconds(301))
            #expect(try await Self.open(app, key).status == 201)
            #expect(try await app.execute(CountAllUsedChallenges()) == [3])
        }
    }
}
