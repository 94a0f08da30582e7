import HTTPCore
import SalternTesting
import Testing

@testable import SalternServer

@Suite struct ChangesTests {
    @Test func `items and tombstones come in the order of their revisions`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let first = try await ada.createItem()
            let second = try await ada.createItem()
            let third = try await ada.createItem()
            _ = try await ada.client.put(first, ItemTests.item(plaintext: 3), ["If-Match": "\"1\""])
            _ = try await ada.client.delete(second, ["If-Match": "\"2\""])

            let all = try await ada.client.get("/v1/changes")
            #expect(all.status == 200)
            #expect(all.bool("more") == false)
            let changes = try #require(all.array("changes"))
            #expect(try changes.map { try $0.object()["revision"]?.integer() } == [3, 4, 5])
            #expect(
                try changes.map { try $0.object()["id"].map { "/v1/items/\(try $0.string())" } }
                    == [third, first, second])
            #expect(all.string("changes.1.body") != nil)
            #expect(all.bool("changes.1.deleted") == false)
            #expect(all.bool("changes.2.deleted") == true)
            #expect(all["changes.2.body"] == nil)
            #expect(all["changes.2.format"] == nil)

            let cursor = try #require(all.string("cursor"))
            let none = try await ada.client.get("/v1/changes?since=\(cursor)")
            #expect(none.text == #"{"changes":[],"cursor":"\#(cursor)","more":false}"#)
            _ = try await ada.client.delete(third, ["If-Match": "*"])
            let one = try await ada.client.get("/v1/changes?since=\(cursor)")
            #expect(one.array("changes")?.count == 1)
            #expect(one.integer("changes.0.revision") == 6)
        }
    }

    @Test func `pages end at the limit and say whether more follows`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            for _ in 0..<7 { _ = try await ada.createItem() }
            var target = "/v1/changes?limit=3"
            var pages: [[Int64?]] = []
            while true {
                let page = try await ada.client.get(target)
                pages.append(try #require(page.array("changes")).map { try $0.object()["revision"]?.integer() })
                guard page.bool("more") == true else { break }
                target = "/v1/changes?limit=3&since=\(try #require(page.string("cursor")))"
            }
            #expect(pages == [[1, 2, 3], [4, 5, 6], [7]])
        }
    }

    @Test func `a page ends where its bytes do, but has at least one change`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            for (index, size) in [5_000_000, 3_000_000, 1_000_000, 1_000_000, 9].enumerated() {
                try await app.administer(
                    """
                    INSERT INTO saltern.items (account_id, item_id, revision, collection, format, body, created_at, updated_at)
                    SELECT '\(ada.id)', '00000000-0000-0000-0000-00000000000\(index + 1)', \(index + 1), 'default',
                        'opaque', decode(repeat('ab', \(size)), 'hex'), now(), now();
                    UPDATE saltern.accounts SET revision = \(index + 1) WHERE account_id = '\(ada.id)'
                    """)
            }
            var counts: [Int?] = []
            var target = "/v1/changes"
            while true {
                let page = try await ada.client.get(target)
                counts.append(page.array("changes")?.count)
                guard page.bool("more") == true else { break }
                target = "/v1/changes?since=\(try #require(page.string("cursor")))"
            }
            #expect(counts == [1, 2, 2])
        }
    }

    private static let badQueries: [(query: String, code: String)] = [
        ("since=", "malformed_cursor"), ("since=AA", "malformed_cursor"), ("since=7", "malformed_cursor"),
        ("since=!", "malformed_cursor"),
        // A page of GET /v1/items, a negative revision, a floor below the revision.
        ("since=\(ItemPage(after: .random()).text)", "malformed_cursor"),
        ("since=Av__________AAAAAAAAAAA", "malformed_cursor"),
        ("since=AgAAAAAAAAACAAAAAAAAAAE", "malformed_cursor"),
        ("limit=0", "invalid_parameter"), ("limit=501", "invalid_parameter"), ("limit=x", "invalid_parameter"),
        ("cursor=AA", "unknown_parameter"),
    ]

    @Test func `bad parameters are refused`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            for (query, code) in Self.badQueries {
                let reply = try await ada.client.get("/v1/changes?\(query)")
                #expect(reply.status == 400, "\(query)")
                #expect(reply.code == code, "\(query)")
            }
            #expect(try await app.client.get("/v1/changes").status == 401)
        }
    }

    @Test func `a cursor that missed purged tombstones expires, and one of a listing under way does not`() async throws
    {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let gone = try await ada.createItem()
            for _ in 0..<3 { _ = try await ada.createItem() }
            let before = try await ada.client.get("/v1/changes?limit=1")
            _ = try await ada.client.delete(gone, ["If-Match": "*"])
            let listing = try await ada.client.get("/v1/changes?limit=1")
            let uptodate = try await ada.client.get("/v1/changes")
            try await app.administer(
                "DELETE FROM saltern.items WHERE deleted; UPDATE saltern.accounts SET purged_revision = 5")

            let expired = try await ada.client.get("/v1/changes?since=\(try #require(before.string("cursor")))")
            #expect(expired.status == 410)
            #expect(expired.code == "cursor_expired")
            let rest = try await ada.client.get("/v1/changes?since=\(try #require(listing.string("cursor")))")
            #expect(rest.array("changes")?.count == 2)
            #expect(rest.bool("more") == false)
            for cursor in [rest.string("cursor"), uptodate.string("cursor")] {
                let next = try await ada.client.get("/v1/changes?since=\(try #require(cursor))")
                #expect(next.array("changes")?.count == 0)
            }
            // What begins now knows nothing that was purged.
            #expect(try await ada.client.get("/v1/changes").array("changes")?.count == 3)
        }
    }

    @Test func `another account's cursor shows nothing of that account, and one from the future is expired`()
        async throws
    {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let bob = try await app.register()
            for _ in 0..<2 { _ = try await ada.createItem() }
            for _ in 0..<3 { _ = try await bob.createItem() }
            let adas = try #require(try await ada.client.get("/v1/changes").string("cursor"))
            let bobs = try #require(try await bob.client.get("/v1/changes").string("cursor"))
            #expect(try await bob.client.get("/v1/changes?since=\(adas)").integer("changes.0.revision") == 3)
            #expect(try await ada.client.get("/v1/changes?since=\(bobs)").code == "cursor_expired")
        }
    }

    @Test func `a cursor survives the round trip`() throws {
        for (revision, floor) in [(0, 0), (1, 7), (Int64.max, Int64.max)] as [(Int64, Int64)] {
            let cursor = SyncCursor(revision: revision, floor: floor)
            #expect(try SyncCursor(cursor.text) == cursor)
        }
        #expect(SyncCursor(revision: 9, floor: 3).floor == 9)
    }
}
