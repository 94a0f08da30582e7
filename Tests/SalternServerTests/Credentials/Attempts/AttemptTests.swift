import HTTPCore
import Postgres
import SalternTesting
import Testing

@testable import SalternServer

@Suite struct AttemptTests {
    private static let wrongKey = Fixtures.passwordKey("a wrong key")

    /// Sends a log-in.
    private func attempt(_ app: TestApplication, _ userid: String, _ key: String) async throws -> TestResponse {
        try await app.client.post("/v1/sessions", ["userid": .string(userid), "passwordKey": .string(key)])
    }

    @Test
    func `from the fifth failure on the delay doubles to a minute, for a userid that exists and one that does not`()
        async throws
    {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let nobody = Fixtures.userid()
            for userid in [ada.userid, nobody] {
                for _ in 0..<5 {
                    #expect(try await attempt(app, userid, Self.wrongKey).code == "wrong_credentials", "\(userid)")
                }
                for delay in [1, 2, 4, 8, 16, 32, 60, 60, 60] {
                    let blocked = try await attempt(app, userid, Self.wrongKey)
                    #expect(blocked.status == 429 && blocked.code == "too_many_attempts")
                    #expect(blocked.fields["Retry-After"] == String(delay))
                    app.clock.advance(by: .milliseconds(Int64(delay) * 1_000 - 1))
                    #expect(try await attempt(app, userid, Self.wrongKey).fields["Retry-After"] == "1")
                    app.clock.advance(by: .milliseconds(1))
                    #expect(try await attempt(app, userid, Self.wrongKey).status == 401)
                }
            }
            // While it is blocked, the right key is not looked at either.
            #expect(try await attempt(app, ada.userid, Self.wrongKey).status == 401)
            #expect(try await attempt(app, ada.userid, ada.passwordKey).status == 429)
            #expect(try await attempt(app, try await app.register().userid, Self.wrongKey).status == 401)
            app.clock.advance(by: .seconds(60))
            #expect(try await attempt(app, ada.userid, ada.passwordKey).status == 201)
            // The success has ended it.
            for _ in 0..<5 { #expect(try await attempt(app, ada.userid, Self.wrongKey).status == 401) }
            #expect(try await attempt(app, ada.userid, Self.wrongKey).fields["Retry-After"] == "1")
        }
    }

    @Test func `after a day without a failure the delays begin anew, and the count goes on`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            for _ in 0..<5 { _ = try await attempt(app, ada.userid, Self.wrongKey) }
            app.clock.advance(by: .seconds(86_400))
            for _ in 0..<5 { #expect(try await attempt(app, ada.userid, Self.wrongKey).status == 401) }
            #expect(try await attempt(app, ada.userid, Self.wrongKey).fields["Retry-After"] == "1")
            let events = try await ada.client.get("/v1/account/events")
            #expect(events.string("events.0.kind") == "failed_logins")
            #expect(events.integer("events.0.count") == 10)
            #expect(events.string("events.0.since") == "2026-01-01T00:00:00.000Z")
        }
    }

    @Test func `a thousand guesses at once get no more looks than one after the other`() async throws {
        try await TestApplication.with(connections: 2) { app in
            try await TestApplication.with(app.configuration, app.database, clock: app.clock, connections: 2) { other in
                let ada = try await app.register()
                for userid in [ada.userid, Fixtures.userid()] {
                    let statuses = try await withThrowingTaskGroup(of: Int.self) { group in
                        for number in 0..<1_000 {
                            let node = number.isMultiple(of: 2) ? app : other
                            group.addTask {
                                try await attempt(node, userid, Fixtures.passwordKey("guess \(number)")).status
                            }
                        }
                        return try await group.reduce(into: []) { $0.append($1) }
                    }
                    let checks = statuses.count { $0 == 401 }
                    // Each node may be about to look at one when the other's fifth failure is counted.
                    #expect((5...6).contains(checks), "\(checks)")
                    #expect(statuses.count { $0 == 429 } == 1_000 - checks)
                }
            }
        }
    }

    @Test func `a person may log in on many devices at once`() async throws {
        try await TestApplication.with(connections: 2) { app in
            let ada = try await app.register()
            let statuses = try await withThrowingTaskGroup(of: Int.self) { group in
                for _ in 0..<60 { group.addTask { try await attempt(app, ada.userid, ada.passwordKey).status } }
                return try await group.reduce(into: []) { $0.append($1) }
            }
            #expect(statuses == Array(repeating: 201, count: 60))
        }
    }

    @Test func `whoever has a token cannot guess the key with it`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            // Of sixteen slots two sessions may have the same; this is about the others.
            var phone = try await app.logIn(ada)
            while phone.slot == ada.client.slot { phone = try await app.logIn(ada) }
            func change(_ client: TestClient, current: String) async throws -> TestResponse {
                try await client.put(
                    "/v1/account/credential",
                    [
                        "currentPasswordKey": .string(current), "passwordKey": .string(Fixtures.passwordKey("new")),
                        "kdf": ["iterations": 600_000],
                    ])
            }
            for _ in 0..<5 { #expect(try await change(phone, current: Self.wrongKey).status == 403) }
            let blocked = try await change(phone, current: ada.passwordKey)
            #expect(blocked.code == "too_many_attempts")
            #expect(blocked.fields["Retry-After"] == "1")
            // The person's own device is not kept out.
            #expect(try await change(ada.client, current: ada.passwordKey).status == 200)
        }
    }

    @Test func `what was typed as a userid is nowhere to be read`() async throws {
        try await TestApplication.with { app in
            let typed = "correct-horse-battery-staple"
            _ = try await attempt(app, typed, Self.wrongKey)
            #expect(try await app.execute(CountAttempts(text: typed)) == [CountAttempts.Row(rows: 1, readable: 0)])
            #expect(!app.log.lines.contains { $0.contains(typed) })
        }
    }

    @Test func `failures that nobody adds to are forgotten after thirty days`() async throws {
        try await TestApplication.with { app in
            let (old, fresh) = (Fixtures.userid(), Fixtures.userid())
            for userid in [old, fresh] { _ = try await attempt(app, userid, Self.wrongKey) }
            app.clock.advance(by: .seconds(15 * 86_400))
            _ = try await attempt(app, fresh, Self.wrongKey)
            app.clock.advance(by: .seconds(15 * 86_400))
            let report = try await app.run { [postgres = app.postgres, now = app.clock.now] in
                try await Purge(database: postgres, sessions: SessionPolicy(), policy: PurgePolicy(), now: now).run()
            }
            #expect(report?.attempts == 1)
            #expect(try await app.execute(CountAttempts(text: "")).map(\.rows) == [1])
        }
    }
}

/// Rows of failures, and how many of them hold a text.
private struct CountAttempts: Statement {
    struct Row: Equatable {
        let rows: Int64
        let readable: Int64
    }

    let text: String

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT count(*), count(*) FILTER (WHERE position(convert_to(\(\.text), 'UTF8') IN f.subject) > 0)
        FROM saltern.failed_attempts f
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row { try row.read(Row.init) }
}
