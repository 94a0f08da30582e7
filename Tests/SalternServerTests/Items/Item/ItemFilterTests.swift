import HTTPCore
import SalternTesting
import Testing

@testable import SalternServer

@Suite struct ItemFilterTests {
    private static func note(in collection: String) -> JSONValue {
        [
            "format": "aes-256-gcm", "body": .string(Fixtures.sealed()), "collection": .string(collection),
            "title": .string(Fixtures.sealed(plaintext: 4)),
        ]
    }

    private static func ids(_ page: TestResponse) throws -> [String] {
        try #require(page.array("items")).map { try #require(try $0.object()["id"]).string() }
    }

    @Test func `a collection is listed by itself, page by page`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            var expected: [String] = []
            for index in 0..<12 {
                let path = try await ada.createItem(Self.note(in: index % 3 == 0 ? "notes" : "notes-2"))
                if index % 3 == 0 { expected.append(String(path.dropFirst("/v1/items/".count))) }
            }
            for fields in ["", "&fields=meta"] {
                let target = "/v1/items?collection=notes&limit=3\(fields)"
                let first = try await ada.client.get(target)
                #expect(try Self.ids(first) == Array(expected.sorted().prefix(3)))
                let page = try #require(first.string("nextPage"))
                let second = try await ada.client.get(target + "&page=\(page)")
                #expect(try Self.ids(second) == Array(expected.sorted().dropFirst(3)))
                #expect(second["nextPage"] == nil)
            }
            #expect(try Self.ids(await ada.client.get("/v1/items?collection=empty")) == [])
        }
    }

    @Test func `meta shows identifiers, revisions, collections and times, and nothing sealed`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let path = try await ada.createItem(Self.note(in: "notes"))
            _ = try await ada.client.delete(try await ada.createItem(), ["If-Match": "*"])
            let page = try await ada.client.get("/v1/items?fields=meta")
            let id = path.dropFirst("/v1/items/".count)
            let time = "2026-01-01T00:00:00.000Z"
            #expect(
                page.text == """
                    {"items":[{"id":"\(id)","revision":1,"collection":"notes","createdAt":"\(time)",\
                    "updatedAt":"\(time)","deleted":false}]}
                    """)
        }
    }

    @Test func `a page belongs to the listing that it came from`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            for _ in 0..<2 { _ = try await ada.createItem(Self.note(in: "notes")) }
            let listings = ["limit=1", "limit=1&collection=notes", "limit=1&fields=meta"]
            for listing in listings {
                let page = try #require(try await ada.client.get("/v1/items?\(listing)").string("nextPage"))
                for other in listings {
                    let reply = try await ada.client.get("/v1/items?\(other)&page=\(page)")
                    #expect(reply.status == (other == listing ? 200 : 400), "\(listing) \(other)")
                    if other != listing { #expect(reply.string("field") == "page") }
                }
            }
            for query in ["fields=all", "fields=", "collection=A", "collection="] {
                #expect(try await ada.client.get("/v1/items?\(query)").code == "invalid_parameter", "\(query)")
            }
        }
    }
}
