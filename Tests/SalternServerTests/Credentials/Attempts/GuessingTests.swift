import HTTPCore
import SalternTesting
import Testing

@testable import SalternServer

/// How many secrets are looked at, whatever somebody has who guesses.
@Suite struct GuessingTests {
    static let wrongKey = Fixtures.passwordKey("a wrong key")

    /// What an attempt shows.
    enum Secret: CaseIterable { case passwordKey, recoveryKey }

    static func attempt(
        _ app: TestApplication, _ userid: String, _ secret: Secret = .passwordKey, key: String = wrongKey,
        token: String?
    ) async throws -> TestResponse {
        var body: [(name: String, value: JSONValue)] = [(name: "userid", value: .string(userid))]
        if let token { body.append((name: "device", value: ["token": .string(token)])) }
        switch secret {
        case .passwordKey:
            body.append((name: "passwordKey", value: .string(key)))
            return try await app.client.post("/v1/sessions", .object(JSONObject(body)))
        case .recoveryKey:
            body.append((name: "recoveryKey", value: .string(key)))
            return try await app.client.post("/v1/recoveries", .object(JSONObject(body)))
        }
    }

    /// Guesses with every token and without one, over and over, for minutes. Returns how many were looked at.
    private func checks(
        _ app: TestApplication, _ userid: String, _ tokens: [String], minutes: Int
    ) async throws -> Int {
        var checks = 0
        for _ in 0..<minutes * 3 {
            checks += try await withThrowingTaskGroup(of: Int.self) { group in
                for token in tokens.map(Optional.some) + [nil] {
                    for secret in Secret.allCases.shuffled() {
                        group.addTask {
                            let reply = try await Self.attempt(app, userid, secret, token: token)
                            #expect([401, 429].contains(reply.status))
                            return reply.status == 401 ? 1 : 0
                        }
                    }
                }
                return try await group.reduce(0, +)
            }
            app.clock.advance(by: .seconds(20))
        }
        return checks
    }

