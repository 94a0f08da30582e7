import Postgres
import SalternTesting
import Testing

@testable import SalternServer

@Suite struct SessionLimitTests {
    /// Every log-in counts.
    private static var exact: SessionTally { SessionTally(interval: 1) }

    @Test func `a login beyond the plan's limit ends the session that was used longest ago`() async throws {
        try await TestApplication.with(tally: Self.exact) { app in
            try await app.administer("UPDATE saltern.plans SET max_sessions = 3")
            let ada = try await app.register()
            app.clock.advance(by: .seconds(3_600))
            let phone = try await app.logIn(ada)
            app.clock.advance(by: .seconds(3_600))
            let tablet = try await app.logIn(ada)
            app.clock.advance(by: .seconds(3_600))
            // The oldest session is used again, so that the phone's is now the one.
            #expect(try await ada.client.get("/v1/account").status == 200)
            try await ada.useIsRecorded(in: app)
            let laptop = try await app.logIn(ada)

            #expect(try await phone.get("/v1/account").status == 401)
            for client in [ada.client, tablet, laptop] {
                #expect(try await client.get("/v1/account").status == 200)
            }
            #expect(try await laptop.get("/v1/account").integer("usage.sessions") == 3)
        }
    }

    @Test func `a lowered limit takes effect when sessions are counted next`() async throws {
        try await TestApplication.with(tally: Self.exact) { app in
            let ada = try await app.register()
            for _ in 0..<5 { _ = try await app.logIn(ada) }
            try await app.administer("UPDATE saltern.plans SET max_sessions = 1")
            let last = try await app.logIn(ada)
            #expect(try await last.get("/v1/account").integer("usage.sessions") == 1)
            #expect(try await ada.client.get("/v1/account").status == 401)
        }
    }

    @Test func `a login that counts removes the sessions that have ended`() async throws {
        try await TestApplication.with(tally: Self.exact) { app in
            let ada = try await app.register()
            _ = try await app.logIn(ada)
            app.clock.advance(by: .seconds(31 * 86_400))
            _ = try await app.logIn(ada)
            #expect(try await app.execute(CountRows()) == [[1, 1, 1]])
        }
    }

    @Test func `no account has more than eight sessions beyond its plan's, and every eighth log-in counts`()
        async throws
    {
        try await TestApplication.with(connections: 1) { app in
            try await app.administer("UPDATE saltern.plans SET max_sessions = 3")
            let ada = try await app.register()
            var stored: [Int64] = []
            for _ in 0..<33 {
                _ = try await app.logIn(ada)
                stored.append(try #require(try await app.execute(CountRows()).first)[2])
            }
            let executions = try await app.executions()
            #expect(executions["OpenSession"] == 33)
            #expect(executions["CountSessions"] == 5)
            #expect(executions["TrimSessions"] == 4)
            let (most, last) = (stored.max() ?? 0, stored.last ?? 0)
            #expect(most == 10)
            #expect(last == 3)
        }
    }

    @Test func `log-ins that cannot end the others open no more than eight`() async throws {
        try await TestApplication.with { app in
            try await app.administer(
                """
                UPDATE saltern.plans SET max_sessions = 1;
                CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE ''refused''; END';
                CREATE TRIGGER refuse BEFORE DELETE ON saltern.sessions FOR EACH ROW EXECUTE FUNCTION refuse();
                """)
            let ada = try await app.register()
            // The first one on a node is due; those after it have to count before.
            #expect(try await app.logInStatus(ada.userid, ada.passwordKey) == 201)
            for _ in 0..<8 { #expect(try await app.logInStatus(ada.userid, ada.passwordKey) == 500) }
            #expect(try await app.execute(CountRows()) == [[1, 1, 2]])
            try await app.administer("DROP TRIGGER refuse ON saltern.sessions")
            let last = try await app.logIn(ada)
            #expect(try await last.get("/v1/account").integer("usage.sessions") == 1)
        }
    }

    @Test func `an account that is locked is not counted, and neither is it with a wrong key`() async throws {
        try await TestApplication.with(connections: 1) { app in
            let ada = try await app.register()
            try await app.administer("UPDATE saltern.accounts SET locked_at = now()")
            for key in [ada.passwordKey, Fixtures.passwordKey("wrong"), ada.passwordKey] {
                #expect(try await app.logInStatus(ada.userid, key) == 401)
            }
            #expect(try await app.executions()["CountSessions"] == nil)
        }
    }

    @Test func `the tally has every eighth count, and whom it does not know, in bounded memory`() {
        let tally = SessionTally()
        let accounts = (0..<100_000).map { _ in AccountID.random() }
        for account in accounts {
            #expect(tally.begin(account) == .after)
            tally.counted(account, before: false)
        }
        // Those whose place nobody has taken since are known. Asking takes the places of some of them.
        let known = accounts.reversed().filter { tally.begin($0) == .never }
        #expect(known.count <= SessionTally.places && known.count > SessionTally.places / 2)
        for account in known {
            let duties = (0..<SessionTally.interval).map { _ in tally.begin(account) }
            // One of the eight, at the latest, is due.
            #expect(duties.contains(.after))
            #expect(tally.begin(account) == .before)
            tally.counted(account, before: true)
            tally.undo(account)
            #expect(tally.begin(account) == .never)
        }
    }
}
