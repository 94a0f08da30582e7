import HTTPCore
import Postgres
import SalternTesting
import Testing

@testable import SalternServer

@Suite struct SecondFactorRaceTests {
    /// How many replies there were of each kind: the code of a problem, or the status.
    private func outcomes(
        _ count: Int, _ request: @escaping @Sendable (Int) async throws -> TestResponse
    ) async throws -> [String: Int] {
        try await withThrowingTaskGroup(of: String.self) { group in
            for index in 0..<count {
                group.addTask {
                    let reply = try await request(index)
                    return reply.code ?? "\(reply.status)"
                }
            }
            return try await group.reduce(into: [:]) { $0[$1, default: 0] += 1 }
        }
    }

    /// One got in, and nobody else.
    private func expectOneSession(_ replies: [String: Int], of count: Int) {
        #expect(replies["201"] == 1)
        #expect(replies["wrong_totp", default: 0] >= 1)
        #expect(replies["wrong_totp", default: 0] + replies["too_many_attempts", default: 0] == count - 1)
    }

    @Test func `of fifty who come with the same code one gets in`() async throws {
        try await TestApplication.with(connections: 8) { app in
            let ada = try await app.protect(app.register())
            let code = ada.authenticator.code()
            let replies = try await outcomes(50) { _ in try await app.logIn(ada, code) }
            expectOneSession(replies, of: 50)
            #expect(try await ada.client.get("/v1/account").integer("usage.sessions") == 2)
            let failures = try await app.failures(of: ada.account, "second_factor_failed")
            #expect(failures == replies["wrong_totp"])
        }
    }

    @Test func `of fifty who come with the same recovery code one gets in`() async throws {
        try await TestApplication.with(connections: 8) { app in
            let ada = try await app.protect(app.register())
            let replies = try await outcomes(50) { _ in try await app.logIn(ada, ada.recoveryCodes[3]) }
            expectOneSession(replies, of: 50)
            #expect(try await ada.client.get("/v1/account").integer("usage.sessions") == 2)
            #expect(try await ada.client.get("/v1/account").integer("secondFactor.recoveryCodesLeft") == 9)
            #expect(try await app.events(of: ada.account).count { $0 == "totp_code_used" } == 1)
        }
    }

    @Test func `on two nodes a code counts once too`() async throws {
        try await TestApplication.with(connections: 4) { app in
            let ada = try await app.protect(app.register())
            let code = ada.authenticator.code()
            try await TestApplication.with(app.configuration, app.database, clock: app.clock, connections: 4) { node in
                let replies = try await outcomes(40) { try await ($0 % 2 == 0 ? app : node).logIn(ada, code) }
                expectOneSession(replies, of: 40)
            }
        }
    }

    /// The end of a log-in, for everybody at once: on a node the attempts at one userid come one after the other.
    private func openAtOnce(_ app: TestApplication, _ account: TestAccount, _ code: String) async throws -> [String:
        Int]
    {
        let id = try #require(AccountID(pathParameter: account.id))
        let code = try SecondFactorCode(json: .string(JSONString(code)))
        let check = SecondFactorCheck(
            masterKey: app.configuration.masterKey, passkeys: PasskeyVerifier(app.configuration), outbox: app.outbox)
        let attempts = app.guarding
        return try await withThrowingTaskGroup(of: String.self) { group in
            for _ in 0..<50 {
                let opening = Self.opening(of: id, app)
                group.addTask {
                    try await app.run {
                        let account = try await app.postgres.execute(opening).first
                        let counter = AttemptCounter(
                            subject: attempts.subjects.userid(try Userid("ada")), place: .stranger)
                        let look = SecretCheck(
                            attempts: attempts, counter: counter, login: nil, device: nil, release: nil,
                            now: app.clock.now)
                        switch try await check.open(opening, account, .code(code), look) {
                        case .right: return "opened"
                        case .wrong(_, let error), .undecided(let error):
                            return try #require(error as? SecondFactorProblem).problem.code
                        }
                    }
                }
            }
            return try await group.reduce(into: [:]) { $0[$1, default: 0] += 1 }
        }
    }

    private static func opening(of account: AccountID, _ app: TestApplication) -> OpenSession {
        let session = NewSession(accountID: account, now: app.clock.now, policy: SessionPolicy())
        return OpenSession(
            accountID: account, tokenHash: session.token.hash, sessionID: session.id, deviceName: nil,
            now: app.clock.now, idleSince: app.clock.now - .seconds(86_400), expiresAt: session.expiresAt,
            isPermitted: true, credentialRevision: 1)
    }

