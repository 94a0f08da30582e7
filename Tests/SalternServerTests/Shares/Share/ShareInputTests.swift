import Cryptography
import HTTPCore
import SalternTesting
import Testing

@Suite struct ShareInputTests {
    private static func base64(_ count: Int) -> JSONValue { .string(Base64.encodeToString(SecureRandom.bytes(count))) }

    private static let refusals: [([String: JSONValue], String, String)] = [
        (["format": "rncryptor-v3"], "unknown_format", "format"),
        (["format": "opaque"], "unknown_format", "format"),
        (["format": 1], "wrong_type", "format"),
        (["salt": base64(7)], "wrong_salt_length", "salt"),
        (["salt": base64(33)], "wrong_salt_length", "salt"),
        (["salt": "AAAAAAAAAAB="], "not_base64", "salt"),
        (["salt": "salty salt!!"], "not_base64", "salt"),
        (["iterations": 999], "out_of_range", "iterations"),
        (["iterations": 10_000_001], "out_of_range", "iterations"),
        (["sealed": base64(27)], "malformed_sealed_bytes", "sealed"),
        (["sealed": .string(Base64.encodeToString(Array(repeating: 0x20, count: 64)))], "not_encrypted", "sealed"),
        (["sealed": "not base64"], "not_base64", "sealed"),
        (["expiresAt": "2026-01-01T00:00:00Z"], "time_has_passed", "expiresAt"),
        (["expiresAt": "2025-01-01T00:00:00Z"], "time_has_passed", "expiresAt"),
        (["expiresAt": "2026-01-02"], "not_a_time", "expiresAt"),
        (["expiresAt": "2026-01-02T00:00:00+0100"], "not_a_time", "expiresAt"),
        (["expiresAt": 1_767_312_000], "wrong_type", "expiresAt"),
        (["maxViews": 0], "out_of_range", "maxViews"),
        (["maxViews": 1_000_001], "out_of_range", "maxViews"),
        (["views": 0], "unknown_member", "views"),
        (["password": "x"], "password_refused", "password"),
    ]

    @Test func `what is not a share is refused, and named`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let share = try await TestShare(ada.client)
            for (change, code, field) in Self.refusals {
                for method in [HTTPMethod.post, .put] {
                    let reply = try await ada.client.send(
                        method, method == .post ? "/v1/shares" : share.path,
                        body: TestClient.document(ShareFixtures.content(change)))
                    #expect(reply.status == 422, "\(change)")
                    #expect(reply.code == code, "\(change)")
                    #expect(reply.string("field") == field, "\(change)")
                }
            }
            #expect(try await app.execute(CountShareRows()) == [[1, 1]])
        }
    }

    @Test(arguments: [8, 32])
    func `salts of every allowed length are taken`(_ length: Int) async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let share = try await TestShare(
                ada.client,
                ShareFixtures.content(
                    plaintext: 0,
                    [
                        "salt": Self.base64(length), "iterations": 10_000_000, "maxViews": 1_000_000,
                        "expiresAt": "9999-12-31T23:59:59Z",
                    ]))
            #expect(try await app.client.get(share.path).string("expiresAt") == "9999-12-31T23:59:59.000Z")
        }
    }

    @Test func `a stranger's body is not read`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let share = try await TestShare(ada.client)
            for (method, path) in [(HTTPMethod.post, "/v1/shares"), (.put, share.path)] {
                let reply = try await app.client.send(method, path, body: Array("{".utf8))
                #expect(reply.status == 401)
                #expect(reply.fields["WWW-Authenticate"] == "Bearer")
            }
        }
    }
}
