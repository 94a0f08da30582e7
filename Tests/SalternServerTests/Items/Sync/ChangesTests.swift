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

            let all = try await ada.client.get("/v1/changes?tombstones=all")
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
            #expect(none.text == #"{"changes":[],"cursor":"\#(cursor)","more":false,"revisionBase":0}"#)
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

    @Test func `one collection is followed without the others, and its cursor is its own`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            func put(_ collection: String, at path: String? = nil) async throws -> String {
                let path = path ?? "/v1/items/\(Fixtures.uuid())"
                let body: JSONValue = [
                    "collection": .string(collection), "format": "opaque", "body": .string(Fixtures.sealed()),
                ]
                let condition = try await ada.client.get(path).status == 404 ? "If-None-Match" : "If-Match"
                #expect(try await ada.client.put(path, body, [condition: "*"]).status < 300)
                return path
            }
            let note = try await put("notes")
            for _ in 0..<4 { _ = try await put("photos") }
            let second = try await put("notes")
            let first = try await ada.client.get("/v1/changes?collection=notes&limit=1")
            #expect(first.array("changes")?.count == 1)
            #expect(first.bool("more") == true)
            let cursor = try #require(first.string("cursor"))
            let rest = try await ada.client.get("/v1/changes?collection=notes&limit=1&since=\(cursor)")
            #expect(rest.integer("changes.0.revision") == 6)
            #expect(rest.bool("more") == false)
            let end = try #require(rest.string("cursor"))

            for other in ["", "&collection=photos"] {
                let refused = try await ada.client.get("/v1/changes?since=\(end)\(other)")
                #expect(refused.status == 400)
                #expect(refused.code == "malformed_cursor")
            }
            let everything = try #require(try await ada.client.get("/v1/changes").string("cursor"))
            #expect(try await ada.client.get("/v1/changes?collection=notes&since=\(everything)").status == 400)

            // What is deleted is told of; what has gone to another collection is not.
            _ = try await ada.client.delete(note, ["If-Match": "*"])
            _ = try await put("photos", at: second)
            let later = try await ada.client.get("/v1/changes?collection=notes&since=\(end)")
            #expect(try later.array("changes")?.map { try $0.object()["deleted"]?.bool() } == [true])
            #expect(try await ada.client.get("/v1/changes?collection=photos").array("changes")?.count == 5)
        }
    }

    @Test func `fields=meta tells what has changed without what it holds`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let paths = [try await ada.createItem(), try await ada.createItem()]
            _ = try await ada.client.delete(paths[0], ["If-Match": "*"])
            var target = "/v1/changes?fields=meta&tombstones=all&limit=1"
            var changes: [JSONValue] = []
            while true {
                let page = try await ada.client.get(target)
                #expect(page.status == 200, "\(page)")
                changes += try #require(page.array("changes"))
                #expect(page.integer("revisionBase") == 0)
                guard page.bool("more") == true else { break }
                target = "/v1/changes?fields=meta&tombstones=all&limit=1&since=\(try #require(page.string("cursor")))"
            }
            let names = ["collection", "createdAt", "deleted", "id", "revision", "updatedAt"]
            #expect(try changes.map { try $0.object().members.map(\.name.string).sorted() } == [names, names])
            #expect(try changes.map { try $0.object()["deleted"]?.bool() } == [false, true])
            #expect(try changes.map { try $0.object()["revision"]?.integer() } == [2, 3])
            // Without content it is the same feed: its cursor goes on with it.
            let cursor = try #require(try await ada.client.get("/v1/changes?fields=meta").string("cursor"))
            #expect(try await ada.client.get("/v1/changes?since=\(cursor)").array("changes")?.isEmpty == true)
            #expect(try await ada.client.get("/v1/changes?fields=all").code == "invalid_parameter")
            #expect(try await ada.client.get("/v1/changes?collection=A").code == "invalid_parameter")
        }
    }

    private static let badQueries: [(query: String, code: String)] = [
        ("since=", "malformed_cursor"), ("since=AA", "malformed_cursor"), ("since=7", "malformed_cursor"),
        ("since=!", "malformed_cursor"),
        // A page of GET /v1/items, a negative revision, a floor below the revision.
        ("since=\(ItemPage(after: .random())?.text ?? "")", "malformed_cursor"),
        ("since=Av__________AAAAAAAAAAA", "malformed_cursor"),
        ("since=AgAAAAAAAAACAAAAAAAAAAE", "malformed_cursor"),
        ("limit=0", "invalid_parameter"), ("limit=501", "invalid_parameter"), ("limit=x", "invalid_parameter"),
        ("cursor=AA", "unknown_parameter"), ("tombstones=", "invalid_parameter"),
        ("tombstones=none", "invalid_parameter"),
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

    @Test func `a first listing has tombstones of what it has shown, and none of what was deleted before it`()
        async throws
    {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let early = try await ada.createItem()
            let shown = try await ada.createItem()
            let late = try await ada.createItem()
            _ = try await ada.client.delete(early, ["If-Match": "*"])
            let first = try await ada.client.get("/v1/changes?limit=1")
            #expect(first.integer("changes.0.revision") == 2)
            for path in [shown, late] { _ = try await ada.client.delete(path, ["If-Match": "*"]) }
            let rest = try await ada.client.get("/v1/changes?since=\(try #require(first.string("cursor")))")
            let changes = try #require(rest.array("changes")).map { try $0.object() }
            #expect(try changes.map { try $0["revision"]?.integer() } == [5, 6])
            #expect(try changes.allSatisfy { try $0["deleted"]?.bool() == true })
            // A device that has items, and begins again, asks for all of them on every page.
            var revisions: [Int64?] = []
            var target = "/v1/changes?limit=2&tombstones=all"
            while true {
                let page = try await ada.client.get(target)
                revisions += try #require(page.array("changes")).map { try $0.object()["revision"]?.integer() }
                guard page.bool("more") == true else { break }
                target = "/v1/changes?limit=2&tombstones=all&since=\(try #require(page.string("cursor")))"
            }
            #expect(revisions == [4, 5, 6])
        }
    }

    @Test func `later pages of a first listing do not forget when it began`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let shown = try await ada.createItem()
            for _ in 0..<3 { _ = try await ada.createItem() }
            let first = try await ada.client.get("/v1/changes?limit=1")
            #expect(try await ada.client.delete(shown, ["If-Match": "*"]).integer("revision") == 5)
            let second = try await ada.client.get("/v1/changes?limit=1&since=\(try #require(first.string("cursor")))")
            #expect(second.integer("changes.0.revision") == 2)
            try await app.administer(
                "DELETE FROM saltern.items WHERE deleted; UPDATE saltern.accounts SET purged_revision = 5")
            // The device holds the item, and will not hear any more that it was deleted.
            let third = try await ada.client.get("/v1/changes?since=\(try #require(second.string("cursor")))")
            #expect(third.code == "cursor_expired")
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
