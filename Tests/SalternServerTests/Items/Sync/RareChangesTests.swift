import HTTPCore
import SalternTesting
import Testing

@testable import SalternServer

/// A listing that shows little of much: no request looks through all of it.
@Suite struct RareChangesTests {
    /// Reads a listing to its end.
    private static func pages(_ client: TestClient, _ query: String) async throws -> [TestResponse] {
        var pages: [TestResponse] = []
        var since = ""
        while true {
            let page = try await client.get("/v1/changes?\(query)\(since)")
            #expect(page.status == 200)
            pages.append(page)
            guard page.bool("more") == true else { return pages }
            since = "&since=\(try #require(page.string("cursor")))"
        }
    }

    private static func fill(_ app: TestApplication, _ account: TestAccount, deleted: Bool = false) async throws {
        try await app.administer(
            """
            INSERT INTO saltern.items
                (account_id, item_id, revision, deleted, collection, format, body, created_at, updated_at)
            SELECT '\(account.id)', gen_random_uuid(), n, \(deleted), 'default',
                CASE WHEN NOT \(deleted) THEN 'opaque' END, CASE WHEN NOT \(deleted) THEN '\\x00'::bytea END, now(), now()
            FROM generate_series(1, 20000) n
            """)
        try await app.administer(
            "UPDATE saltern.accounts SET revision = 20000 WHERE account_id = '\(account.id)'")
    }

    private static func put(_ account: TestAccount, in collection: String, plaintext: Int = 32) async throws {
        let made = try await account.client.put(
            "/v1/items/\(Fixtures.uuid())",
            [
                "format": "aes-256-gcm", "body": .string(Fixtures.sealed(plaintext: plaintext)),
                "collection": .string(collection),
            ], ["If-None-Match": "*"])
        #expect(made.status == 201)
    }

    @Test(arguments: ["", "&fields=meta"])
    func `a collection with one item of 20,001 is found, past pages that are empty`(fields: String) async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            try await Self.fill(app, ada)
            try await Self.put(ada, in: "rare")
            let pages = try await Self.pages(ada.client, "collection=rare\(fields)")
            #expect(pages.map { $0.array("changes")?.count } == [0, 0, 0, 0, 1])
            #expect(Set(pages.compactMap { $0.string("cursor") }).count == 5)
            // What it has is what a device would have that had seen everything.
            let cursor = try #require(pages.last?.string("cursor"))
            try await Self.put(ada, in: "rare")
            let next = try await Self.pages(ada.client, "collection=rare\(fields)&since=\(cursor)")
            #expect(next.map { $0.array("changes")?.count } == [1])
            let none = try await Self.pages(ada.client, "collection=none\(fields)")
            #expect(none.map { $0.array("changes")?.count } == [0, 0, 0, 0, 0])
        }
    }

    @Test func `a page that is read while it is sent ends where so much was looked through`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            for _ in 0..<2 { try await Self.put(ada, in: "rare", plaintext: 400_000) }
            try await app.administer(
                """
                INSERT INTO saltern.items
                    (account_id, item_id, revision, collection, format, body, created_at, updated_at)
                SELECT '\(ada.id)', gen_random_uuid(), 100 + n, 'default', 'opaque', '\\x00', now(), now()
                FROM generate_series(1, 12000) n
                """)
            try await app.administer(
                "UPDATE saltern.accounts SET revision = 12100 WHERE account_id = '\(ada.id)'")
            try await Self.put(ada, in: "rare", plaintext: 400_000)
            let pages = try await Self.pages(ada.client, "collection=rare")
            #expect(pages.map { $0.array("changes")?.count } == [2, 0, 1])
        }
    }

    @Test func `a device that begins with nothing passes by 20,000 tombstones in pages`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            try await Self.fill(app, ada, deleted: true)
            _ = try await ada.createItem()
            let pages = try await Self.pages(ada.client, "limit=500")
            #expect(pages.map { $0.array("changes")?.count } == [0, 0, 0, 0, 1])
            let all = try await Self.pages(ada.client, "limit=500&tombstones=all")
            #expect(all.reduce(0) { $0 + ($1.array("changes")?.count ?? 0) } == 20_001)
        }
    }
}
