import HTTPCore
import SalternTesting
import Testing

@testable import SalternServer

@Suite struct ItemListTests {
    @Test func `pages show every live item once, in order`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            var expected: [String] = []
            for _ in 0..<23 {
                expected.append(String(try await ada.createItem().dropFirst("/v1/items/".count)))
            }
            let gone = expected.removeLast()
            _ = try await ada.client.delete("/v1/items/\(gone)", ["If-Match": "*"])

            var found: [String] = []
            var sizes: [Int] = []
            var target: String? = "/v1/items?limit=5"
            while let next = target {
                let page = try await ada.client.get(next)
                #expect(page.status == 200)
                let items = try #require(page.array("items"))
                sizes.append(items.count)
                found += items.compactMap { try? $0.object()["id"]?.string() }
                target = page.string("nextPage").map { "/v1/items?limit=5&page=\($0)" }
            }
            #expect(sizes == [5, 5, 5, 5, 2])
            #expect(found == expected.sorted())
        }
    }

    @Test func `a page ends where its bytes do, but has at least one item`() async throws {
        try await TestApplication.with { app in
            try await app.administer("UPDATE saltern.plans SET max_item_bytes = 8000000, max_bytes = 100000000")
            let ada = try await app.register()
            let sizes = [1_000_000, 3_000_000, 1_000_000, 200]
            for (index, size) in sizes.enumerated() {
                try await app.administer(
                    """
                    INSERT INTO saltern.items (account_id, item_id, revision, collection, format, body, created_at, updated_at)
                    SELECT '\(ada.id)', '00000000-0000-0000-0000-00000000000\(index + 1)', \(index + 1), 'default',
                        'opaque', decode(repeat('ab', \(size)), 'hex'), now(), now()
                    """)
            }
            let first = try await ada.client.get("/v1/items")
            #expect(first.array("items")?.count == 2)
            let second = try await ada.client.get("/v1/items?page=\(try #require(first.string("nextPage")))")
            #expect(second.array("items")?.count == 2)
            #expect(second["nextPage"] == nil)

            try await app.administer(
                "UPDATE saltern.items SET body = decode(repeat('ab', 5000000), 'hex') WHERE revision = 1")
            let alone = try await ada.client.get("/v1/items")
            #expect(alone.array("items")?.count == 1)
            #expect(alone["nextPage"] != nil)
        }
    }

    @Test(arguments: ["", "&fields=meta"])
    func `a page of a collection looks through one slice of the account, and says where the next begins`(
        fields: String
    ) async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            // The last of the first slice, and the first and the last of the second one.
            let rare = [FindSliceEnd.size - 1, FindSliceEnd.size, FindSliceEnd.size + 9]
            try await app.administer(
                """
                INSERT INTO saltern.items (account_id, item_id, revision, collection, format, body, created_at, updated_at)
                SELECT '\(ada.id)', lpad(to_hex(n), 32, '0')::uuid, n + 1,
                    CASE WHEN n IN (\(rare.map(String.init).joined(separator: ", "))) THEN 'rare' ELSE 'default' END,
                    'opaque', '\\xff', now(), now()
                FROM generate_series(0, \(FindSliceEnd.size + 9)) n
                """)
            func ids(_ page: TestResponse) -> [Int64] {
                (page.array("items") ?? []).compactMap { item in
                    guard let id = try? item.object()["id"]?.string() else { return nil }
                    return Int64(id.suffix(12), radix: 16)
                }
            }
            let first = try await ada.client.get("/v1/items?collection=rare\(fields)")
            #expect(ids(first) == [rare[0]])
            let token = try #require(first.string("nextPage"))
            let second = try await ada.client.get("/v1/items?collection=rare\(fields)&page=\(token)")
            #expect(ids(second) == [rare[1], rare[2]])
            #expect(second["nextPage"] == nil)
            let nothing = try await ada.client.get("/v1/items?collection=none\(fields)")
            #expect(nothing.array("items")?.isEmpty == true && nothing["nextPage"] != nil)
        }
    }

    @Test func `a slice that ends with the highest identifier is the last one`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            try await app.administer(
                """
                INSERT INTO saltern.items (account_id, item_id, revision, collection, format, body, created_at, updated_at)
                SELECT '\(ada.id)', ('ffffffff-ffff-ffff-ffff-' || lpad(to_hex(281474976710655 - n), 12, '0'))::uuid,
                    n + 1, 'default', 'opaque', '\\xff', now(), now()
                FROM generate_series(0, \(FindSliceEnd.size - 1)) n
                """)
            let page = try await ada.client.get("/v1/items?collection=none")
            #expect(page.text == #"{"items":[]}"#)
        }
    }

    @Test func `an account without items has an empty page`() async throws {
        try await TestApplication.with { app in
            let page = try await app.register().client.get("/v1/items")
            #expect(page.text == #"{"items":[]}"#)
        }
    }

    private static let badQueries: [(query: String, code: String, field: String?)] = [
        ("limit=0", "invalid_parameter", "limit"), ("limit=501", "invalid_parameter", "limit"),
        ("limit=-1", "invalid_parameter", "limit"), ("limit=x", "invalid_parameter", "limit"),
        ("limit=", "invalid_parameter", "limit"), ("page=", "invalid_parameter", "page"),
        ("page=AAAAAAAAAAAAAAAAAAAAAAA", "invalid_parameter", "page"), ("page=!", "invalid_parameter", "page"),
        ("limit=1&limit=2", "duplicate_parameter", "limit"), ("offset=3", "unknown_parameter", "offset"),
    ]

    @Test func `bad parameters are refused`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            for (query, code, field) in Self.badQueries {
                let reply = try await ada.client.get("/v1/items?\(query)")
                #expect(reply.status == 400, "\(query)")
                #expect(reply.code == code, "\(query)")
                #expect(reply.string("field") == field, "\(query)")
            }
        }
    }

    @Test func `a page token survives the round trip, and begins right behind the item`() throws {
        let page = try #require(ItemPage(after: .random()))
        #expect(ItemPage(pathParameter: page.text) == page)
        for (id, next) in [
            ("00000000-0000-0000-0000-000000000000", "00000000-0000-0000-0000-000000000001"),
            ("00000000-0000-0000-ffff-ffffffffffff", "00000000-0000-0001-0000-000000000000"),
        ] {
            #expect(ItemPage(after: try #require(ItemID(pathParameter: id)))?.first.description == next)
        }
    }

    @Test func `the lowest and the highest identifiers are listed too`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            for id in ["00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff"] {
                let put = try await ada.client.put("/v1/items/\(id)", ItemTests.item(), ["If-None-Match": "*"])
                #expect(put.status == 201)
            }
            let first = try await ada.client.get("/v1/items?limit=1")
            #expect(first.string("items.0.id")?.hasPrefix("0") == true)
            let second = try await ada.client.get("/v1/items?limit=1&page=\(try #require(first.string("nextPage")))")
            #expect(second.string("items.0.id")?.hasPrefix("f") == true)
            #expect(second["nextPage"] == nil)
        }
    }
}
