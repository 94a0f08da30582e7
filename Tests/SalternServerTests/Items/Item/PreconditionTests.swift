import HTTPCore
import SalternTesting
import Testing

@testable import SalternServer

@Suite struct PreconditionTests {
    private static let unusable: [(fields: [String: String], status: Int, code: String)] = [
        ([:], 428, "precondition_required"),
        (["If-Match": "*", "If-None-Match": "*"], 400, "malformed_precondition"),
        (["If-Match": "7"], 400, "malformed_precondition"),
        (["If-Match": "\"7"], 400, "malformed_precondition"),
        (["If-Match": "\"7\" \"8\""], 400, "malformed_precondition"),
        (["If-Match": "\"7\", 8"], 400, "malformed_precondition"),
        (["If-Match": "X/\"7\""], 400, "malformed_precondition"),
        (["If-Match": "**"], 400, "malformed_precondition"),
        (["If-Match": "\"7\", *"], 400, "malformed_precondition"),
        (["If-Match": "*, *"], 400, "malformed_precondition"),
        (["If-Match": "w/\"1\""], 400, "malformed_precondition"),
        // A weak tag is never equal to a strong one (RFC 9110 §13.1.1), and no item has the others.
        (["If-Match": "W/\"1\""], 412, "precondition_failed"),
        (["If-Match": "W/\"1\", \"2\""], 412, "precondition_failed"),
        (["If-Match": "\"7\", \"8\""], 412, "precondition_failed"),
        (["If-Match": "\"1-gzip\""], 412, "precondition_failed"),
        (["If-Match": "\"01\""], 412, "precondition_failed"),
        (["If-Match": "\"0\""], 412, "precondition_failed"),
        (["If-Match": "\"-1\""], 412, "precondition_failed"),
        (["If-Match": "\"9223372036854775807\""], 412, "precondition_failed"),
        (["If-Match": "\"9223372036854775808\""], 412, "precondition_failed"),
        (["If-Match": "\"\""], 412, "precondition_failed"),
        (["If-Match": "\"1,\\\""], 412, "precondition_failed"),
        (["If-Match": ""], 412, "precondition_failed"),
        (["If-Match": " , ,"], 412, "precondition_failed"),
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

    private static let lists = [
        "\"1\"", " \"1\" ", "\"1\", \"7\"", "\"7\",\"1\"", ",, \"9\" ,\t\"1\" ,", "W/\"1\", \"1\"", "\"a,b\", \"1\"",
        "*", "\"1\", \"1\"",
    ]

    @Test func `each tag of a list counts, for every change and every read`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            for list in Self.lists {
                let path = try await ada.createItem()
                let revision = try #require(try await ada.client.get(path).integer("revision"))
                let condition = ["If-Match": list.replacing("\"1\"", with: "\"\(revision)\"")]
                let next = ["If-Match": list.replacing("\"1\"", with: "\"\(revision + 1)\"")]
                for form in ["", "/body"] {
                    #expect(try await ada.client.get(path + form, condition).status == 200, "\(condition)")
                }
                #expect(try await ada.client.put(path, ItemTests.item(), condition).status == 200, "\(condition)")
                let deleted = try await ada.client.delete(path, next)
                #expect(deleted.status == 200, "\(next)")
                let last = ["If-Match": list.replacing("\"1\"", with: "\"\(deleted.integer("revision") ?? 0)\"")]
                #expect(try await ada.client.restore(path, last).status == 200, "\(last)")
            }
        }
    }

    @Test
    func `reads compare weakly with If-None-Match and strongly with If-Match, and what is no tag matches nothing`()
        async throws
    {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let item = try await ada.createItem()
            let keyring: JSONValue = ["keyring": .string(Fixtures.sealed())]
            let created = try await ada.client.put("/v1/account/keyring", keyring, ["If-None-Match": "*"])
            #expect(created.status == 201)
            for path in [item, item + "/body", "/v1/account/keyring"] {
                for list in ["W/\"1\"", "\"9\", W/\"1\"", "*", ", \"1\" ,"] {
                    #expect(try await ada.client.get(path, ["If-None-Match": list]).status == 304, "\(path) \(list)")
                }
                for list in ["\"2\"", "", "W/\"2\"", "\"1-gzip\""] {
                    #expect(try await ada.client.get(path, ["If-None-Match": list]).status == 200, "\(path) \(list)")
                }
                let weak = try await ada.client.get(path, ["If-Match": "W/\"1\""])
                #expect(weak.status == 412, "\(path)")
                #expect(weak["current"] != nil, "\(path)")
                #expect(try await ada.client.get(path, ["If-Match": "1"]).status == 412, "\(path)")
                #expect(try await ada.client.get(path, ["If-None-Match": "1"]).status == 200, "\(path)")
            }
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
