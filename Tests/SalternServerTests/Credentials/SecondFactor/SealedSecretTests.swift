import Cryptography
import HTTPCore
import Postgres
import SalternTesting
import Testing

@testable import SalternServer

@Suite struct SealedSecretTests {
    /// The same database, served with another master key.
    private func withAnotherNode<Result: Sendable>(
        of app: TestApplication, _ masterKey: MasterKey, _ body: (TestApplication) async throws -> Result
    ) async throws -> Result {
        var configuration = app.configuration
        configuration.masterKey = masterKey
        return try await TestApplication.with(configuration, app.database, clock: app.clock, body)
    }

    @Test func `the database does not have the secret`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.protect(app.register())
            let stored = try #require(try await app.execute(StoredSecrets()).first)
            let secret = ada.authenticator.passwords.secret.withUnsafeBytes { [UInt8]($0) }
            #expect(stored.count == secret.count + 33)
            #expect(!stored.indices.contains { stored[$0...].starts(with: secret) })
        }
    }

    @Test func `without the master key nobody gets past the second factor, and the log says why`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.protect(app.register())
            try await withAnotherNode(of: app, .random()) { node in
                for code in [ada.authenticator.code(), "000000"] {
                    let refused = try await node.logIn(ada, code)
                    #expect(refused.status == 503)
                    #expect(refused.code == "second_factor_unavailable")
                }
                #expect(try await node.logIn(ada, nil).code == "totp_required")
                let line = try #require(node.log.lines.first { $0.contains("second_factor_unreadable") })
                #expect(line.contains(#""level":"error""#))
                #expect(line.contains(app.configuration.masterKey.ids[0].description))
                #expect(line.contains(ada.account.id))
                // A recovery code needs no key, and the person can begin again.
                #expect(try await node.logIn(ada, ada.recoveryCodes[0]).status == 201)
            }
            #expect(try await app.logIn(ada, ada.authenticator.code()).status == 201)
        }
    }

    @Test func `after a rotation of the master key codes count as before`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.protect(app.register())
            try await withAnotherNode(of: app, app.configuration.masterKey.rotated()) { node in
                let login = try await node.logIn(ada, ada.authenticator.code())
                #expect(login.status == 201)
            }
        }
    }

    @Test func `another account's secret does not open, though it is copied over with everything else`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.protect(app.register())
            let eve = try await app.protect(app.register())
            try await app.administer(
                """
                UPDATE saltern.second_factors SET sealed_secret =
                    (SELECT e.sealed_secret FROM saltern.second_factors e WHERE e.account_id = '\(eve.account.id)')
                WHERE account_id = '\(ada.account.id)'
                """)
            let refused = try await app.logIn(ada, eve.authenticator.code())
            #expect(refused.status == 503)
            #expect(refused.code == "second_factor_unavailable")
        }
    }
}

/// Every sealed secret.
struct StoredSecrets: Statement {
    typealias Row = [UInt8]
    static let isReadOnly = true
    static let sql: SQL<Self> = "SELECT sealed_secret FROM saltern.second_factors ORDER BY account_id"
}
