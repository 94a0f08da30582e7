import HTTPCore
import SalternTesting
import Testing

@testable import SalternServer

@Suite struct StagingTests {
    @Test func `staging again replaces, and the reply counts what is staged`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let path = try await ada.createItem(RotationClient.item(Fixtures.passwordKey("a")))
            let id = String(path.dropFirst("/v1/items/".count))
            var rotation = RotationClient(ada)
            try await rotation.open()
            let first = try await rotation.stage([RotationClient.staged(id, 1, Fixtures.sealed(plaintext: 100))])
            #expect(first.status == 200)
            #expect(first.integer("staged") == 1)
            #expect(first.integer("bytes") == 128)
            #expect(first.array("outdated")?.isEmpty == true)
            let body = Fixtures.sealed(plaintext: 4)
            let second = try await rotation.stage([
                RotationClient.staged(id, 1, body), RotationClient.staged(Fixtures.uuid(), 1, Fixtures.sealed()),
            ])
            #expect(second.integer("staged") == 1)
            #expect(second.integer("bytes") == 32)
            #expect(second.array("outdated")?.count == 1)
            #expect(try await rotation.commit().status == 200)
            #expect(try await ada.client.get(path).string("body") == body)
        }
    }

    @Test func `titles, formats and iterations are swapped too, and the collection stays`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let id = Fixtures.uuid()
            _ = try await ada.client.put(
                "/v1/items/\(id)",
                [
                    "format": "rncryptor-v3", "body": .string(Fixtures.rncryptor()), "collection": "notes",
                    "iterations": 10_000, "title": .string(Fixtures.rncryptor(blocks: 1)),
                ], ["If-None-Match": "*"])
            var rotation = RotationClient(ada)
            try await rotation.open()
            let body = Fixtures.sealed()
            let title = Fixtures.sealed(plaintext: 12)
            let staged: JSONValue = [
                "id": .string(id), "ifRevision": 1, "format": "aes-256-gcm", "body": .string(body),
                "title": .string(title), "iterations": 600_000,
            ]
            #expect(try await rotation.stage([staged]).integer("bytes") == 92 + 40)
            app.clock.advance(by: .seconds(60))
            #expect(try await rotation.commit().status == 200)
            let item = try await ada.client.get("/v1/items/\(id)")
            #expect(item.string("body") == body)
            #expect(item.string("title") == title)
            #expect(item.string("format") == "aes-256-gcm")
            #expect(item.integer("iterations") == 600_000)
            #expect(item.string("collection") == "notes")
            #expect(item.string("createdAt") == "2026-01-01T00:00:00.000Z")
            #expect(item.string("updatedAt") == "2026-01-01T00:01:00.000Z")
            #expect(try await ada.client.get("/v1/account").integer("usage.bytes") == 92 + 40)
        }
    }

    @Test func `what is staged is held to the plan, or to what the account has when that is more`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            var ids: [String] = []
            for _ in 0..<3 {
                let path = try await ada.createItem(ItemTests.item(plaintext: 272))
                ids.append(String(path.dropFirst("/v1/items/".count)))
            }
            try await app.administer("UPDATE saltern.plans SET max_items = 2, max_item_bytes = 200, max_bytes = 500")
            var opened = RotationClient(ada)
            try await opened.open()
            let rotation = opened
            func stage(_ index: Int, _ bytes: Int) async throws -> TestResponse {
                try await rotation.stage([
                    RotationClient.staged(ids[index], Int64(index) + 1, Fixtures.sealed(plaintext: bytes - 28))
                ])
            }
            let tooLarge = try await stage(0, 301)
            #expect(tooLarge.code == "quota_exceeded")
            #expect(tooLarge.string("limit") == "itemBytes")
            #expect(tooLarge.integer("used") == 301)
            for index in 0..<3 { #expect(try await stage(index, 300).integer("staged") == index + 1) }
            #expect(try await stage(0, 200).integer("bytes") == 800)
            #expect(try await rotation.commit().status == 200)
            #expect(try await ada.client.get("/v1/account").integer("usage.bytes") == 800)
        }
    }

    @Test func `what was deleted meanwhile takes no room from what is staged later`() async throws {
        try await TestApplication.with { app in
            try await app.administer("UPDATE saltern.plans SET max_items = 2, max_bytes = 64")
            let ada = try await app.register()
            let item = { RotationClient.item(Fixtures.passwordKey(Fixtures.uuid())) }
            let first = try await ada.createItem(item())
            _ = try await ada.createItem(item())
            var rotation = RotationClient(ada)
            try await rotation.open()
            try await rotation.stageAll()
            #expect(try await ada.client.delete(first, ["If-Match": "*"]).status == 200)
            _ = try await ada.createItem(item())
            let before = try await ada.client.bodies()
            let committed = try await rotation.commitWithRetries()
            #expect(committed.status == 200, "\(committed)")
            #expect(committed.integer("dropped") == 0)
            #expect(try await ada.client.bodies() == before.mapValues(RotationClient.resealed))
        }
    }

    @Test func `many batches at once do not pass the plan's bytes`() async throws {
        try await TestApplication.with(connections: 4) { app in
            try await app.administer("UPDATE saltern.plans SET max_bytes = 1000")
            let ada = try await app.register()
            var ids: [String] = []
            for _ in 0..<20 {
                let path = try await ada.createItem(ItemTests.item(plaintext: 0))
                ids.append(String(path.dropFirst("/v1/items/".count)))
            }
            var opened = RotationClient(ada)
            try await opened.open()
            let rotation = opened
            let statuses = try await withThrowingTaskGroup(of: Int.self) { group in
                for id in ids {
                    group.addTask {
                        try await rotation.stage([
                            RotationClient.staged(id, 1, Fixtures.sealed(plaintext: 172))
                        ]).status
                    }
                }
                return try await group.reduce(into: [Int: Int]()) { $0[$1, default: 0] += 1 }
            }
            #expect(statuses == [200: 5, 403: 15])
            #expect(try await app.stored().stagedItems == 5)
        }
    }

    @Test func `what is staged is held to the rules of items`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            var rotation = RotationClient(ada)
            try await rotation.open()
            let id = Fixtures.uuid()
            func code(_ item: JSONValue) async throws -> String? { try await rotation.stage([item]).code }
            let text = "SSBhbSBub3QgZW5jcnlwdGVkIGF0IGFsbC4="
            #expect(try await code(RotationClient.staged(id, 1, text)) == "not_encrypted")
            #expect(try await code(RotationClient.staged(id, 0, Fixtures.sealed())) == "out_of_range")
            #expect(try await code(RotationClient.staged("x", 1, Fixtures.sealed())) == "invalid_id")
            #expect(
                try await code([
                    "id": .string(id), "ifRevision": 1, "format": "none", "body": .string(Fixtures.sealed()),
                ]) == "unknown_format")
            #expect(
                try await code([
                    "id": .string(id), "ifRevision": 1, "format": "opaque", "body": .string(Fixtures.sealed()),
                    "collection": "notes",
                ]) == "unknown_member")
            let twice = RotationClient.staged(id, 1, Fixtures.sealed())
            let duplicate = try await rotation.stage([twice, twice])
            #expect(duplicate.code == "duplicate_id")
            #expect(duplicate.string("field") == "items[1].id")
            #expect(try await rotation.stage([]).code == "wrong_count")
            #expect(try await rotation.stage((0...500).map { _ in twice }).code == "wrong_count")
            #expect(try await app.stored().stagedItems == 0)
        }
    }
}
