import Cryptography
import HTTPCore
import SalternTesting
import Testing

/// What tests share.
enum ShareFixtures {
    /// The body of a request that makes a share: random sealed bytes, and what `extra` adds or replaces.
    static func content(
        plaintext: Int = 64, format: String = "aes-256-gcm", _ extra: [String: JSONValue] = [:]
    ) -> JSONValue {
        let nonce = format == "aes-256-gcm-iv16" ? 16 : 12
        var members: [String: JSONValue] = [
            "format": .string(format), "salt": .string(Base64.encodeToString(SecureRandom.bytes(16))),
            "iterations": 600_000,
            "sealed": .string(Base64.encodeToString(SecureRandom.bytes(nonce + plaintext + 16))),
        ]
        members.merge(extra) { $1 }
        return .object(JSONObject(members.map { (name: $0.key, value: $0.value) }))
    }

    /// The sealed bytes of a body, in base64.
    static func sealed(_ content: JSONValue) -> String? { try? content.object()["sealed"]?.string() }
}

/// A share that a test has made.
struct TestShare {
    let id: String
    let path: String
    let manageToken: String
    let content: JSONValue

    init(id: String, manageToken: String, content: JSONValue) {
        self.id = id
        path = "/v1/shares/\(id)"
        self.manageToken = manageToken
        self.content = content
    }

    init(_ client: TestClient, _ content: JSONValue = ShareFixtures.content()) async throws {
        let reply = try await client.post("/v1/shares", content)
        try #require(reply.status == 201, "\(reply)")
        id = try #require(reply.string("id"))
        path = "/v1/shares/\(id)"
        manageToken = try #require(reply.string("manageToken"))
        self.content = content
    }

    /// A manage token of no share.
    static func manageToken() -> String { "slm_" + Base64URL.encodeToString(SecureRandom.bytes(32)) }
}
