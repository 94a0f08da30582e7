internal import Cryptography
internal import HTTPCore
internal import Postgres

/// A registered account with its first session.
public struct TestAccount: Sendable {
    public let id: String
    public let userid: String
    /// Base64 of the password key.
    public let passwordKey: String
    public let sessionID: String
    /// A client with the session's token.
    public let client: TestClient

    /// A failed registration or log-in.
    public struct Failure: Error, CustomStringConvertible {
        public let description: String
    }
}

extension TestApplication {
    /// Registers an account. Its password key depends on the userid alone.
    public func register(
        _ userid: String = Fixtures.userid(), iterations: Int = 600_000
    ) async throws -> TestAccount {
        let key = Fixtures.passwordKey(userid)
        let response = try await client.post(
            "/v1/accounts",
            [
                "userid": .string(userid), "passwordKey": .string(key),
                "kdf": ["iterations": .integer(Int64(iterations))],
            ])
        guard let id = response.string("accountId"), let token = response.string("session.token"),
            let sessionID = response.string("session.id")
        else { throw TestAccount.Failure(description: "registration: \(response)") }
        return TestAccount(
            id: id, userid: userid, passwordKey: key, sessionID: sessionID, client: client.with(token: token))
    }

    /// Opens a further session of an account.
    public func logIn(_ account: TestAccount, device: String? = nil) async throws -> TestClient {
        var body: [(name: String, value: JSONValue)] = [
            (name: "userid", value: .string(account.userid)),
            (name: "passwordKey", value: .string(account.passwordKey)),
        ]
        if let device { body.append((name: "device", value: ["name": .string(device)])) }
        let response = try await client.post("/v1/sessions", .object(JSONObject(body)))
        guard let token = response.string("session.token") else {
            throw TestAccount.Failure(description: "login: \(response)")
        }
        return client.with(token: token)
    }
}

/// Values for the requests of tests.
public enum Fixtures {
    /// Returns a unique userid.
    public static func userid() -> String { "user-\(Hex.encode(SecureRandom.bytes(6)))@example.org" }

    /// Returns base64 of a password key that depends on the seed alone.
    public static func passwordKey(_ seed: String) -> String {
        Base64.encodeToString(SHA256.hash(Array(seed.utf8)))
    }

    /// Returns a random UUID in its canonical form.
    public static func uuid() -> String { UUID(bytes: SecureRandom.bytes(16)).map(\.description) ?? "" }

    /// Returns base64 of random bytes, as many as AES-GCM with a 12-byte nonce returns for `plaintext` bytes.
    public static func sealed(plaintext: Int = 64) -> String {
        Base64.encodeToString(SecureRandom.bytes(12 + plaintext + 16))
    }

    /// Returns base64 of an RNCryptor message in key mode with `blocks` blocks of ciphertext.
    public static func rncryptor(blocks: Int = 4) -> String {
        Base64.encodeToString([3, 0] + SecureRandom.bytes(16 + blocks * 16 + 32))
    }
}
