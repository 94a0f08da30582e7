import Cryptography
import HTTPCore
import SalternTesting
import Testing

@testable import SalternServer

/// A member that openapi.yaml describes with a standard format is taken in every form that the format has.
@Suite struct RequestFormatTests {
    private static let spaces = ["\n", "\r\n", " ", "\t\n"]

    private static func paddings(of text: String) -> [JSONValue] {
        spaces.flatMap { [text + $0, $0 + text, $0 + text + $0] }.map { .string(JSONString($0)) }
    }

    private static func wrapped(_ text: String, at length: Int, by lineBreak: String) -> String {
        stride(from: 0, to: text.count, by: length).map { String(text.dropFirst($0).prefix(length)) }.joined(
            separator: lineBreak)
    }

    /// The forms of base64 of `bytes`: with white space around it, and wrapped when it is longer than a line.
    private static func base64(_ bytes: [UInt8]) -> [JSONValue] {
        let text = Base64.encodeToString(bytes)
        guard bytes.count > 57 else { return paddings(of: text) }
        let lines = [64, 76].flatMap { [wrapped(text, at: $0, by: "\n"), wrapped(text, at: $0, by: "\r\n")] }
        return paddings(of: text) + lines.map { .string(JSONString($0)) }
            + lines.map { .string(JSONString(" \($0)\n\n")) }
    }

    private static func random(_ count: Int) -> [UInt8] { [0xFF, 0xFE] + SecureRandom.bytes(count - 2) }

    /// Sends `body` once for each form of each member.
    private func expect(
        _ status: Int, _ forms: [String: [JSONValue]], in body: JSONValue,
        _ send: (JSONValue) async throws -> TestResponse
    ) async throws {
        for (name, values) in forms {
            for value in values {
                let reply = try await send(body.with(name, value))
                #expect(reply.status == status, "\(name) \(value): \(reply)")
            }
        }
    }

    @Test func `base64 has one rule, whatever it is of`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let item: JSONValue = ["format": "opaque", "body": .string(Fixtures.sealed())]
            try await expect(
                201, ["body": Self.base64(Self.random(200)), "title": Self.base64(Self.random(100))], in: item
            ) {
                try await ada.client.put("/v1/items/\(Fixtures.uuid())", $0, ["If-None-Match": "*"])
            }
            let share: JSONValue = [
                "format": "aes-256-gcm", "salt": .string(Base64.encodeToString(Self.random(16))), "iterations": 600_000,
                "sealed": .string(Fixtures.sealed()), "maxViews": 1,
            ]
            let forms = ["salt": Self.base64(Self.random(16)), "sealed": Self.base64(Self.random(100))]
            try await expect(201, forms, in: share) { body in
                let reply = try await ada.client.post("/v1/shares", body)
                if let id = reply.string("id") { _ = try await ada.client.delete("/v1/shares/\(id)") }
                return reply
            }
            let login: JSONValue = ["userid": .string(ada.userid), "passwordKey": .string(ada.passwordKey)]
            try await expect(201, ["passwordKey": Self.paddings(of: ada.passwordKey)], in: login) { body in
                try await app.client.post("/v1/sessions", body)
            }
            // Each log-in ends the oldest session once there are many.
            let fresh = try await app.logIn(ada)
            let keyring: JSONValue = ["keyring": .string(Fixtures.sealed())]
            for form in Self.base64(Self.random(100)) {
                let reply = try await fresh.put("/v1/account/keyring", keyring.with("keyring", form), ["If-Match": "*"])
                #expect([200, 412].contains(reply.status), "\(form): \(reply)")
            }
            let proof: JSONValue = [
                "currentPasswordKey": .string(ada.passwordKey), "recoveryKey": .string(Fixtures.passwordKey("code")),
                "keyring": .string(Fixtures.sealed()),
            ]
            let keys = [
                "currentPasswordKey": Self.paddings(of: ada.passwordKey),
                "recoveryKey": Self.paddings(of: Fixtures.passwordKey("code")),
                "keyring": Self.base64(Self.random(100)),
            ]
            try await expect(200, keys, in: proof) { try await fresh.put("/v1/account/recovery", $0) }
        }
    }

    @Test func `a time may have any offset and a number any notation`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let share: JSONValue = [
                "format": "aes-256-gcm", "salt": .string(Base64.encodeToString(Self.random(16))), "iterations": 600_000,
                "sealed": .string(Fixtures.sealed()),
            ]
            let times = [
                "2027-06-01T12:00:00Z", "2027-06-01T12:00:00+00:00", "2027-06-01T12:00:00-00:00",
                "2027-06-01t14:00:00+02:00",
                "2027-06-01t12:00:00z", "2027-06-01T12:00:00.000Z", "2027-06-01T12:00:00.000000000000Z",
                "2027-05-31T23:30:00-12:30", "2027-06-01T11:59:60Z",
            ]
            for time in times {
                let reply = try await ada.client.post("/v1/shares", share.with("expiresAt", .string(JSONString(time))))
                #expect(reply.status == 201, "\(time): \(reply)")
                #expect(reply.string("expiresAt") == "2027-06-01T12:00:00.000Z", "\(time)")
            }
            for number in ["600000", "600000.0", "6e5", "6E+5", "6000000e-1"] {
                let text = String(decoding: TestClient.document(share), as: UTF8.self).replacing("600000", with: number)
                let reply = try await ada.client.send(.post, "/v1/shares", body: Array(text.utf8))
                #expect(reply.status == 201, "\(number): \(reply)")
            }
        }
    }

    @Test func `a UUID may be in either case, in a path and in a body`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let ids = (0..<2).map { _ in Fixtures.uuid() }
            let item: JSONValue = ["format": "opaque", "body": .string(Fixtures.sealed())]
            let put = try await ada.client.put("/v1/items/\(ids[0].uppercased())", item, ["If-None-Match": "*"])
            #expect(put.status == 201)
            #expect(put.string("id") == ids[0].lowercased())
            let batch: JSONValue = [
                "operations": [BatchTests.put(ids[1].uppercased(), 0), BatchTests.delete(ids[0].uppercased(), 1)]
            ]
            #expect(try await ada.client.post("/v1/items/batch", batch).status == 200)
            #expect(try await ada.client.get("/v1/items/\(ids[1])").status == 200)
        }
    }
}
