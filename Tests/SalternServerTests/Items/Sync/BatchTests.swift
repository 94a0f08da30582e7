import Cryptography
import HTTPCore
import SalternTesting
import Testing

@testable import SalternServer

@Suite struct BatchTests {
    /// A put of `item`, as a batch has it.
    static func put(_ id: String, _ ifRevision: Int64? = nil, _ item: JSONValue = ItemTests.item()) -> JSONValue {
        var members: [(name: String, value: JSONValue)] = [
            (name: "op", value: "put"), (name: "id", value: .string(id)),
        ]
        if let ifRevision { members.append((name: "ifRevision", value: .integer(ifRevision))) }
        if case .object(let object) = item { members += object.members.map { (name: $0.name.string, value: $0.value) } }
        return .object(JSONObject(members))
    }

    static func delete(_ id: String, _ ifRevision: Int64? = nil) -> JSONValue {
        var members: [(name: String, value: JSONValue)] = [
            (name: "op", value: "delete"), (name: "id", value: .string(id)),
        ]
        if let ifRevision { members.append((name: "ifRevision", value: .integer(ifRevision))) }
        return .object(JSONObject(members))
    }

    static func revisions(_ reply: TestResponse) throws -> [Int64?] {
        try #require(reply.array("results"), "\(reply)").map { try $0.object()["revision"]?.integer() }
    }

    @Test func `a put that names no collection leaves an item where it is, in a batch and alone`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let inNotes: JSONValue = ["collection": "notes", "format": "opaque", "body": .string(Fixtures.sealed())]
            func other() -> JSONValue { ["format": "opaque", "body": .string(Fixtures.sealed())] }
            func collection(_ id: String) async throws -> String? {
                try await ada.client.get("/v1/items/\(id)").string("collection")
            }
            let ids = (0..<5).map { _ in Fixtures.uuid() }
            let created: JSONValue = ["operations": .array(ids.dropLast().map { Self.put($0, 0, inNotes) })]
            #expect(try await ada.client.post("/v1/items/batch", created).status == 200)

