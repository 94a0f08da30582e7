import HTTPCore
import SalternServer
import SalternTesting
import Testing

@Suite struct ItemTests {
    @Test func `an item is created, read, replaced and deleted`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let path = "/v1/items/\(Fixtures.uuid())"
            let body = Fixtures.sealed()
            let title = Fixtures.sealed(plaintext: 8)

            let created = try await ada.client.put(
                path,
                [
                    "format": "aes-256-gcm", "body": .string(body), "title": .string(title), "collection": "logins",
                    "iterations": 1_000,
                ], ["If-None-Match": "*"])
            #expect(created.status == 201)
            #expect(created.fields["ETag"] == "\"1\"")
            #expect(created.integer("revision") == 1)
            #expect(created.string("id") == String(path.dropFirst("/v1/items/".count)))

            let read = try await ada.client.get(path)
            #expect(read.status == 200)
            #expect(read.fields["ETag"] == "\"1\"")
            #expect(read.string("body") == body)
            #expect(read.string("title") == title)
            #expect(read.string("format") == "aes-256-gcm")
            #expect(read.string("collection") == "logins")
            #expect(read.integer("iterations") == 1_000)
            #expect(read.string("createdAt") == "2026-01-01T00:00:00.000Z")
            #expect(read.bool("deleted") == false)

            app.clock.advance(by: .seconds(5))
            let replaced = try await ada.client.put(path, Self.item(), ["If-Match": "\"1\""])
            #expect(replaced.status == 200)
            #expect(replaced.fields["ETag"] == "\"2\"")
            #expect(replaced.string("createdAt") == "2026-01-01T00:00:00.000Z")
            #expect(replaced.string("updatedAt") == "2026-01-01T00:00:05.000Z")
            let after = try await ada.client.get(path)
            #expect(after["title"] == nil)
            #expect(after["iterations"] == nil)
            // What names no collection stays where it is.
            #expect(replaced.string("collection") == "logins")
            #expect(after.string("collection") == "logins")

