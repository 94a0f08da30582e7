import HTTPCore
import Postgres
import SalternTesting
import Testing

@testable import SalternServer

/// What a clock that was wrong has left behind.
@Suite struct WrongClockTests {
    private static func logIn(_ app: TestApplication, _ userid: String, _ key: String) async throws -> TestResponse {
        try await app.client.post("/v1/sessions", ["userid": .string(userid), "passwordKey": .string(key)])
    }

    /// Five failures in a row, the last of which a node counted whose clock was five minutes ahead.
    private static func blockByWrongClock(_ app: TestApplication, _ userid: String) async throws {
        for _ in 1...5 { #expect(try await logIn(app, userid, Fixtures.passwordKey("wrong")).status == 401) }
        try await app.administer(
            """
            UPDATE saltern.failed_attempts SET last_failed_at = last_failed_at + interval '5 minutes',
                blocked_until = blocked_until + interval '5 minutes'
            """)
    }

    @Test func `nobody is kept out for longer than the longest delay`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            try await Self.blockByWrongClock(app, ada.userid)
            #expect(try await Self.logIn(app, ada.userid, ada.passwordKey).status == 201)
        }
    }

    @Test func `one attempt is looked at because of it, and the delays go on from there`() async throws {
        try await TestApplication.with { app in
            let userid = Fixtures.userid()
            try await Self.blockByWrongClock(app, userid)
            #expect(try await Self.logIn(app, userid, Fixtures.passwordKey("wrong")).status == 401)
            let blocked = try await Self.logIn(app, userid, Fixtures.passwordKey("wrong"))
            #expect(blocked.status == 429)
            #expect(blocked.fields["Retry-After"] == "2")
        }
    }

    @Test func `a block counts to its end, and never for more than the longest delay`() {
        let now = Timestamp(unixSeconds: 1_767_225_600)
        let waits = [-1, 0, 1, 60, 63, 66, 300].map { AttemptPolicy.wait(until: now + .seconds($0), at: now) }
        #expect(waits == [nil, nil, .seconds(1), .seconds(60), .seconds(60), nil, nil])
    }
}
