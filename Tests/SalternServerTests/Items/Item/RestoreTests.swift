import HTTPCore
import SalternTesting
import Testing

@testable import SalternServer

@Suite struct RestoreTests {
    @Test func `a deleted item is restored as it was, and a retry changes nothing`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let item: JSONValue = [
                "format": "aes-256-gcm", "body": .string(Fixtures.sealed()), "title": .string(Fixtures.sealed()),
                "collection": "notes", "iterations": 9_000,
            ]
            let path = try await ada.createItem(item)
            let before = try await ada.client.get(path)
            app.clock.advance(by: .seconds(60))
            _ = try await ada.client.delete(path, ["If-Match": "\"1\""])
            // Nothing shows what is kept, and it does not count.
            #expect(try await ada.client.get(path).status == 404)
            #expect(try await ada.client.get("/v1/items").text == #"{"items":[]}"#)
            #expect(try await ada.client.get("/v1/changes")["changes.0.body"] == nil)
            #expect(try await ada.client.get("/v1/account").integer("usage.bytes") == 0)
            let conflict = try await ada.client.put(path, ItemTests.item(), ["If-Match": "*"])
            #expect(conflict.status == 412)
            #expect(conflict["current.body"] == nil)

            #expect(try await ada.client.restore(path).status == 428)
            #expect(try await ada.client.restore(path, ["If-Match": "\"1\""]).status == 412)
            let restored = try await ada.client.restore(path, ["If-Match": "\"2\""])
            #expect(restored.status == 200)
            #expect(restored.fields["ETag"] == "\"3\"")
            for member in ["body", "title", "collection", "format", "iterations", "createdAt"] {
                #expect(restored[member] == before[member], "\(member)")
            }
            #expect(restored.string("updatedAt") == "2026-01-01T00:01:00.000Z")
            #expect(try await ada.client.get(path).text == restored.text)
            #expect(try await ada.client.restore(path, ["If-Match": "\"2\""]).text == restored.text)
            let account = try await ada.client.get("/v1/account")
            #expect(account.integer("usage.items") == 1)
            #expect(account.integer("usage.bytes") == 184)
            #expect(try await ada.client.get("/v1/changes").integer("changes.0.revision") == 3)
        }
    }

    private enum WayBack: CaseIterable { case restored, written, batched, batchedWithOthers }

    @Test(arguments: WayBack.allCases)
    private func `what is kept of an item that is here again makes room before others`(_ way: WayBack) async throws {
        try await TestApplication.with { app in
            let room = way == .batchedWithOthers ? 3 : 2
            try await app.administer("UPDATE saltern.plans SET max_items = \(room)")
            let ada = try await app.register()
            let first = try await ada.createItem()
            let again = try await ada.createItem()
            for path in [first, again] {
                #expect(try await ada.client.delete(path, ["If-Match": "*"]).status == 200)
                app.clock.advance(by: .seconds(60))
            }
            let put: JSONValue = [
                "op": "put", "id": .string(String(again.suffix(36))), "format": "aes-256-gcm",
                "body": .string(Fixtures.sealed()),
            ]
            switch way {
            case .restored: #expect(try await ada.client.restore(again, ["If-Match": "*"]).status == 200)
            case .written:
                #expect(try await ada.client.put(again, ItemTests.item(), ["If-None-Match": "*"]).status == 201)
            case .batched:
                #expect(try await ada.client.post("/v1/items/batch", ["operations": .array([put])]).status == 200)
            case .batchedWithOthers:
                let other = try await ada.createItem()
                let delete: JSONValue = ["op": "delete", "id": .string(String(other.suffix(36)))]
                let operations: JSONValue = ["operations": .array([put, delete])]
                #expect(try await ada.client.post("/v1/items/batch", operations).status == 200)
            }
            let last = try await ada.createItem()
            #expect(try await ada.client.delete(last, ["If-Match": "*"]).status == 200)
            #expect(try await ada.client.get("/v1/account").integer("usage.deletedItems") == room)
            #expect(try await ada.client.restore(first, ["If-Match": "*"]).status == 200)
        }
    }

    @Test func `of many who restore the same item at once one does, and all are told the same`() async throws {
        try await TestApplication.with(connections: 4) { app in
            let ada = try await app.register()
            for round in 1...40 as ClosedRange<Int> {
                let path = try await ada.createItem()
                _ = try await ada.client.delete(path, ["If-Match": "*"])
                // Three changes a round: the item is made, deleted and restored.
                let tag = "\"\(3 * round - 1)\""
                let replies = try await withThrowingTaskGroup(of: String.self) { group in
                    for _ in 0..<16 {
                        group.addTask {
                            let reply = try await ada.client.restore(path, ["If-Match": tag])
                            return "\(reply.status) \(reply.text)"
                        }
                    }
                    return try await group.reduce(into: Set<String>()) { $0.insert($1) }
                }
                #expect(replies.count == 1)
                #expect(replies.first?.hasPrefix("200 ") == true)
                let account = try await ada.client.get("/v1/account")
                #expect(account.integer("usage.items") == round)
                #expect(account.integer("usage.bytes") == round * 92)
            }
        }
    }

    @Test func `there is nothing to restore of what never was, lives, or was deleted too long ago`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let unknown = try await ada.client.restore("/v1/items/\(Fixtures.uuid())", ["If-Match": "*"])
            #expect(unknown.status == 404)
            let live = try await ada.createItem()
            let changed = try await ada.client.restore(live, ["If-Match": "*"])
            #expect(changed.status == 412)
            #expect(changed.bool("current.deleted") == false)

            _ = try await ada.client.delete(live, ["If-Match": "*"])
            let bob = try await app.register()
            #expect(try await bob.client.restore(live, ["If-Match": "*"]).status == 404)
            app.clock.advance(by: .seconds(30 * 86_400 - 1))
            let session = try await app.logIn(ada)
            app.clock.advance(by: .seconds(1))
            let gone = try await session.restore(live, ["If-Match": "*"])
            #expect(gone.status == 410)
            #expect(gone.code == "gone")
        }
    }

    @Test func `a batch keeps what it deletes, and the latest content is what comes back`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let path = try await ada.createItem()
            let id = String(path.dropFirst("/v1/items/".count))
            _ = try await ada.client.delete(path, ["If-Match": "*"])
            let latest = ItemTests.item(plaintext: 9)
            _ = try await ada.client.post("/v1/items/batch", ["operations": [BatchTests.put(id, 0, latest)]])
            _ = try await ada.client.post("/v1/items/batch", ["operations": [BatchTests.delete(id)]])
            let restored = try await ada.client.restore(path, ["If-Match": "*"])
            #expect(try restored.string("body") == latest.object()["body"]?.string())

            // A plan that keeps nothing drops what an earlier deletion left, too.
            try await app.administer("UPDATE saltern.plans SET deleted_days = 0")
            _ = try await ada.client.delete(path, ["If-Match": "*"])
            #expect(try await ada.client.restore(path, ["If-Match": "*"]).code == "gone")
        }
    }

    @Test func `restoring is held to the plan`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let path = try await ada.createItem(ItemTests.item(plaintext: 100))
            _ = try await ada.client.delete(path, ["If-Match": "*"])
            for (limits, name) in [
                ("max_items = 0", "items"), ("max_items = 9, max_bytes = 127", "bytes"),
                ("max_bytes = 1000, max_item_bytes = 127", "itemBytes"),
            ] {
                try await app.administer("UPDATE saltern.plans SET \(limits)")
                let reply = try await ada.client.restore(path, ["If-Match": "*"])
                #expect(reply.status == 403)
                #expect(reply.string("limit") == name)
            }
            try await app.administer("UPDATE saltern.plans SET max_item_bytes = 128, max_bytes = 128, max_items = 1")
            #expect(try await ada.client.restore(path, ["If-Match": "*"]).status == 200)
        }
    }
}

extension TestClient {
    /// Restores the item at a path.
    func restore(_ path: String, _ fields: [String: String] = [:]) async throws -> TestResponse {
        try await send(.post, path + "/restore", fields: fields)
    }
}
