import Cryptography
import HTTPCore
import SalternTesting
import Testing

@testable import SalternServer

@Suite struct ItemBytesTests {
    private static let bytes = "application/octet-stream"
    private static let create = ["Content-Type": bytes, "If-None-Match": "*"]

    private static func path(_ query: String = "format=aes-256-gcm") -> String {
        "/v1/items/\(Fixtures.uuid())?\(query)"
    }

    private static func withoutQuery(_ path: String) -> String { String(path.prefix { $0 != "?" }) }

    @Test func `bytes go in and come back as bytes and as JSON`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let body = SecureRandom.bytes(300)
            let title = SecureRandom.bytes(60)
            let path = Self.path(
                "format=aes-256-gcm&collection=photos&iterations=700000&title=\(Base64URL.encodeToString(title))")
            let put = try await ada.client.send(.put, path, fields: Self.create, body: body)
            #expect(put.status == 201)
            #expect(put.fields["ETag"] == "\"1\"")
            #expect(put.string("collection") == "photos")

            let item = Self.withoutQuery(path)
            let raw = try await ada.client.get(item, ["Accept": Self.bytes])
            #expect(raw.status == 200)
            #expect(raw.body == body)
            #expect(raw.fields["Content-Type"] == Self.bytes)
            #expect(raw.fields["ETag"] == "\"1\"")
            #expect(raw.fields["Vary"] == "Accept")
            #expect(raw.fields["Saltern-Format"] == "aes-256-gcm")
            #expect(raw.fields["Saltern-Collection"] == "photos")
            #expect(raw.fields["Saltern-Iterations"] == "700000")

            let json = try await ada.client.get(item)
            #expect(json.fields["Vary"] == "Accept")
            #expect(json.string("body") == Base64.encodeToString(body))
            #expect(json.string("title") == Base64.encodeToString(title))
            #expect(json.string("format") == "aes-256-gcm")
            #expect(json.integer("iterations") == 700_000)