    @Test func `the database lets one in when all come past everything that waits`() async throws {
        try await TestApplication.with(connections: 8) { app in
            let ada = try await app.protect(app.register())
            for code in [ada.authenticator.code(), ada.recoveryCodes[0], ada.recoveryCodes[1]] {
                #expect(try await openAtOnce(app, ada.account, code) == ["opened": 1, "wrong_totp": 49])
            }
            #expect(try await ada.client.get("/v1/account").integer("usage.sessions") == 4)
        }
    }

    @Test func `of many confirmations one succeeds, and its recovery codes are those that count`() async throws {
        try await TestApplication.with(connections: 8) { app in
            let account = try await app.register()
            let phone = try await app.beginSecondFactor(account)
            let code = JSONValue.string(phone.code())
            let replies = try await withThrowingTaskGroup(of: TestResponse.self) { group in
                for _ in 0..<20 {
                    group.addTask { try await account.client.post("/v1/account/totp/confirm", ["totp": code]) }
                }
                return try await group.reduce(into: []) { $0.append($1) }
            }
            let confirmed = replies.filter { $0.status == 200 }
            #expect(confirmed.count == 1)
            #expect(replies.count { ["totp_enabled", "totp_not_pending"].contains($0.code) } == 19)
            #expect(try await account.client.get("/v1/account").integer("secondFactor.recoveryCodesLeft") == 10)
            #expect(try await app.events(of: account) == ["totp_enabled"])
            let ada = ProtectedAccount(
                account: account, authenticator: phone,
                recoveryCodes: try #require(confirmed.first?.array("recoveryCodes")).map { try $0.string() })
            for code in ada.recoveryCodes { #expect(try await app.logIn(ada, code).status == 201) }
        }
    }

    @Test func `while it is removed everybody with the right key and a good code gets in`() async throws {
        try await TestApplication.with(connections: 8) { app in
            let ada = try await app.protect(app.register())
            let replies = try await outcomes(21) { index in
                if index == 10 { return try await ada.account.deleteSecondFactor() }
                return try await app.logIn(ada, index < 10 ? ada.recoveryCodes[index] : nil)
            }
            // Those without a code get in, or not, depending on who was first; those with one always.
            #expect(replies["204"] == 1)
            #expect(replies["201", default: 0] >= 10)
            #expect(replies["201", default: 0] + replies["totp_required", default: 0] == 20)
        }
    }

    @Test func `a code of a secret that was replaced meanwhile opens nothing`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.protect(app.register())
            let id = try #require(AccountID(pathParameter: ada.account.id))
            let opening = Self.opening(of: id, app)
            let factor = try #require(try await app.execute(opening).first?.secondFactor)
            // Between the two statements of a log-in the factor is removed and another one set up.
            #expect(try await ada.account.deleteSecondFactor().status == 204)
            _ = try await app.protect(ada.account)
            let step = OneTimePasswords.step(at: app.clock.now) + 1
            let opened = try await app.execute(
                OpenSessionWithOneTimeCode(opening: opening, enrolledAt: factor.enrolledAt, step: step))
            #expect(opened.isEmpty)
            #expect(try await ada.client.get("/v1/account").integer("usage.sessions") == 1)
        }
    }

    @Test func `a credential that changes while the code is checked keeps the log-in out`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.protect(app.register())
            let id = try #require(AccountID(pathParameter: ada.account.id))
            let opening = Self.opening(of: id, app)
            let factor = try #require(try await app.execute(opening).first?.secondFactor)
            let change = NewKey(of: ada.account, to: "new")
            #expect(try await ada.client.put("/v1/account/credential", change.body).status == 200)
            let step = OneTimePasswords.step(at: app.clock.now)
            let opened = try await app.execute(
                OpenSessionWithOneTimeCode(opening: opening, enrolledAt: factor.enrolledAt, step: step))
            #expect(opened.isEmpty)
            let codeHash = try #require(SecondFactorRecoveryCode(ada.recoveryCodes[0].utf8.filter { $0 != 45 }))
                .hash(for: id)
            #expect(
                try await app.execute(OpenSessionWithRecoveryCode(opening: opening, codeHash: codeHash)).isEmpty)
            #expect(try await ada.client.get("/v1/account").integer("secondFactor.recoveryCodesLeft") == 10)
        }
    }
}
