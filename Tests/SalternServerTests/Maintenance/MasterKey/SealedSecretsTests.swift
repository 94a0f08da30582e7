import HTTPCore
import Postgres
import SalternTesting
import Testing

@testable import SalternServer

@Suite struct SealedSecretsTests {
    private func reseal(_ app: TestApplication, _ key: MasterKey, slice: Int64 = 2) async throws -> SealedSecrets.Report
    {
        try await app.run { try await SealedSecrets(database: app.postgres, sliceSize: slice).reseal(with: key) }
    }

    private func counts(_ app: TestApplication) async throws -> [MasterKeyID: Int64] {
        try await app.run { try await SealedSecrets(database: app.postgres).counts() }
    }

    @Test func `everything is sealed anew, the secrets stay what they were, and a second time there is nothing to do`()
        async throws
    {
        try await TestApplication.with { app in
            var accounts: [ProtectedAccount] = []
            for _ in 0..<5 { accounts.append(try await app.protect(app.register())) }
            let old = app.configuration.masterKey
            let new = try old.rotated()
            #expect(try await counts(app) == [old.ids[0]: 6])
            #expect(try await reseal(app, new).resealed == 6)
            #expect(try await counts(app) == [new.ids[0]: 6])
            #expect(try await reseal(app, new).resealed == 0)

            var configuration = app.configuration
            configuration.masterKey = new.removing([old.ids[0]])
            try await TestApplication.with(configuration, app.database, clock: app.clock) { node in
                for account in accounts {
                    let login = try await node.logIn(account, account.authenticator.code())
                    #expect(login.status == 201)
                }
            }
        }
    }

    @Test func `what no key opens is told and left as it is`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.protect(app.register())
            let other = MasterKey.random()
            let report = try await reseal(app, other)
            #expect(report.resealed == 0)
            #expect(
                report.unreadable.map { "\($0.secret)" } == [
                    "the pairwise key", "the secret of account \(ada.account.id)",
                ])
            #expect(report.unreadable.first?.reason == .unknownKey(app.configuration.masterKey.ids[0]))
            #expect(try await app.logIn(ada, ada.authenticator.code()).status == 201)
        }
    }

    @Test func `a secret that was exchanged meanwhile is not overwritten`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            _ = try await app.beginSecondFactor(ada)
            let old = try #require(try await app.execute(StoredSecrets()).first)
            let second = try await app.beginSecondFactor(ada)
            let id = try #require(AccountID(pathParameter: ada.id))
            let replaced = try await app.execute(ReplaceSealedSecret(accountID: id, old: old, new: old))
            #expect(replaced.isEmpty)
            let confirmed = try await ada.client.post(
                "/v1/account/totp/confirm", ["totp": .string(second.code())])
            #expect(confirmed.status == 200)
        }
    }

    @Test func `while people log in, all of them get in and all of it is sealed anew`() async throws {
        try await TestApplication.with(connections: 4) { app in
            var accounts: [ProtectedAccount] = []
            for _ in 0..<12 { accounts.append(try await app.protect(app.register())) }
            let new = try app.configuration.masterKey.rotated()
            var configuration = app.configuration
            configuration.masterKey = new
            try await TestApplication.with(configuration, app.database, clock: app.clock, connections: 4) { node in
                try await withThrowingTaskGroup(of: Int.self) { group in
                    for account in accounts {
                        group.addTask { try await node.logIn(account, account.authenticator.code()).status }
                    }
                    group.addTask { try await reseal(node, new).resealed + 201 - 13 }
                    for try await status in group { #expect(status == 201) }
                }
                #expect(try await counts(node) == [new.ids[0]: 13])
            }
        }
    }
}
