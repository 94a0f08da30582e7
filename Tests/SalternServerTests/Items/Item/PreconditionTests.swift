import HTTPCore
import SalternTesting
import Testing

@testable import SalternServer

@Suite struct PreconditionTests {
    private static let unusable: [(fields: [String: String], status: Int, code: String)] = [
        ([:], 428, "precondition_required"),
        (["If-Match": "*", "If-None-Match": "*"], 400, "malformed_precondition"),
        (["If-Match": "7"], 400, "malformed_precondition"),
        (["If-Match": "W/\"7\""], 400, "malformed_precondition"),
        (["If-Match": "\"7\", \"8\""], 400, "malformed_precondition"),
        (["If-Match": "\"07\""], 400, "malformed_precondition"),
        (["If-Match": "\"0\""], 400, "malformed_precondition"),
        (["If-Match": "\"-1\""], 400, "malformed_precondition"),
        (["If-Match": "\"9223372036854775808\""], 400, "malformed_precondition"),
        (["If-Match": "\"\""], 400, "malformed_precondition"),
        (["If-Match": ""], 400, "malformed_precondition"),
        (["If-None-Match": "\"7\""], 400, "malformed_precondition"),
    ]

    @Test func `a change without a usable precondition is refused`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let path = try await ada.createItem()
            for (fields, status, code) in Self.unusable {
                let put = try await ada.client.put(path, ItemTests.item(), fields)
                #expect(put.status == status, "\(fields)")
                #expect(put.code == code, "\(fields)")
                let delete = try await ada.client.delete(path, fields)
                #expect(delete.status == status, "\(fields)")
                #expect(delete.code == code, "\(fields)")
            }
            #expect(try await ada.client.get(path).integer("revision") == 1)
        }
    }

    @Test func `an item cannot be deleted on condition that it is absent`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let path = try await ada.createItem()
            #expect(try await ada.client.delete(path, ["If-None-Match": "*"]).code == "malformed_precondition")
        }
    }

    @Test func `a mismatch shows the current item`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let path = try await ada.createItem(["format": "opaque", "body": .string(Fixtures.sealed())])
            let current = try await ada.client.get(path)

            for fields in [["If-None-Match": "*"], ["If-Match": "\"2\""]] {
                let reply = try await ada.client.put(path, ItemTests.item(), fields)
                #expect(reply.status == 412)
                #expect(reply.code == "precondition_failed")
                #expect(reply.fields["ETag"] == "\"1\"")
                #expect(reply["current"] == current[""])
            }
            let delete = try await ada.client.delete(path, ["If-Match": "\"2\""])
            #expect(delete.status == 412)
            #expect(delete["current"] == current[""])
            #expect(try await ada.client.get("/v1/account").integer("usage.items") == 1)
        }
    }

    @Test func `an item that never was matches nothing`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let path = "/v1/items/\(Fixtures.uuid())"
            for tag in ["*", "\"1\""] {
                let put = try await ada.client.put(path, ItemTests.item(), ["If-Match": tag])
                #expect(put.status == 412)
                #expect(put["current"] == .null)
                #expect(try await ada.client.delete(path, ["If-Match": tag]).status == 404)
            }
        }
    }

    @Test func `a deleted item matches nothing, and can be created again`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let path = try await ada.createItem()
            #expect(try await ada.client.delete(path, ["If-Match": "*"]).integer("revision") == 2)
            for tag in ["*", "\"2\""] {
                let put = try await ada.client.put(path, ItemTests.item(), ["If-Match": tag])
                #expect(put.status == 412)
                #expect(put.bool("current.deleted") == true)
                #expect(put.integer("current.revision") == 2)
                #expect(put.fields["ETag"] == nil)
                #expect(try await ada.client.delete(path, ["If-Match": tag]).status == 404)
            }
            app.clock.advance(by: .seconds(60))
            let again = try await ada.client.put(path, ItemTests.item(), ["If-None-Match": "*"])
            #expect(again.status == 201)
            #expect(again.integer("revision") == 3)
            #expect(again.string("createdAt") == "2026-01-01T00:01:00.000Z")
            #expect(try await ada.client.get("/v1/account").integer("usage.items") == 1)
        }
    }

    @Test func `whatever is there is overwritten on request`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let path = try await ada.createItem()
            let reply = try await ada.client.put(path, ItemTests.item(), ["If-Match": "*"])
            #expect(reply.status == 200)
            #expect(reply.integer("revision") == 2)
        }
    }

    @Test func `a retry after a lost reply changes nothing and succeeds`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let item: JSONValue = [
                "format": "aes-256-gcm", "body": .string(Fixtures.sealed()), "title": .string(Fixtures.sealed()),
                "iterations": 5,
            ]
            let path = try await ada.createItem(item)
            app.clock.advance(by: .seconds(9))
            for fields in [["If-None-Match": "*"], ["If-Match": "\"7\""], ["If-Match": "*"]] {
                let retry = try await ada.client.put(path, item, fields)
                #expect(retry.status == 200)
                #expect(retry.integer("revision") == 1)
                #expect(retry.string("updatedAt") == "2026-01-01T00:00:00.000Z")
            }
            // Any difference is a change.
            for name in ["iterations", "title"] {
                let other = try await ada.client.put(path, item.without(name), ["If-None-Match": "*"])
                #expect(other.status == 412, "\(name)")
            }
        }
    }
}

extension JSONValue {
    /// The object without one of its members.
    func without(_ name: String) -> JSONValue {
        guard case .object(let object) = self else { return self }
        return .object(JSONObject(object.members.filter { !($0.name == name) }.map { ($0.name.string, $0.value) }))
    }
}
