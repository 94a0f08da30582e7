import HTTPCore
import SalternTesting
import Testing

@Suite struct QuotaTests {
    @Test func `a plan limits items, bytes an item and bytes in all`() async throws {
        try await TestApplication.with { app in
            try await app.administer(
                "UPDATE saltern.plans SET max_items = 2, max_item_bytes = 228, max_bytes = 400 WHERE plan = 'default'")
            let ada = try await app.register()

            // 28 bytes of nonce and tag around the plaintext.
            let tooLarge = try await ada.client.put(
                "/v1/items/\(Fixtures.uuid())", ItemTests.item(plaintext: 201), ["If-None-Match": "*"])
            #expect(tooLarge.status == 403)
            #expect(tooLarge.code == "quota_exceeded")
            #expect(tooLarge.string("limit") == "itemBytes")
            #expect(tooLarge.integer("allowed") == 228)
            #expect(tooLarge.integer("used") == 229)

            let path = try await ada.createItem(ItemTests.item(plaintext: 200))
            let tooMuch = try await ada.client.put(
                "/v1/items/\(Fixtures.uuid())", ItemTests.item(plaintext: 145), ["If-None-Match": "*"])
            #expect(tooMuch.string("limit") == "bytes")
            #expect(tooMuch.integer("allowed") == 400)
            #expect(tooMuch.integer("used") == 228)

            let second = try await ada.createItem(ItemTests.item(plaintext: 144))
            #expect(try await ada.client.get("/v1/account").integer("usage.bytes") == 400)
            let tooMany = try await ada.client.put(
                "/v1/items/\(Fixtures.uuid())", ItemTests.item(plaintext: 0), ["If-None-Match": "*"])
            #expect(tooMany.string("limit") == "items")
            #expect(tooMany.integer("allowed") == 2)
            #expect(tooMany.integer("used") == 2)

            // Replacing by something as large or smaller is always possible; deleting makes room.
            #expect(try await ada.client.put(path, ItemTests.item(plaintext: 200), ["If-Match": "*"]).status == 200)
            #expect(try await ada.client.put(path, ItemTests.item(plaintext: 10), ["If-Match": "*"]).status == 200)
            #expect(try await ada.client.delete(second, ["If-Match": "*"]).status == 200)
            #expect(try await ada.client.get("/v1/account").integer("usage.bytes") == 38)
            _ = try await ada.createItem(ItemTests.item(plaintext: 144))
        }
    }

    @Test func `an account that is over a lowered limit can still shrink`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let path = try await ada.createItem(ItemTests.item(plaintext: 1_000))
            try await app.administer("UPDATE saltern.plans SET max_items = 0, max_bytes = 10, max_item_bytes = 10")
            for size in [500, 500, 400] {
                let smaller = ItemTests.item(plaintext: size)
                #expect(try await ada.client.put(path, smaller, ["If-Match": "*"]).status == 200, "\(size)")
            }
            let larger = try await ada.client.put(path, ItemTests.item(plaintext: 401), ["If-Match": "*"])
            #expect(larger.string("limit") == "itemBytes")
            #expect(larger.integer("used") == 429)
            // What is long is written by another statement.
            try await app.administer(
                "UPDATE saltern.plans SET max_items = 9, max_bytes = 900000, max_item_bytes = 900000")
            let long = try await ada.createItem(ItemTests.item(plaintext: 300_000))
            try await app.administer("UPDATE saltern.plans SET max_items = 0, max_bytes = 10, max_item_bytes = 10")
            #expect(try await ada.client.put(long, ItemTests.item(plaintext: 290_000), ["If-Match": "*"]).status == 200)
            #expect(try await ada.client.put(long, ItemTests.item(plaintext: 100), ["If-Match": "*"]).status == 200)
            #expect(try await ada.client.delete(path, ["If-Match": "*"]).status == 200)
        }
    }
}
