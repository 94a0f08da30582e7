import HTTPCore
import SalternTesting
import Testing

@testable import SalternServer

/// What takes long, or uses up a code, has a connection of its own: on the shared ones others' requests wait behind it.
@Suite struct LongStatementTests {
    @Test func `a long item that is replaced by a short one leaves on a connection of its own`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let path = try await ada.createItem(ItemTests.item(plaintext: 300_000))
            // The first replacement in ten minutes also keeps a version.
            let another = ItemTests.item(plaintext: 300_000)
            #expect(try await ada.client.put(path, another, ["If-Match": "*"]).status == 200)
            try await app.watchLanes(of: "items")
            #expect(try await ada.client.put(path, ItemTests.item(), ["If-Match": "\"2\""]).status == 200)
            // The short paths have changed nothing.
            #expect(try await app.sharedLanes() == [true, true, false])
            #expect(try await ada.client.get(path).integer("revision") == 3)
            #expect(try await ada.client.put(path, ItemTests.item(), ["If-Match": "*"]).status == 200)
            #expect(try await app.sharedLanes() == [true, true, false, true])
            let account = try await ada.client.get("/v1/account")
            #expect(account.integer("usage.bytes") ?? 0 < 1_000)
        }
    }

    @Test func `a long item is kept as a version on a connection of its own`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let path = try await ada.createItem(ItemTests.item(plaintext: 300_000))
            try await app.watchLanes(of: "items")
            #expect(try await ada.client.put(path, ItemTests.item(), ["If-Match": "*"]).status == 200)
            let lanes = try await app.sharedLanes()
            #expect(lanes.first == true && lanes.last == false, "\(lanes)")
            #expect(try await ada.client.get(path + "/versions").integer("versions.0.revision") == 1)
        }
    }

    @Test func `a long item that is replaced by a long one is sent once`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let path = try await ada.createItem(ItemTests.item(plaintext: 300_000))
            let another = ItemTests.item(plaintext: 300_002)
            #expect(try await ada.client.put(path, another, ["If-Match": "*"]).status == 200)
            try await app.watchLanes(of: "items")
            let reply = try await ada.client.put(path, ItemTests.item(plaintext: 300_001), ["If-Match": "*"])
            #expect(reply.status == 200)
            #expect(try await app.sharedLanes() == [false])
        }
    }

    @Test func `room for what a deletion keeps is made on a connection of its own`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let path = try await ada.createItem()
            try await app.administer(
                """
                UPDATE saltern.plans SET max_items = 100;
                INSERT INTO saltern.deleted_contents
                    (account_id, item_id, collection, format, body, created_at, expires_at)
                SELECT '\(ada.id)', gen_random_uuid(), 'default', 'opaque', '\\x00', '2026-01-01', '2026-01-20'
                FROM generate_series(1, 2000) n;
                UPDATE saltern.accounts SET kept_count = 2000, kept_bytes = 2000 WHERE account_id = '\(ada.id)'
                """)
            try await app.watchLanes(of: "deleted_contents")
            let batch: JSONValue = [
                "operations": [BatchTests.delete(String(path.dropFirst("/v1/items/".count)))]
            ]
            #expect(try await ada.client.post("/v1/items/batch", batch).status == 200)
            let lanes = try await app.sharedLanes()
            #expect(lanes.count >= 2 && !lanes.contains(true), "\(lanes)")
            #expect(try await ada.client.get("/v1/account").integer("usage.deletedItems") ?? 0 <= 100)
        }
    }

    @Test func `a recovery code is used up on a connection of its own, and a wrong one takes none`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            _ = try await ada.setRecovery(RecoveryTests.code)
            try await app.watchLanes(of: "recoveries")
            #expect(try await app.recover(ada, Fixtures.passwordKey("wrong")).status == 401)
            #expect(try await app.recover(ada, RecoveryTests.code).status == 201)
            #expect(try await app.sharedLanes() == [true, false])
        }
    }
}
