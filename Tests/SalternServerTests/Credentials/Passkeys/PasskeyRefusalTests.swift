import HTTPCore
import Postgres
import SalternTesting
import Testing

@testable import SalternServer

/// Refused responses change nothing, and each is refused by the check that it concerns.
@Suite struct PasskeyRefusalTests {
    /// The authenticator as it is before each refusal.
    private static func reset(_ key: SoftwareAuthenticator, userHandle: [UInt8]?) {
        key.signCount = 7
        key.flags = 0x1D
        key.origin = "https://example.org"
        key.rpID = "example.org"
        key.userHandle = userHandle
        key.moreClientData = ""
        key.changeClientData = { $0 }
        key.changeData = { $0 }
        key.changeObject = { $0 }
        key.changeSignature = { $0 }
    }

    private static func state(_ app: TestApplication) async throws -> [String] { try await app.execute(PasskeyState()) }

    /// Rows that an accepted response would change.
    private struct PasskeyState: Statement {
        typealias Row = String
        static let isReadOnly = true
        static let sql: SQL<Self> = """
            SELECT encode(k.credential_id, 'hex') || k.sign_count || coalesce(k.last_used_at::text, '')
            FROM saltern.passkeys k
            UNION ALL SELECT encode(s.token_hash, 'hex') FROM saltern.sessions s
            UNION ALL SELECT encode(c.challenge_hash, 'hex') FROM saltern.used_challenges c
            ORDER BY 1
            """
    }

    @Test func `registrations are refused`() async throws {
        try await TestApplication.with(TestApplication.withPasskeys) { app in
            let ada = try await app.register()
            let options = try await app.passkeyOptions(ada, logsIn: true)
            let before = try await Self.state(app)
            for refusal in PasskeyRefusal.registrations {
                let key = SoftwareAuthenticator()
                refusal.change(key)
                let reply = try await app.confirm(refusal.changeJSON(key.create(options)), ada, logsIn: true)
                #expect(reply.status == 422, "\(refusal.name)")
                #expect(reply.string("reason") ?? reply.code == refusal.reason, "\(refusal.name)")
            }
            #expect(try await Self.state(app) == before)
            let right = try await app.confirm(SoftwareAuthenticator().create(options), ada, logsIn: true)
            #expect(right.status == 201)
        }
    }

    @Test func `assertions are refused`() async throws {
        try await TestApplication.with(TestApplication.withPasskeys) { app in
            let ada = try await app.register()
            let key = SoftwareAuthenticator()
            key.signCount = 7
            try await app.addPasskey(ada, key, logsIn: true)
            let handle = key.userHandle
            let options = try await app.passkeyLogInOptions()
            let before = try await Self.state(app)
            #expect(PasskeyRefusal.registrations.count + PasskeyRefusal.assertions.count >= 60)
            for refusal in PasskeyRefusal.assertions {
                Self.reset(key, userHandle: handle)
                refusal.change(key)
                let lines = app.log.lines.count
                let answer = refusal.changeJSON(try key.get(options))
                let reply = try await app.client.post("/v1/passkeys/sessions", ["credential": answer])
                if refusal.reason == "malformed_credential" {
                    #expect(reply.status == 422 && reply.code == refusal.reason, "\(refusal.name)")
                } else {
                    #expect(reply.status == 401 && reply.code == "wrong_passkey", "\(refusal.name)")
                    let logged = app.log.lines[lines...].first { $0.contains("passkey_refused") } ?? ""
                    #expect(logged.contains("\"\(refusal.reason)\""), "\(refusal.name): \(logged)")
                }
            }
            #expect(try await Self.state(app) == before)
            Self.reset(key, userHandle: handle)
            let right = try await app.client.post("/v1/passkeys/sessions", ["credential": key.get(options)])
            #expect(right.status == 201)
        }
    }
}