    /// Tokens of as many log-ins.
    private func collect(_ app: TestApplication, _ account: TestAccount, _ count: Int) async throws -> [String] {
        var tokens: [String] = []
        for _ in 0..<count {
            let login = try await Self.attempt(app, account.userid, key: account.passwordKey, token: nil)
            tokens.append(try #require(login.string("deviceToken")))
        }
        return tokens
    }

    @Test func `thirty-one tokens give eighteen looks a minute at most, and after a new password two`() async throws {
        try await TestApplication.with(connections: 4) { app in
            let ada = try await app.register()
            let tokens = try await collect(app, ada, 31)
            // Until all delays are a minute.
            _ = try await checks(app, ada.userid, tokens, minutes: 5)
            #expect(try await checks(app, ada.userid, tokens, minutes: 3) <= 18 * 4)
            // The owner sees it, by kind, while it goes on.
            #expect(try await app.failures(of: ada, "failed_logins") > 20)
            #expect(try await app.failures(of: ada, "failed_recoveries") > 20)

            // Whoever guesses with tokens of all slots keeps the owner's session waiting too, a minute at most.
            app.clock.advance(by: .seconds(60))
            let changed = try await ada.client.put("/v1/account/credential", NewKey(of: ada, to: "new").body)
            #expect(changed.status == 200)
            let renewed = try #require(changed.string("deviceToken"))
            _ = try await checks(app, ada.userid, tokens, minutes: 5)
            #expect(try await checks(app, ada.userid, tokens, minutes: 3) <= 2 * 4)
            // The owner's own device is not kept out.
            let login = try await Self.attempt(
                app, ada.userid, key: Fixtures.passwordKey("new"), token: renewed)
            #expect(login.status == 201)
            app.clock.advance(by: .seconds(7 * 86_400))
            _ = try await checks(app, ada.userid, tokens, minutes: 5)
            #expect(try await checks(app, ada.userid, tokens, minutes: 3) <= 4)
        }
    }

    @Test func `tokens of an account that was deleted are worth nothing against who has the userid now`() async throws {
        try await TestApplication.with(connections: 4) { app in
            let ada = try await app.register("wanted")
            let tokens = try await collect(app, ada, 31)
            let body: JSONValue = ["currentPasswordKey": .string(ada.passwordKey)]
            let deleted = try await ada.client.send(.delete, "/v1/account", body: TestClient.document(body))
            #expect(deleted.status == 204)
            for isTaken in [false, true] {
                if isTaken {
                    let bob = try await app.client.post(
                        "/v1/accounts",
                        [
                            "userid": "wanted", "passwordKey": .string(Fixtures.passwordKey("bob")),
                            "kdf": ["iterations": 600_000],
                        ])
                    #expect(bob.status == 201)
                }
                _ = try await checks(app, "wanted", tokens, minutes: 5)
                #expect(try await checks(app, "wanted", tokens, minutes: 2) <= 3)
            }
        }
    }

    @Test func `tokens of others give no further looks at a userid, whether there is such an account or not`()
        async throws
    {
        try await TestApplication.with(connections: 4) { app in
            let (ada, eve) = (try await app.register(), try await app.register())
            let tokens = try await collect(app, eve, 20)
            for userid in [ada.userid, "nobody@example.org"] {
                _ = try await checks(app, userid, tokens, minutes: 5)
                #expect(try await checks(app, userid, tokens, minutes: 2) <= 3)
            }
            #expect(try await Self.attempt(app, eve.userid, key: eve.passwordKey, token: tokens[0]).status == 201)
        }
    }

    @Test func `the end of all other sessions makes their tokens those of the generation before`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let stolen = try await collect(app, ada, 3)
            let ended = try await ada.client.delete("/v1/sessions")
            #expect(ended.integer("ended") == 3)
            let mine = try #require(ended.string("deviceToken"))
            // All of them together have what one had.
            var statuses: [Int] = []
            for number in 0..<8 {
                statuses.append(
                    try await Self.attempt(app, ada.userid, token: stolen[number % 3]).status)
            }
            #expect(statuses == [401, 401, 401, 401, 401, 429, 429, 429])
            #expect(try await Self.attempt(app, ada.userid, key: ada.passwordKey, token: mine).status == 201)
            // A right log-in with one of them is of the present generation from then on.
            app.clock.advance(by: .seconds(60))
            let login = try await Self.attempt(app, ada.userid, key: ada.passwordKey, token: stolen[0])
            let renewed = try #require(login.string("deviceToken"))
            for _ in 0..<5 { _ = try await Self.attempt(app, ada.userid, token: stolen[1]) }
            #expect(try await Self.attempt(app, ada.userid, key: ada.passwordKey, token: renewed).status == 201)
        }
    }

    @Test func `a session that a recovery opened is not told among those that were ended`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            _ = try await app.openRestrictedSession(ada)
            #expect(try await ada.client.delete("/v1/sessions").integer("ended") == 0)
        }
    }

    @Test func `two nodes look at one guess of a counter once a minute, and not at one each`() async throws {
        try await TestApplication.with(connections: 2) { app in
            try await TestApplication.with(app.configuration, app.database, clock: app.clock, connections: 2) { other in
                for userid in [try await app.register().userid, "nobody@example.org"] {
                    for minute in 0..<14 {
                        let checks = try await withThrowingTaskGroup(of: Int.self) { group in
                            for number in 0..<12 {
                                let node = number.isMultiple(of: 2) ? app : other
                                group.addTask {
                                    try await Self.attempt(node, userid, token: nil).status == 401 ? 1 : 0
                                }
                            }
                            return try await group.reduce(0, +)
                        }
                        if minute > 0 { #expect(checks == 1) }
                        app.clock.advance(by: .seconds(60))
                    }
                }
            }
        }
    }

    @Test func `a person who is asked for a code is not delayed by being asked`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.protect(app.register())
            for _ in 0..<7 {
                _ = try await app.logIn(ada, "000000")
                app.clock.advance(by: .seconds(60))
            }
            #expect(try await app.logIn(ada, nil).code == "totp_required")
            #expect(try await app.logIn(ada, ada.authenticator.code()).status == 201)
        }
    }
}