            let deleted = try await ada.client.delete(path, ["If-Match": "\"2\""])
            #expect(deleted.status == 200)
            #expect(deleted.integer("revision") == 3)
            #expect(deleted.bool("deleted") == true)
            #expect(deleted["body"] == nil)
            #expect(try await ada.client.get(path).status == 404)
            #expect(try await ada.client.get("/v1/account").integer("usage.bytes") == 0)
        }
    }

    @Test func `a reader that has the revision is told so`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let path = try await ada.createItem()
            let expected = [
                ("\"1\"", 304), ("W/\"1\"", 304), ("*", 304), ("\"7\", \"1\"", 304), ("\"2\"", 200), ("1", 200),
                ("", 200),
            ]
            for (tag, status) in expected {
                let reply = try await ada.client.get(path, ["If-None-Match": tag])
                #expect(reply.status == status, "\(tag)")
                #expect(reply.body.isEmpty == (status == 304), "\(tag)")
                #expect(reply.fields["ETag"] == "\"1\"", "\(tag)")
            }
        }
    }

    @Test func `a reader that wants another revision is told what is there instead`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let path = try await ada.createItem()
            let expected = [
                ("\"1\"", 200), ("*", 200), ("\"7\", \"1\"", 200), ("W/\"1\"", 412), ("\"2\"", 412), ("1", 412),
                ("", 412),
            ]
            for (tag, status) in expected {
                for form in ["", "/body"] {
                    let reply = try await ada.client.get(path + form, ["If-Match": tag])
                    #expect(reply.status == status, "\(tag)")
                    #expect(reply.fields["ETag"] == "\"1\"", "\(tag)")
                    if status == 412 {
                        #expect(reply.code == "precondition_failed")
                        #expect(reply.integer("current.revision") == 1)
                    }
                    // It is looked at first (RFC 9110 §13.2.2).
                    let both = try await ada.client.get(path + form, ["If-Match": tag, "If-None-Match": "\"1\""])
                    #expect(both.status == (status == 200 ? 304 : 412), "\(tag)")
                }
            }
            // What is not there is not there, whatever is wanted of it.
            #expect(try await ada.client.get("/v1/items/\(Fixtures.uuid())", ["If-Match": "\"1\""]).status == 404)
        }
    }

    @Test func `other people's items are not there`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let bob = try await app.register()
            let path = try await ada.createItem()
            #expect(try await bob.client.get(path).status == 404)
            #expect(try await bob.client.delete(path, ["If-Match": "*"]).status == 404)
            #expect(try await bob.client.put(path, Self.item(), ["If-Match": "*"]).status == 412)
            #expect(try await bob.client.put(path, Self.item(), ["If-None-Match": "*"]).status == 201)
            #expect(try await ada.client.get(path).integer("revision") == 1)
            #expect(try await ada.client.get("/v1/items").array("items")?.count == 1)
        }
    }

    @Test func `an identifier in upper case names the same item`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let id = "0f8fad5b-d9cb-469f-a165-70867728950e"
            let created = try await ada.client.put(
                "/v1/items/\(id.uppercased())", Self.item(), ["If-None-Match": "*"])
            #expect(created.string("id") == id)
            #expect(try await ada.client.get("/v1/items/\(id)").status == 200)
        }
    }

    @Test func `line-wrapped base64 is accepted and comes back canonical`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let path = "/v1/items/\(Fixtures.uuid())"
            let body = Fixtures.rncryptor(blocks: 12)
            var lines: [Substring] = []
            var rest = Substring(body)
            while !rest.isEmpty {
                lines.append(rest.prefix(64))
                rest = rest.dropFirst(64)
            }
            let wrapped = lines.joined(separator: "\r\n")
            #expect(wrapped != body)
            let reply = try await ada.client.put(
                path, ["format": "rncryptor-v3", "body": .string(wrapped)], ["If-None-Match": "*"])
            #expect(reply.status == 201, "\(reply)")
            #expect(try await ada.client.get(path).string("body") == body)
        }
    }

    @Test func `bad input is refused with its code and field`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            for bad in Self.badItems {
                var members: [String: JSONValue] = ["format": "aes-256-gcm", "body": .string(Fixtures.sealed())]
                members.merge(bad.members) { $1 }
                if let removed = bad.removed { members[removed] = nil }
                let body = JSONValue.object(JSONObject(members.map { (name: $0.key, value: $0.value) }))
                bad.check(
                    try await ada.client.put("/v1/items/\(Fixtures.uuid())", body, ["If-None-Match": "*"]))
            }
            #expect(try await ada.client.get("/v1/items").array("items")?.isEmpty == true)
        }
    }

    static let badItems: [BadInput] = [
        BadInput(removing: "format", 422, "missing_member", "format"),
        BadInput(["format": "rot13"], 422, "unknown_format", "format"),
        BadInput(["format": 1], 422, "wrong_type", "format"),
        BadInput(removing: "body", 422, "missing_member", "body"),
        BadInput(["body": .null], 422, "wrong_type", "body"),
        BadInput(["body": "===="], 422, "not_base64", "body"),
        BadInput(["body": "AAAA"], 422, "malformed_sealed_bytes", "body"),
        BadInput(["format": "rncryptor-v3"], 422, "malformed_sealed_bytes", "body"),
        BadInput(
            ["body": "VGhlIHF1aWNrIGJyb3duIGZveCBqdW1wcyBvdmVyIHRoZSBsYXp5IGRvZy4="], 422, "not_encrypted", "body"),
        BadInput(
            ["title": "VGhlIHF1aWNrIGJyb3duIGZveCBqdW1wcyBvdmVyIHRoZSBsYXp5IGRvZy4="], 422, "not_encrypted", "title"),
        BadInput(["title": ""], 422, "malformed_sealed_bytes", "title"),
        BadInput(["collection": "Logins"], 422, "invalid_collection", "collection"),
        BadInput(["collection": ""], 422, "invalid_collection", "collection"),
        BadInput(["collection": .string(String(repeating: "a", count: 33))], 422, "invalid_collection", "collection"),
        BadInput(["iterations": 0], 422, "out_of_range", "iterations"),
        BadInput(["iterations": 2_147_483_648], 422, "out_of_range", "iterations"),
        BadInput(["revision": 3], 422, "unknown_member", "revision"),
        BadInput(["password": "x"], 422, "password_refused", "password"),
    ]

    @Test func `the format opaque can be switched off`() async throws {
        var configuration = TestApplication.configuration
        configuration.items.acceptsOpaque = false
        try await TestApplication.with(configuration) { app in
            let ada = try await app.register()
            let reply = try await ada.client.put(
                "/v1/items/\(Fixtures.uuid())", ["format": "opaque", "body": .string(Fixtures.sealed())],
                ["If-None-Match": "*"])
            #expect(reply.code == "unknown_format")
            #expect(try await app.client.get("/v1/service").array("formats")?.contains("opaque") == false)
        }
    }

    /// An item that is accepted; its body is another each time.
    static func item(plaintext: Int = 64) -> JSONValue {
        ["format": "aes-256-gcm", "body": .string(Fixtures.sealed(plaintext: plaintext))]
    }
}

extension TestAccount {
    /// Creates an item and returns its path.
    func createItem(_ item: JSONValue = ItemTests.item()) async throws -> String {
        let path = "/v1/items/\(Fixtures.uuid())"
        let reply = try await client.put(path, item, ["If-None-Match": "*"])
        #expect(reply.status == 201, "\(reply)")
        return path
    }
}
