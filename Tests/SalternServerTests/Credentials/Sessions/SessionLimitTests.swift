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

    @Test func `a login beyond a plan of many sessions ends a quarter of them, those that were used longest ago`()
        async throws
    {
        try await TestApplication.with(tally: Self.exact) { app in
            try await app.administer("UPDATE saltern.plans SET max_sessions = 32")
            let ada = try await app.register()
            var clients = [ada.client]
            for _ in 0..<31 {
                app.clock.advance(by: .seconds(3_600))
                clients.append(try await app.logIn(ada))
            }
            #expect(try await ada.client.get("/v1/account").integer("usage.sessions") == 32)
            try await ada.useIsRecorded(in: app)
            clients.append(try await app.logIn(ada))
            var live: [Int] = []
            for (index, client) in clients.enumerated() where try await client.get("/v1/account").status == 200 {
                live.append(index)
            }
            // The first one was used after all others.
            #expect(live == [0] + Array(10...32))
            // The next ones end none.
            for _ in 0..<8 { _ = try await app.logIn(ada) }
            #expect(try await ada.client.get("/v1/account").integer("usage.sessions") == 32)
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
            let (most, last) = (stored.max() ?? 0, stored.last ?? 0)
            #expect(most == 10)
            #expect(last == 3)
        }
    }

    @Test func `of the log-ins of an account at its plan's number of sessions one in 25 ends others`() async throws {
        let logIns: Int64 = 200
        let removals = try await Self.removals(limit: 100, logIns: logIns)
        #expect(removals >= 1 && removals <= logIns / 25, "\(removals)")
        // A plan of few sessions loses no more than it has to: there each log-in that counts ends others.
        let each = try await Self.removals(limit: SessionLimit.smallest - 1, logIns: logIns)
        #expect(each == logIns / Int64(SessionTally.interval))
    }

    /// Returns how many statements end sessions in log-ins of an account at its plan's number of sessions.
    private static func removals(limit: Int64, logIns: Int64) async throws -> Int64 {
        try await TestApplication.with(connections: 1) { app in
            try await app.administer("UPDATE saltern.plans SET max_sessions = \(limit)")
            let ada = try await app.register()
            for _ in 0..<limit { _ = try await app.logIn(ada) }
            try await app.countRemovals()
            let before = try #require(try await app.execute(CountRemovals()).first)
            for _ in 0..<logIns { _ = try await app.logIn(ada) }
            return try #require(try await app.execute(CountRemovals()).first) - before
        }
    }

    @Test func `log-ins that cannot end the others open no more than eight`() async throws {
        try await TestApplication.with { app in
            try await app.administer("UPDATE saltern.plans SET max_sessions = 1")
            try await app.refuseEnds()
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

    @Test func `who has not shown the second factor ends nobody's session`() async throws {
        try await TestApplication.with { app in
            try await app.administer("UPDATE saltern.plans SET max_sessions = 2")
            let ada = try await app.protect(app.register())
            #expect(try await app.logIn(ada, ada.recoveryCodes[0]).status == 201)
            for _ in 0..<12 { #expect(try await app.logIn(ada, nil).code == "totp_required") }
            for _ in 0..<4 { #expect(try await app.logIn(ada, "000000").code == "wrong_totp") }
            for _ in 0..<12 { #expect(try await app.logIn(ada, nil).code == "totp_required") }
            #expect(try await ada.client.get("/v1/account").integer("usage.sessions") == 2)
            #expect(try await app.events(of: ada.account).count { $0 == "session_ended" } == 0)
        }
    }

    @Test func `a log-in that has to end others uses its code up with that, or not at all`() async throws {
        try await TestApplication.with { app in
            try await app.refuseEnds()
            try await app.administer("UPDATE saltern.plans SET max_sessions = 1")
            let ada = try await app.protect(app.register())
            #expect(try await app.logIn(ada, ada.recoveryCodes[0]).status == 201)
            #expect(try await app.logIn(ada, ada.recoveryCodes[1]).status == 500)
            #expect(try await app.logIn(ada, nil).code == "totp_required")
            try await app.administer("DROP TRIGGER refuse ON saltern.sessions")
            #expect(try await app.logIn(ada, "000000").code == "wrong_totp")
            let last = try await app.logIn(ada, ada.recoveryCodes[1])
            #expect(last.status == 201)
            #expect(try await app.execute(CountRows()) == [[1, 1, 1]])
        }
    }

    @Test func `log-ins of many devices at once open no more than eight beyond the plan's`() async throws {
        try await TestApplication.with(connections: 2) { app in
            try await app.administer("UPDATE saltern.plans SET max_sessions = 3")
            let ada = try await app.register()
            _ = try await app.logIn(ada)
            try await app.refuseEnds()
            // While the first one of all is stored, the others have their turn.
            try await app.administer(
                """
                CREATE SEQUENCE saltern.sessions_stored;
                CREATE FUNCTION saltern.linger() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS
                    'BEGIN IF nextval(''saltern.sessions_stored'') = 1 THEN PERFORM pg_sleep(0.7); END IF;
                    RETURN NEW; END';
                CREATE TRIGGER linger BEFORE INSERT ON saltern.sessions FOR EACH ROW EXECUTE FUNCTION saltern.linger()
                """)
            let tokens = try app.tokensOfAllSlots(ada)
            let statuses = try await withThrowingTaskGroup(of: Int.self) { group in
                for token in tokens.map(Optional.some) + [nil] {
                    group.addTask {
                        try await GuessingTests.attempt(app, ada.userid, key: ada.passwordKey, token: token).status
                    }
                }
                return try await group.reduce(into: []) { $0.append($1) }
            }
            #expect(statuses.count { $0 == 201 } >= 8)
            let stored = try #require(try await app.execute(CountRows()).first)[2]
            #expect(stored <= 11)
            try await app.administer("DROP TRIGGER refuse ON saltern.sessions")
            let last = try await app.logIn(ada)
            #expect(try await last.get("/v1/account").integer("usage.sessions") == 3)
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
            #expect(tally.begin(account) == .within)
            tally.counted(account, before: true)
            tally.undo(account)
            #expect(tally.begin(account) == .never)
        }
    }
}

/// How many statements have removed sessions since ``TestApplication/countRemovals()``, and one.
private struct CountRemovals: Statement {
    typealias Row = Int64

    static let isReadOnly = true
    static let sql: SQL<Self> = "SELECT last_value FROM public.removals"
}

extension TestApplication {
    /// From now on each statement that removes sessions is counted.
    fileprivate func countRemovals() async throws {
        try await administer(
            """
            CREATE SEQUENCE public.removals;
            SELECT nextval('public.removals');
            GRANT SELECT ON public.removals TO saltern_server;
            CREATE FUNCTION public.count_removal() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS
                'BEGIN PERFORM nextval(''public.removals''); RETURN NULL; END';
            CREATE TRIGGER count AFTER DELETE ON saltern.sessions
                FOR EACH STATEMENT EXECUTE FUNCTION public.count_removal()
            """)
    }

    /// From now on no session can be removed.
    fileprivate func refuseEnds() async throws {
        try await administer(
            """
            CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE ''refused''; END';
            CREATE TRIGGER refuse BEFORE DELETE ON saltern.sessions FOR EACH ROW EXECUTE FUNCTION refuse();
            """)
    }

    /// A device's token for each counter that an account has besides the one of strangers.
    fileprivate func tokensOfAllSlots(_ account: TestAccount) throws -> [String] {
        let id = try #require(AccountID(pathParameter: account.id))
        let tokens = DeviceTokens(keys: configuration.masterKey.subkeys("known-device"))
        return try (0..<KnownDevice.slotCount).map { slot in
            try #require(tokens.text(KnownDevice(accountID: id, slot: slot, generation: 1)))
        }
    }
}
