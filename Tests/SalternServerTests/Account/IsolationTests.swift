import Cryptography
import HTTPCore
import Postgres
import SalternTesting
import Testing

@testable import SalternServer

/// Somebody holds what belongs to one account or one share; everybody else goes on, while it is held.
@Suite struct IsolationTests {
    /// A person who has nothing to do with it reads, writes, logs in and changes the credential.
    private static func liveOn(_ bob: TestAccount, _ app: TestApplication, rounds: Int) async throws {
        for _ in 0..<rounds {
            let path = try await bob.createItem()
            #expect(try await bob.client.get(path).status == 200)
            #expect(try await bob.client.get("/v1/changes").status == 200)
            #expect(try await bob.client.delete(path, ["If-Match": "*"]).status == 200)
            #expect(try await app.logInStatus(bob.userid, bob.passwordKey) == 201)
        }
        let share = try await TestShare(bob.client)
        #expect(try await app.client.get(share.path).status == 200)
        #expect(try await app.client.with(token: share.manageToken).delete(share.path).status == 204)
        #expect(try await bob.client.put("/v1/account/credential", NewKey(of: bob, to: "other").body).status == 200)
        _ = try await app.register()
    }

    /// What those who waited may be told.
    private static func isPatient(_ reply: TestResponse) -> Bool {
        reply.status < 500
            || reply.status == 503 && reply.code == "database_unavailable" && reply.fields["Retry-After"] != nil
    }

    @Test func `while an account is held, 128 writers of it hold up nobody else`() async throws {
        try await TestApplication.with(connections: 2) { app in
            let ada = try await app.register()
            let bob = try await app.register()
            let path = try await ada.createItem()
            let writers = try await HeldRow.account(ada, in: app) { held in
                let writers = (0..<128).map { _ in
                    Task { try await ada.client.put(path, ItemTests.item(), ["If-Match": "*"]) }
                }
                try await held.waiters(1)
                try await Self.liveOn(bob, app, rounds: 10)
                // Nobody else is answered while it is held: then all have come that wait.
                try await eventually {
                    app.log.lines.contains { $0.contains("too_many_waiting") }
                }
                return writers
            }
            var refused = 0
            for writer in writers {
                let reply = try await writer.value
                #expect(Self.isPatient(reply), "\(reply)")
                guard reply.code == "too_many_waiting" else { continue }
                refused += 1
                #expect(reply.status == 429)
                #expect(reply.integer("limit") == 64)
                #expect(reply.fields["Retry-After"] == "1")
            }
            #expect((1...64).contains(refused))
            #expect(try await ada.client.put(path, ItemTests.item(), ["If-Match": "*"]).status == 200)
        }
    }

    @Test func `those who take back the shares of an account that is held leave leases to others`() async throws {
        try await TestApplication.with(connections: 2) { app in
            let ada = try await app.register()
            let bob = try await app.register()
            var shares: [TestShare] = []
            for _ in 0..<24 { shares.append(try await TestShare(ada.client)) }
            let deletions = try await HeldRow.account(ada, in: app) { [shares] held in
                let deletions = shares.map { share in
                    Task { try await app.client.with(token: share.manageToken).delete(share.path) }
                }
                try await held.waiters(1)
                try await Self.liveOn(bob, app, rounds: 1)
                return deletions
            }
            for deletion in deletions {
                let reply = try await deletion.value
                #expect(reply.status == 204, "\(reply)")
            }
        }
    }

    @Test func `strangers who name an account in their tokens do not wait where its writes wait`() async throws {
        try await TestApplication.with(connections: 2) { app in
            let ada = try await app.register()
            _ = try await ada.createItem()
            let id = try #require(AccountID(pathParameter: ada.id))
            let (mine, theirs) = try await HeldRow.account(ada, in: app) { held in
                let mine = Task {
                    try await ada.client.put(
                        "/v1/items/\(ItemID.random().uuid)", ItemTests.item(), ["If-None-Match": "*"])
                }
                try await held.waiters(1)
                // More than may wait for one account, all at once, and of three ways to change something.
                let strangers = (0..<120).map { number in
                    Task {
                        let token = "slt_" + Base64URL.encodeToString(id.uuid.bytes + SecureRandom.bytes(32))
                        let stranger = app.client.with(token: token)
                        return switch number % 3 {
                        case 0:
                            try await stranger.put(
                                "/v1/items/\(ItemID.random().uuid)", ItemTests.item(), ["If-Match": "*"])
                        case 1: try await stranger.post("/v1/items/batch", ["operations": []])
                        default: try await stranger.delete("/v1/sessions")
                        }
                    }
                }
                var replies: [TestResponse] = []
                for stranger in strangers { replies.append(try await stranger.value) }
                return (mine, replies)
            }
            #expect(theirs.allSatisfy { $0.code == "unauthenticated" || $0.status == 422 })
            #expect(try await mine.value.status == 201)
            // Nor does a session that has ended.
            let ended = try await app.logIn(ada)
            _ = try await ended.put("/v1/items/\(ItemID.random().uuid)", ItemTests.item(), ["If-None-Match": "*"])
            #expect(try await ended.delete("/v1/sessions/current").status == 204)
            let late = try await HeldRow.account(ada, in: app) { _ in
                try await ended.put("/v1/items/\(ItemID.random().uuid)", ItemTests.item(), ["If-Match": "*"])
            }
            #expect(late.code == "unauthenticated")
        }
    }