            // The same content is the same in whatever form it is sent.
            let again = try await ada.client.put(
                item,
                [
                    "format": "aes-256-gcm", "collection": "photos", "iterations": 700_000,
                    "title": .string(Base64.encodeToString(title)), "body": .string(Base64.encodeToString(body)),
                ], ["If-Match": "\"99\""])
            #expect(again.status == 200)
            #expect(again.integer("revision") == 1)
        }
    }

    @Test func `the path of the body takes and gives bytes alone, whatever the client accepts`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let (item, body) = ("/v1/items/\(Fixtures.uuid())", SecureRandom.bytes(300))
            let path = "\(item)/body"
            let put = try await ada.client.send(
                .put, "\(path)?format=aes-256-gcm&collection=photos", fields: Self.create, body: body)
            #expect(put.status == 201, "\(put)")
            for accept in [Self.bytes, "application/json", "text/html;q=0.1"] {
                let raw = try await ada.client.get(path, ["Accept": accept])
                #expect(raw.status == 200)
                #expect(raw.body == body)
                #expect(raw.fields["Content-Type"] == Self.bytes)
                #expect(raw.fields["Vary"] == nil)
                #expect(raw.fields["Saltern-Collection"] == "photos")
            }
            #expect(try await ada.client.get(path, ["If-None-Match": "\"1\""]).status == 304)
            #expect(try await ada.client.get(item).string("body") == Base64.encodeToString(body))
            let json = try await ada.client.put("\(path)?format=opaque", ItemTests.item(), ["If-Match": "*"])
            #expect(json.status == 415)
            #expect(json.fields["Accept"] == Self.bytes)
            #expect(try await ada.client.send(.put, path, fields: Self.create, body: body).status == 400)
            #expect(try await ada.client.get("/v1/items/\(Fixtures.uuid())/body").status == 404)
        }
    }

    @Test func `an item without iterations says none`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let path = Self.path()
            #expect(
                try await ada.client.send(.put, path, fields: Self.create, body: SecureRandom.bytes(64)).status == 201)
            let raw = try await ada.client.get(Self.withoutQuery(path), ["Accept": Self.bytes])
            #expect(raw.fields["Saltern-Iterations"] == nil)
            #expect(raw.fields["Saltern-Collection"] == "default")
        }
    }

    @Test func `conditions hold for bytes as they do for JSON`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let path = Self.path()
            func put(_ condition: [String: String]) async throws -> TestResponse {
                let fields = condition.merging(["Content-Type": Self.bytes]) { first, _ in first }
                return try await ada.client.send(.put, path, fields: fields, body: SecureRandom.bytes(64))
            }
            #expect(try await put([:]).code == "precondition_required")
            #expect(try await put(["If-Match": "*"]).code == "precondition_failed")
            #expect(try await put(["If-None-Match": "*"]).status == 201)
            #expect(try await put(["If-None-Match": "*"]).code == "precondition_failed")
            #expect(try await put(["If-Match": "\"1\""]).status == 200)
            let item = Self.withoutQuery(path)
            let unchanged = try await ada.client.get(item, ["Accept": Self.bytes, "If-None-Match": "\"2\""])
            #expect(unchanged.status == 304)
            #expect(unchanged.fields["ETag"] == "\"2\"")
            #expect(unchanged.fields["Vary"] == "Accept")
            #expect(unchanged.body.isEmpty)
            #expect(try await ada.client.delete(item, ["If-Match": "*"]).status == 200)
            #expect(try await ada.client.get(item, ["Accept": Self.bytes]).code == "not_found")
        }
    }

    @Test func `bytes are held to the same checks as JSON`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            func refusal(_ query: String, _ body: [UInt8]) async throws -> String? {
                let reply = try await ada.client.send(.put, Self.path(query), fields: Self.create, body: body)
                return "\(reply.status) \(reply.code ?? "") \(reply.string("field") ?? "")"
            }
            let sealed = SecureRandom.bytes(64)
            let text = Array("This is not encrypted at all, is it? It goes on for a while.".utf8)
            #expect(try await refusal("format=aes-256-gcm", text) == "422 not_encrypted body")
            #expect(try await refusal("format=aes-256-gcm", Array(sealed[..<27])) == "422 malformed_sealed_bytes body")
            #expect(try await refusal("format=rncryptor-v3", [9] + sealed) == "422 malformed_sealed_bytes body")
            #expect(try await refusal("format=rot13", sealed) == "422 unknown_format format")
            #expect(try await refusal("", sealed) == "400 missing_parameter format")
            #expect(try await refusal("format=opaque&collection=A", sealed) == "422 invalid_collection collection")
            for iterations in ["0", "-1", "01", "x", "", "2147483648"] {
                #expect(
                    try await refusal("format=opaque&iterations=\(iterations)", sealed)
                        == "400 invalid_parameter iterations")
            }
            for title in ["A", "AB", "A%2BAA", "AA==", "A%20A"] {
                #expect(
                    try await refusal("format=opaque&title=\(title)", sealed) == "400 invalid_parameter title",
                    "\(title)")
            }
            let plain = Base64URL.encodeToString(text)
            #expect(try await refusal("format=opaque&title=\(plain)", sealed) == "422 not_encrypted title")
            #expect(try await refusal("format=opaque&limit=1", sealed) == "400 unknown_parameter limit")
            // What goes with bytes does not go with JSON.
            let json = try await ada.client.put(Self.path(), ItemTests.item(), ["If-None-Match": "*"])
            #expect(json.code == "unknown_parameter")
            #expect(try await ada.client.get("/v1/account").integer("usage.items") == 0)
        }
    }

    @Test func `the plan's limits hold for bytes, and the body has one of its own`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let large = SecureRandom.bytes(1_048_577)
            let refused = try await ada.client.send(.put, Self.path(), fields: Self.create, body: large)
            #expect(refused.code == "quota_exceeded")
            #expect(refused.string("limit") == "itemBytes")
            try await app.administer("UPDATE saltern.plans SET max_item_bytes = 16777216 WHERE plan = 'default'")
            let path = Self.path()
            let largest = SecureRandom.bytes(16_777_216)
            #expect(try await ada.client.send(.put, path, fields: Self.create, body: largest).status == 201)
            #expect(try await ada.client.get(Self.withoutQuery(path), ["Accept": Self.bytes]).body == largest)
            let tooLarge = try await ada.client.send(.put, Self.path(), fields: Self.create, body: largest + [1])
            #expect(tooLarge.status == 413)
            #expect(tooLarge.integer("limit") == 16_777_216)
            #expect(try await ada.client.get("/v1/account").integer("usage.bytes") == 16_777_216)
        }
    }

    @Test(arguments: [
        (nil, 200, "application/json"), ("*/*", 200, "application/json"),
        ("application/*", 200, "application/json"), ("application/json", 200, "application/json"),
        ("application/octet-stream", 200, bytes), ("application/octet-stream, */*;q=0.1", 200, bytes),
        ("application/json;q=0.5, application/octet-stream;q=0.4", 200, "application/json"),
        ("text/html", 406, "application/problem+json"), ("application/json;q=2", 400, "application/problem+json"),
    ])
    func `the form of an item is what the client wants`(accept: String?, status: Int, type: String) async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let item = try await ada.createItem()
            let reply = try await ada.client.get(item, accept.map { ["Accept": $0] } ?? [:])
            #expect(reply.status == status)
            #expect(reply.fields["Content-Type"] == type)
        }
    }
}
