import Cryptography
import HTTPCore
import Postgres
import SalternTesting
import Testing

@testable import SalternServer

@Suite struct ShareTests {
    @Test(arguments: ["aes-256-gcm", "aes-256-gcm-iv16"])
    func `whoever has the link gets what was shared`(_ format: String) async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let content = ShareFixtures.content(
                format: format, ["expiresAt": "2026-01-02T00:00:00Z", "maxViews": 5, "iterations": 1_000])
            let created = try await ada.client.post("/v1/shares", content)
            #expect(created.status == 201)
            let id = try #require(created.string("id"))
            #expect(id.wholeMatch(of: /[0-9A-Za-z]{22}/) != nil)
            #expect(created.string("path") == "/s/\(id)")
            #expect(created.string("manageToken")?.wholeMatch(of: /slm_[0-9A-Za-z_-]{43}/) != nil)
            #expect(created.string("expiresAt") == "2026-01-02T00:00:00.000Z")
            #expect(created.integer("maxViews") == 5)
            #expect(created.integer("views") == 0)

            let opened = try await app.client.get("/v1/shares/\(id)")
            #expect(opened.status == 200)
            #expect(opened.string("format") == format)
            let salt = try content.object()["salt"]
            #expect(opened["salt"] == salt)
            #expect(opened.integer("iterations") == 1_000)
            #expect(opened.string("sealed") == ShareFixtures.sealed(content))
            #expect(opened.string("expiresAt") == "2026-01-02T00:00:00.000Z")
            #expect(opened.integer("viewsLeft") == 4)
            #expect(opened.fields["Cache-Control"] == "no-store, no-transform")
        }
    }

    @Test func `unknown, malformed, expired, used up, deleted and suspended are one and the same`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let expired = try await TestShare(ada.client, ShareFixtures.content(["expiresAt": "2026-01-01T01:00:00Z"]))
            let usedUp = try await TestShare(ada.client, ShareFixtures.content(["maxViews": 1]))
            let deleted = try await TestShare(ada.client)
            let suspended = try await TestShare(ada.client)
            #expect(try await app.client.get(usedUp.path).integer("viewsLeft") == 0)
            #expect(try await ada.client.delete(deleted.path).status == 204)
            try await app.administer(
                "UPDATE saltern.shares SET suspended = true WHERE share_id = '\\x\(Self.hex(suspended.id))'")
            app.clock.advance(by: .seconds(3_600))
            let unknown = ShareID.random().text
            var bodies: Set<String> = []
            for id in [
                expired.id, usedUp.id, deleted.id, suspended.id, unknown, "0", String(repeating: "z", count: 22),
                "%2e%2e%2e", String(repeating: "x", count: 500),
            ] {
                for method in [HTTPMethod.get, .head] {
                    let reply = try await app.client.send(method, "/v1/shares/\(id)")
                    #expect(reply.status == 404, "\(id)")
                    #expect(reply.fields["Content-Type"] == "application/problem+json")
                    #expect(reply.fields["Saltern-Views-Left"] == nil)
                    bodies.insert(reply.text.replacing(/"requestId":"[0-9a-f]+"/, with: ""))
                }
            }
            #expect(bodies.count == 1)
        }
    }

    @Test func `a look costs no view and tells how many are left`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let unlimited = try await TestShare(ada.client)
            let limited = try await TestShare(ada.client, ShareFixtures.content(["maxViews": 2]))
            for _ in 0..<5 {
                let look = try await app.client.send(.head, unlimited.path)
                #expect(look.status == 200)
                #expect(look.fields["Saltern-Views-Left"] == nil)
                #expect(try await app.client.send(.head, limited.path).fields["Saltern-Views-Left"] == "2")
            }
            _ = try await app.client.get(limited.path)
            #expect(try await app.client.send(.head, limited.path).fields["Saltern-Views-Left"] == "1")
            _ = try await app.client.get(limited.path)
            #expect(try await app.client.send(.head, limited.path).status == 404)
        }
    }

    @Test(arguments: [
        ("Sec-Purpose", "prefetch"), ("Sec-Purpose", "prefetch;prerender"), ("Purpose", "prefetch"),
        ("X-Purpose", "preview"), ("X-Moz", "prefetch"),
    ])
    func `a prefetch costs no view, and learns nothing`(_ name: String, _ value: String) async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let share = try await TestShare(ada.client, ShareFixtures.content(["maxViews": 1]))
            for path in [share.path, "/v1/shares/\(ShareID.random().text)"] {
                let reply = try await app.client.get(path, [name: value])
                #expect(reply.status == 403)
                #expect(reply.code == "prefetch_refused")
            }
            #expect(try await app.client.get(share.path).status == 200)
        }
    }

    @Test func `with the last view the payload is gone from the database`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let share = try await TestShare(ada.client, ShareFixtures.content(["maxViews": 2]))
            #expect(try await app.client.get(share.path).status == 200)
            #expect(try await app.execute(CountShareRows()) == [[1, 1]])
            let last = try await app.client.get(share.path)
            #expect(last.string("sealed") == ShareFixtures.sealed(share.content))
            #expect(last.integer("viewsLeft") == 0)
            #expect(last["expiresAt"] == nil)
            #expect(try await app.execute(CountShareRows()) == [[0, 0]])
            #expect(try await ada.client.get("/v1/account").integer("usage.shares") == 0)
        }
    }

    @Test func `an account sees its own shares, the newest first, a page at a time`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let bob = try await app.register()
            _ = try await TestShare(bob.client)
            var ids: [String] = []
            for index in 0..<7 {
                let share = try await TestShare(ada.client, ShareFixtures.content(plaintext: index, ["maxViews": 9]))
                ids.insert(share.id, at: 0)
                // Two have the same moment.
                if index != 3 { app.clock.advance(by: .seconds(1)) }
            }
            _ = try await app.client.get("/v1/shares/\(ids[0])")
            let whole = try await ada.client.get("/v1/shares")
            #expect(whole["nextPage"] == nil)
            #expect(whole.integer("shares.0.views") == 1)
            #expect(whole.integer("shares.0.bytes") == 28 + 6)
            #expect(whole.integer("shares.0.maxViews") == 9)
            #expect(whole["shares.0.sealed"] == nil)
            #expect(whole["shares.0.manageToken"] == nil)
            let listed = (0..<7).map { whole.string("shares.\($0).id") ?? "" }
            #expect(Set(listed) == Set(ids))
            #expect(Array(listed[..<2]) == Array(ids[..<2]))

            var pages: [String] = []
            var target = "/v1/shares?limit=2"
            while true {
                let page = try await ada.client.get(target)
                for index in 0..<(page.array("shares")?.count ?? 0) {
                    pages.append(try #require(page.string("shares.\(index).id")))
                }
                guard let next = page.string("nextPage") else { break }
                target = "/v1/shares?limit=2&page=\(next)"
            }
            #expect(pages == listed)
            #expect(try await ada.client.get("/v1/shares?page=AAAA").code == "invalid_parameter")
            #expect(try await ada.client.get("/v1/shares?limit=0").code == "invalid_parameter")
        }
    }

    @Test func `a purge removes what has ended, and nothing else`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            for day in [2, 3, 4] {
                for _ in 0..<4 {
                    _ = try await TestShare(
                        ada.client, ShareFixtures.content(["expiresAt": .string("2026-01-0\(day)T00:00:00Z")]))
                }
            }
            let lasting = try await TestShare(ada.client)
            app.clock.advance(by: .seconds(2 * 86_400))
            #expect(try await ada.client.get("/v1/account").integer("usage.shares") == 5)
            let now = app.clock.now
            let report = try await app.run {
                try await Purge(
                    database: app.postgres, sessions: SessionPolicy(), policy: PurgePolicy(biteSize: 3), now: now
                ).run()
            }
            #expect(report?.shares == 8)
            #expect(try await app.execute(CountShareRows()) == [[5, 5]])
            #expect(try await app.client.get(lasting.path).status == 200)
        }
    }

    @Test func `manage token and payload are not in the log, and the token not in the database`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let share = try await TestShare(ada.client)
            _ = try await app.client.get(share.path)
            _ = try await app.client.with(token: share.manageToken).put(share.path, ShareFixtures.content())
            _ = try await app.client.with(token: share.manageToken).delete(share.path)
            _ = try await app.client.get(share.path)
            let log = app.log.lines.joined()
            #expect(log.contains("/v1/shares/{id}"))
            for secret in [share.id, share.manageToken, try #require(ShareFixtures.sealed(share.content))] {
                #expect(!log.contains(secret))
            }
        }
    }

    @Test func `what PostgreSQL remembers of statements names no share, no token and no payload`() async throws {
        try await TemporaryDatabase.with(migrations: Schema.migrations) { database in
            // The tracking is off in the cluster of `scripts/test`.
            try await database.administer("ALTER DATABASE \(database.name) SET pg_stat_statements.track = 'top'")
            try await TestApplication.with(TestApplication.configuration, database, clock: ManualClock()) { app in
                try await app.administer("CREATE EXTENSION pg_stat_statements SCHEMA public")
                let ada = try await app.register()
                let share = try await TestShare(ada.client, ShareFixtures.content(["maxViews": 1]))
                _ = try await app.client.with(token: share.manageToken).put(share.path, share.content)
                _ = try await app.client.send(.head, share.path)
                _ = try await app.client.get(share.path)
                _ = try await ada.client.get("/v1/shares")
                _ = try await ada.client.delete(share.path)
                let texts = try await app.execute(FindStatementTexts()).joined()
                #expect(texts.contains("UPDATE saltern.shares s"))
                let sealed = try Base64.decode(#require(ShareFixtures.sealed(share.content)).utf8)
                for secret in [share.id, Self.hex(share.id), share.manageToken, Hex.encode(sealed)] {
                    #expect(!texts.lowercased().contains(secret.lowercased()))
                }
            }
        }
    }

    /// The identifier's bytes as SQL writes them.
    static func hex(_ id: String) -> String { Hex.encode(ShareID(text: id)?.bytes ?? []) }
}

/// Rows of `shares` and of `account_shares`.
struct CountShareRows: Statement {
    typealias Row = [Int64]
    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT ARRAY[(SELECT count(*) FROM saltern.shares), (SELECT count(*) FROM saltern.account_shares)]
        """
}

/// The texts of all statements of the database that PostgreSQL has counted.
private struct FindStatementTexts: Statement {
    typealias Row = String
    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT s.query FROM public.pg_stat_statements s JOIN pg_database d ON d.oid = s.dbid
        WHERE d.datname = current_database()
        """
}
