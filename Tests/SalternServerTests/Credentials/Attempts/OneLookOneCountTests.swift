import HTTPCore
import Postgres
import SalternTesting
import Testing

@testable import SalternServer

/// What is looked at is counted, once, whatever the client does.
@Suite struct OneLookOneCountTests {
    @Test func `a client that goes away at any moment was counted, or not looked at`() async throws {
        try await TestApplication.with(connections: 1) { app in
            var executed: [String: Int64] = [:]
            var attempts: Int64 = 0
            // A busy machine looks at nobody within the moments of the first rounds: later ones last twice as long.
            for round in 0..<16 where round < 4 || executed["OpenSession"] == nil {
                await withTaskGroup(of: Void.self) { group in
                    for number in 0..<50 {
                        attempts += 1
                        // Everybody waits for one connection.
                        let attempt = Task {
                            // On a busy machine nobody else may go in time.
                            if number == 0 { withUnsafeCurrentTask { $0?.cancel() } }
                            return try await GuessingTests.attempt(app, "nobody-\(round)-\(number)", token: nil)
                        }
                        let moment = Duration.microseconds(Int.random(in: 0..<12_000 << max(0, round - 3)))
                        group.addTask {
                            try? await Task.sleep(for: moment)
                            attempt.cancel()
                            _ = try? await attempt.value
                        }
                    }
                }
                executed = try await app.executions()
            }
            let checks = try #require(executed["OpenSession"])
            #expect(checks > 0 && checks < attempts)
            #expect(try await app.execute(SumOfFailures()) == [checks])
            // From the moment at which the counter was read nobody gets away.
            #expect(executed["FindFailedAttempts"] == checks && executed["RecordFailedAttempt"] == checks)
        }
    }

    @Test func `when a failure cannot be counted nobody learns whether the secret was right`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let protected = try await app.protect(app.register())
            _ = try await ada.setRecovery(RecoveryTests.code)
            let secret = try await app.beginSecondFactor(ada)
            // For each statement, also for one that finds no row.
            try await app.administer(
                """
                CREATE FUNCTION saltern.refuse() RETURNS trigger LANGUAGE plpgsql AS
                    'BEGIN RAISE EXCEPTION ''no'' USING ERRCODE = ''53000''; END';
                CREATE TRIGGER refuse BEFORE INSERT OR UPDATE ON saltern.failed_attempts
                    FOR EACH STATEMENT EXECUTE FUNCTION saltern.refuse();
                """)
            let wrong = GuessingTests.wrongKey
            var replies: [TestResponse] = []
            for key in [ada.passwordKey, wrong] {
                replies.append(try await GuessingTests.attempt(app, ada.userid, key: key, token: nil))
                replies.append(
                    try await ada.client.put(
                        "/v1/account/credential",
                        NewKey(of: ada, to: "new")
                            .with(["currentPasswordKey": .string(key)]).body))
            }
            for key in [RecoveryTests.code, wrong] {
                replies.append(try await GuessingTests.attempt(app, ada.userid, .recoveryKey, key: key, token: nil))
            }
            for code in [secret.code(), "000000"] {
                replies.append(try await ada.client.post("/v1/account/totp/confirm", ["totp": .string(code)]))
            }
            for code in [protected.authenticator.code(), "000000", protected.recoveryCodes[0]] {
                replies.append(try await app.logIn(protected, code))
            }
            for reply in replies { #expect(reply.status == 503 && reply.code == replies[0].code, "\(reply)") }
            try await app.administer("DROP TRIGGER refuse ON saltern.failed_attempts")
            // And nothing was done.
            #expect(try await app.stored().restrictedSessions == 0)
            #expect(try await ada.client.get("/v1/account").integer("usage.sessions") == 1)
            #expect(try await app.logIn(protected, protected.recoveryCodes[0]).status == 201)
            #expect(try await GuessingTests.attempt(app, ada.userid, key: ada.passwordKey, token: nil).status == 201)
        }
    }

    @Test func `a request with two keys is one guess`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let thief = try await app.logIn(ada)
            // The guess in the place of the new key.
            let guess = NewKey(of: ada, to: "unused").with([
                "currentPasswordKey": .string(GuessingTests.wrongKey), "passwordKey": .string(ada.passwordKey),
            ])
            let reply = try await thief.put("/v1/account/credential", guess.body)
            #expect(reply.status == 403 && reply.code == "wrong_credentials")
            #expect(try await app.failures(of: ada, "failed_current_keys") == 1)
            for _ in 0..<4 { _ = try await thief.put("/v1/account/credential", guess.body) }
            #expect(try await thief.put("/v1/account/credential", guess.body).code == "too_many_attempts")
        }
    }

    @Test func `the retry of a change is no failure, and with another key before it is one`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let request = NewKey(of: ada, to: "new")
            #expect(try await ada.client.put("/v1/account/credential", request.body).status == 200)
            let again = try await ada.client.put("/v1/account/credential", request.body)
            #expect(again.status == 200)
            #expect(again.string("deviceToken") != nil)
            #expect(try await app.failures(of: ada, "failed_current_keys") == 0)
            let other = request.with(["currentPasswordKey": .string(GuessingTests.wrongKey)])
            #expect(try await ada.client.put("/v1/account/credential", other.body).status == 403)
            #expect(try await app.failures(of: ada, "failed_current_keys") == 1)
        }
    }

    @Test func `codes that shall confirm a second factor are counted and told`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let phone = try await app.beginSecondFactor(ada)
            var statuses: [Int] = []
            for _ in 0..<7 {
                let reply = try await ada.client.post("/v1/account/totp/confirm", ["totp": .string(phone.code(7))])
                statuses.append(reply.status)
            }
            #expect(statuses == [403, 403, 403, 403, 403, 429, 429])
            #expect(try await app.failures(of: ada, "failed_confirmations") == 5)
            app.clock.advance(by: .seconds(1))
            let reply = try await ada.client.post("/v1/account/totp/confirm", ["totp": .string(phone.code())])
            #expect(reply.status == 200)
            #expect(try await app.events(of: ada).contains("failed_confirmations"))
        }
    }
}

/// How many failures are counted, of all userids and kinds.
private struct SumOfFailures: Statement {
    typealias Row = Int64
    static let isReadOnly = true
    static let sql: SQL<Self> =
        "SELECT coalesce(sum(n), 0)::bigint FROM saltern.failed_attempts f CROSS JOIN unnest(f.counts) AS n"
}