            // The short path of puts alone, and the long one, which a deletion leads to.
            let puts: JSONValue = ["operations": [Self.put(ids[0], 1, other()), Self.put(ids[4], 0, other())]]
            #expect(try await ada.client.post("/v1/items/batch", puts).status == 200)
            let same = other()
            let mixed: JSONValue = ["operations": [Self.put(ids[1], nil, same), Self.delete(ids[2])]]
            let first = try await ada.client.post("/v1/items/batch", mixed)
            #expect(first.status == 200)
            #expect(try await ada.client.post("/v1/items/batch", mixed).text == first.text)
            #expect(try await ada.client.put("/v1/items/\(ids[1])", same, ["If-Match": "\"99\""]).status == 200)
            for id in [ids[0], ids[1]] { #expect(try await collection(id) == "notes") }
            #expect(try await collection(ids[4]) == "default")

            let path = "/v1/items/\(ids[3])"
            for condition in ["*", "\"0\", \"9\", \"11\""] {
                let replaced = try await ada.client.put(path, other(), ["If-Match": condition])
                if replaced.status == 412 { continue }
                #expect(replaced.string("collection") == "notes")
            }
            let bytes = try await ada.client.send(
                .put, path + "/body?format=opaque",
                fields: ["If-Match": "*", "Content-Type": "application/octet-stream"],
                body: [0xFF, 0xFE, 0xFF] + SecureRandom.bytes(60))
            #expect(bytes.status == 200, "\(bytes)")
            #expect(bytes.string("collection") == "notes")
            #expect(try await ada.client.get("/v1/changes?collection=notes").array("changes")?.count == 3)

            // A deleted item is none that exists.
            #expect(try await ada.client.delete(path, ["If-Match": "*"]).status == 200)
            let again = try await ada.client.put(path, other(), ["If-None-Match": "*"])
            #expect(again.string("collection") == "default")
            let gone: JSONValue = ["operations": [Self.put(ids[2], 0, other())]]
            #expect(try await ada.client.post("/v1/items/batch", gone).status == 200)
            #expect(try await collection(ids[2]) == "default")
        }
    }

    @Test func `a deletion may have the members of a put when they are null, and no others`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let id = Fixtures.uuid()
            _ = try await ada.client.post("/v1/items/batch", ["operations": [Self.put(id, 0)]])
            for name in ["collection", "format", "iterations", "title", "body"] {
                let operation = JSONObject([
                    (name: "op", value: "delete"), (name: "id", value: .string(JSONString(id))),
                    (name: name, value: "x"),
                ])
                let filled: JSONValue = ["operations": [.object(operation)]]
                let reply = try await ada.client.post("/v1/items/batch", filled)
                #expect(reply.code == "unknown_member", "\(name)")
            }
            let empty: JSONValue = [
                "op": "delete", "id": .string(id), "ifRevision": .null, "collection": .null, "format": .null,
                "iterations": .null, "title": .null, "body": .null,
            ]
            #expect(try await ada.client.post("/v1/items/batch", ["operations": [empty]]).status == 200)
        }
    }

    @Test func `operations take revisions in their order, and a repeated batch answers as the first did`() async throws
    {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let ids = (0..<4).map { _ in Fixtures.uuid() }
            let created: JSONValue = ["operations": .array(ids.map { Self.put($0, 0) })]
            let first = try await ada.client.post("/v1/items/batch", created)
            #expect(first.status == 200)
            #expect(try Self.revisions(first) == [1, 2, 3, 4])
            #expect(try await ada.client.post("/v1/items/batch", created).text == first.text)

            let mixed: JSONValue = [
                "operations": [
                    Self.delete(ids[2], 3), Self.put(ids[0], 1), Self.delete(ids[1]), Self.put(ids[3], nil),
                ]
            ]
            let second = try await ada.client.post("/v1/items/batch", mixed)
            #expect(try Self.revisions(second) == [5, 6, 7, 8])
            #expect(try await ada.client.post("/v1/items/batch", mixed).text == second.text)
            let account = try await ada.client.get("/v1/account")
            #expect(account.integer("usage.items") == 2)
            #expect(account.integer("usage.bytes") == 2 * 92)
            let changes = try await ada.client.get("/v1/changes?tombstones=all")
            #expect(
                try changes.array("changes")?.map { try $0.object()["id"]?.string() } == [
                    ids[2], ids[0], ids[1], ids[3],
                ])
            #expect(try await ada.client.get("/v1/items/\(ids[0])").integer("revision") == 6)
        }
    }

    @Test func `a conflict names every operation that failed, and nothing is changed`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let ids = (0..<4).map { _ in Fixtures.uuid() }
            _ = try await ada.client.post(
                "/v1/items/batch", ["operations": [Self.put(ids[0]), Self.put(ids[1]), Self.delete(ids[1])]])
            _ = try await ada.client.post(
                "/v1/items/batch", ["operations": [Self.put(ids[0]), Self.put(ids[1])]])
            _ = try await ada.client.post("/v1/items/batch", ["operations": [Self.delete(ids[1])]])
            let before = try await ada.client.get("/v1/changes").text
            let reply = try await ada.client.post(
                "/v1/items/batch",
                [
                    "operations": [
                        Self.put(ids[0], 0), Self.put(ids[1], 2), Self.put(ids[2], 0), Self.delete(ids[3], 9),
                    ]
                ])
            #expect(reply.status == 409)
            #expect(reply.code == "batch_conflict")
            #expect(reply.array("conflicts")?.count == 3)
            for (place, expected) in [
                (0, (index: 0, code: "precondition_failed", revision: 1 as Int?)),
                (1, (index: 1, code: "precondition_failed", revision: 3)),
                (2, (index: 3, code: "not_found", revision: nil)),
            ] {
                #expect(reply.integer("conflicts.\(place).index") == expected.index)
                #expect(reply.string("conflicts.\(place).id") == ids[expected.index])
                #expect(reply.string("conflicts.\(place).code") == expected.code)
                #expect(reply.integer("conflicts.\(place).revision") == expected.revision)
            }
            #expect(try await ada.client.get("/v1/changes").text == before)
        }
    }

    @Test func `a batch that deletes more than can be moved away at once is refused, and changes nothing`() async throws
    {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let ids = (1...5).map { "00000000-0000-0000-0000-00000000000\($0)" }
            let length = ApplyBatch.deletedByteLimit / 5
            // The first is a byte longer.
            try await app.administer(
                """
                INSERT INTO saltern.items (account_id, item_id, revision, collection, format, body, created_at, updated_at)
                SELECT '\(ada.id)', ('00000000-0000-0000-0000-00000000000' || n)::uuid, n, 'default', 'opaque',
                    decode(repeat('ab', \(length) + CASE WHEN n = 1 THEN 1 + \(ApplyBatch.deletedByteLimit % 5) ELSE 0 END),
                        'hex'), now(), now()
                FROM generate_series(1, 5) n;
                UPDATE saltern.accounts SET revision = 5, item_count = 5, item_bytes = 5 * \(length) + 5
                WHERE account_id = '\(ada.id)'
                """)
            let all: JSONValue = ["operations": .array(ids.map { Self.delete($0) })]
            let refused = try await ada.client.post("/v1/items/batch", all)
            #expect(refused.status == 422 && refused.code == "batch_too_large")
            #expect(refused.integer("limit") == Int(ApplyBatch.deletedByteLimit))
            #expect(try await ada.client.get("/v1/items?fields=meta").array("items")?.count == 5)
            let one: JSONValue = ["operations": [Self.delete(ids[0])]]
            #expect(try await ada.client.post("/v1/items/batch", one).status == 200)
        }
    }

    @Test func `quotas are those of the whole batch`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            try await app.administer(
                "UPDATE saltern.plans SET max_items = 2, max_item_bytes = 228, max_bytes = 400 WHERE plan = 'default'")
            let ids = (0..<4).map { _ in Fixtures.uuid() }
            func send(_ operations: [JSONValue]) async throws -> TestResponse {
                try await ada.client.post("/v1/items/batch", ["operations": .array(operations)])
            }
            let large = try await send([Self.put(ids[0]), Self.put(ids[1], nil, ItemTests.item(plaintext: 201))])
            #expect(large.status == 403)
            #expect(large.string("limit") == "itemBytes")
            #expect(large.integer("used") == 229)
            #expect(try await send(ids.prefix(3).map { Self.put($0) }).string("limit") == "items")
            let heavy = try await send(ids.prefix(2).map { Self.put($0, nil, ItemTests.item(plaintext: 173)) })
            #expect(heavy.string("limit") == "bytes")
            #expect(heavy.integer("allowed") == 400)
            #expect(try await ada.client.get("/v1/account").integer("usage.items") == 0)

            #expect(
                try await send(ids.prefix(2).map { Self.put($0, nil, ItemTests.item(plaintext: 172)) }).status == 200)
            // What one operation frees, another may use.
            let swap = try await send([
                Self.put(ids[2], 0, ItemTests.item(plaintext: 172)), Self.delete(ids[0]),
                Self.put(ids[1], nil, ItemTests.item(plaintext: 171)),
            ])
            #expect(try Self.revisions(swap) == [3, 4, 5])
            #expect(try await ada.client.get("/v1/account").integer("usage.bytes") == 399)

            // Above a limit that was lowered, items shrink one by one, and none grows.
            try await app.administer("UPDATE saltern.plans SET max_item_bytes = 100 WHERE plan = 'default'")
            let shrinking = try await send([
                Self.put(ids[1], nil, ItemTests.item(plaintext: 150)),
                Self.put(ids[2], nil, ItemTests.item(plaintext: 172)),
            ])
            #expect(shrinking.status == 200)
            let growing = try await send([
                Self.put(ids[1], nil, ItemTests.item(plaintext: 100)),
                Self.put(ids[2], nil, ItemTests.item(plaintext: 173)),
            ])
            #expect(growing.string("limit") == "itemBytes")
            #expect(growing.integer("used") == 201)
        }
    }

    private static let refused: [(body: JSONValue, code: String, field: String)] = {
        let id = Fixtures.uuid()
        return [
            (["operations": []], "wrong_count", "operations"),
            (["operations": .array((0...500).map { _ in delete(Fixtures.uuid()) })], "wrong_count", "operations"),
            (["operations": [delete(id), put(id)]], "duplicate_id", "operations[1].id"),
            (["operations": [delete(id), delete(id.uppercased())]], "duplicate_id", "operations[1].id"),
            (["operations": [["op": "move", "id": .string(id)]]], "unknown_operation", "operations[0].op"),
            (["operations": [["op": "delete", "id": "7"]]], "invalid_id", "operations[0].id"),
            (["operations": [delete(id, 0)]], "out_of_range", "operations[0].ifRevision"),
            (["operations": [put(id, -1)]], "out_of_range", "operations[0].ifRevision"),
            (
                ["operations": [["op": "delete", "id": .string(id), "body": "AA=="]]], "unknown_member",
                "operations[0].body"
            ),
            (["operations": [put(id, 0, ["format": "opaque"])]], "missing_member", "operations[0].body"),
            (
                ["operations": [put(id, 0, ["format": "opaque", "body": "VGhpcyBpcyBwbGFpbiB0ZXh0IQ=="])]],
                "not_encrypted", "operations[0].body"
            ),
            (["operations": [put(id, 0, ["password": "x"])]], "password_refused", "password"),
        ]
    }()

    @Test func `a malformed batch is refused and says where`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            for (body, code, field) in Self.refused {
                let reply = try await ada.client.post("/v1/items/batch", body)
                #expect(reply.status == 422, "\(code)")
                #expect(reply.code == code)
                #expect(reply.string("field") == field)
            }
            #expect(
                try await app.client.post("/v1/items/batch", ["operations": [Self.delete(Fixtures.uuid())]]).status
                    == 401)
        }
    }

    @Test func `a batch of 500 is written, and read back byte for byte`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let items = (0..<500).map { index in (id: Fixtures.uuid(), item: ItemTests.item(plaintext: index)) }
            let reply = try await ada.client.post(
                "/v1/items/batch", ["operations": .array(items.map { Self.put($0.id, 0, $0.item) })])
            #expect(try Self.revisions(reply) == (1...500).map { Int64($0) })
            let page = try await ada.client.get("/v1/changes?limit=500")
            let bodies = try page.array("changes")?.map { try $0.object()["body"]?.string() }
            let sent = try items.map { try $0.item.object()["body"]?.string() }
            #expect(bodies == sent)
        }
    }
}