    private struct LockShare: Statement {
        typealias Row = Bool
        let id: ShareID
        static let sql: SQL<Self> = "SELECT true FROM saltern.shares s WHERE s.share_id = \(\.id) FOR UPDATE"
    }

    @Test func `a share that 64 want to see while it is held keeps nobody from anything else`() async throws {
        try await TestApplication.with(connections: 2) { app in
            let ada = try await app.register()
            let bob = try await app.register()
            let share = try await TestShare(ada.client)
            let id = try #require(ShareID(text: share.id))
            let views = try await HeldRow.hold(LockShare(id: id), in: app) { held in
                let views = (0..<64).map { _ in Task { try await app.client.get(share.path) } }
                try await held.waiters(1)
                try await Self.liveOn(bob, app, rounds: 3)
                // The account itself goes on too.
                _ = try await ada.createItem()
                return views
            }
            for view in views {
                let reply = try await view.value
                #expect(Self.isPatient(reply), "\(reply)")
            }
        }
    }

    private struct FindPatience: Statement {
        typealias Row = String
        static let isReadOnly = true
        static let sql: SQL<Self> = "SELECT s.patience FROM public.seen s ORDER BY s.number"
    }

    /// Only a request on a connection that others share gives up after a few milliseconds.
    @Test func `what is long is not sent on a connection behind which others wait`() async throws {
        try await TestApplication.with { app in
            try await app.administer(
                """
                CREATE TABLE public.seen (number bigint GENERATED ALWAYS AS IDENTITY, patience text);
                CREATE FUNCTION public.see() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN
                    INSERT INTO public.seen (patience) VALUES (current_setting('lock_timeout')); RETURN NEW;
                END $$;
                CREATE TRIGGER see BEFORE INSERT ON saltern.items FOR EACH ROW EXECUTE FUNCTION public.see();
                CREATE TRIGGER see BEFORE INSERT ON saltern.shares FOR EACH ROW EXECUTE FUNCTION public.see();
                """)
            let ada = try await app.register()
            let limit = 262_144
            for count in [limit - 28, limit] {
                _ = try await ada.createItem(ItemTests.item(plaintext: count))
                _ = try await TestShare(
                    ada.client,
                    [
                        "format": "aes-256-gcm", "salt": "AQIDBAUGBwg=", "iterations": 1_000,
                        "sealed": .string(Fixtures.sealed(plaintext: count)),
                    ])
            }
            let patience = try await SeparateClient.with(app.database.administratorURL) { client in
                try await client.run { try await $0.execute(FindPatience()) }
            }
            try #require(patience.count == 4)
            #expect(patience[0] == patience[1] && patience[2] == patience[3] && patience[1] != patience[2])
        }
    }

    private struct FindLastUse: Statement {
        typealias Row = Timestamp
        static let isReadOnly = true
        static let sql: SQL<Self> = "SELECT max(s.last_used_at) FROM saltern.sessions s"
    }

    @Test func `the use of sessions that was gathered is written before the end`() async throws {
        try await TemporaryDatabase.with(migrations: Schema.migrations) { database in
            let clock = ManualClock()
            try await TestApplication.with(TestApplication.configuration, database, clock: clock) { app in
                let ada = try await app.register()
                clock.advance(by: .seconds(120))
                #expect(try await ada.client.get("/v1/account").status == 200)
            }
            try await SeparateClient.with(database.administratorURL) { client in
                let lastUse = try await client.run { try await $0.execute(FindLastUse()).first }
                #expect(lastUse == clock.now)
            }
        }
    }
}
