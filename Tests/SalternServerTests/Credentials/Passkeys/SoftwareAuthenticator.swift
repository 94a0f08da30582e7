import COpenSSL
import Cryptography
import HTTPCore
import SalternTesting
import Testing
import WebAuthn

@testable import SalternServer

/// An authenticator and its browser, in software: one Ed25519 key.
final class SoftwareAuthenticator {
    let id: [UInt8]
    var signCount: UInt32 = 0
    /// UP, UV, BE and BS.
    var flags: UInt8 = 0x1D
    var origin = "https://example.org"
    var rpID = "example.org"
    var userHandle: [UInt8]?
    /// Further members of the client data, such as `,"crossOrigin":true`.
    var moreClientData = ""
    /// Changes what is signed.
    var changeClientData: (String) -> String = { $0 }
    var changeData: ([UInt8]) -> [UInt8] = { $0 }
    /// Changes what is sent beside it.
    var changeObject: ([UInt8]) -> [UInt8] = { $0 }
    var changeSignature: ([UInt8]) -> [UInt8] = { $0 }
    private let seed = SecureRandom.bytes(32)

    init(id: [UInt8] = SecureRandom.bytes(32)) { self.id = id }

    var idText: String { Base64URL.encodeToString(id) }

    private func withKey<Result>(_ body: (OpaquePointer) -> Result) throws -> Result {
        let key = try #require(EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, nil, seed, seed.count))
        defer { EVP_PKEY_free(key) }
        return body(key)
    }

    private func publicKey() throws -> [UInt8] {
        try withKey { key in
            var (bytes, count) = ([UInt8](repeating: 0, count: 32), 32)
            _ = EVP_PKEY_get_raw_public_key(key, &bytes, &count)
            return bytes
        }
    }

    private func sign(_ message: [UInt8]) throws -> [UInt8] {
        try withKey { key in
            var (bytes, count) = ([UInt8](repeating: 0, count: 64), 64)
            let context = EVP_MD_CTX_new()
            defer { EVP_MD_CTX_free(context) }
            _ = EVP_DigestSignInit(context, nil, nil, nil, key)
            _ = EVP_DigestSign(context, &bytes, &count, message, message.count)
            return bytes
        }
    }

    private func clientData(_ type: String, _ options: JSONValue) throws -> [UInt8] {
        let challenge = try #require(options.member("challenge")).string()
        let text = #"{"type":"\#(type)","challenge":"\#(challenge)","origin":"\#(origin)"\#(moreClientData)}"#
        return Array(changeClientData(text).utf8)
    }

    private func data(_ more: UInt8, _ rest: [UInt8]) -> [UInt8] {
        let count = withUnsafeBytes(of: signCount.bigEndian) { [UInt8]($0) }
        return changeData(SHA256.hash(rpID.utf8).bytes + [flags | more] + count + rest)
    }

    private func credential(_ response: JSONValue) -> JSONValue {
        [
            "id": .string(idText), "rawId": .string(idText), "type": "public-key", "response": response,
            "clientExtensionResults": [:], "authenticatorAttachment": "platform",
        ]
    }

    /// The response of `navigator.credentials.create()`.
    func create(_ options: JSONValue) throws -> JSONValue {
        userHandle = try Base64URL.decode(#require(options.member("user", "id")).string().utf8)
        let key = try [0xA4, 1, 1, 3, 0x27, 0x20, 6, 0x21, 0x58, 32] + publicKey()
        let attested = [UInt8](repeating: 0, count: 16) + [UInt8(id.count >> 8), UInt8(id.count & 0xFF)] + id + key
        let data = data(0x40, attested)
        let object: [UInt8] =
            [0xA3, 0x63] + Array("fmt".utf8) + [0x64] + Array("none".utf8) + [0x67] + Array("attStmt".utf8) + [
                0xA0, 0x68,
            ]
            + Array("authData".utf8) + [0x59, UInt8(data.count >> 8), UInt8(data.count & 0xFF)] + data
        return credential([
            "clientDataJSON": .string(Base64URL.encodeToString(try clientData("webauthn.create", options))),
            "attestationObject": .string(Base64URL.encodeToString(changeObject(object))), "publicKeyAlgorithm": -8,
            "transports": ["internal"],
        ])
    }

    /// The response of `navigator.credentials.get()`.
    func get(_ options: JSONValue) throws -> JSONValue {
        if signCount > 0 { signCount += 1 }
        let clientData = try clientData("webauthn.get", options)
        let data = data(0, [])
        return credential([
            "clientDataJSON": .string(Base64URL.encodeToString(clientData)),
            "authenticatorData": .string(Base64URL.encodeToString(data)),
            "signature": .string(
                Base64URL.encodeToString(changeSignature(try sign(data + SHA256.hash(clientData).bytes)))),
            "userHandle": userHandle.map { .string(Base64URL.encodeToString($0)) } ?? .null,
        ])
    }
}

extension JSONValue {
    /// A member of a member; nil when there is none.
    func member(_ names: String...) -> JSONValue? {
        var value: JSONValue? = self
        for name in names {
            guard case .object(let object)? = value else { return nil }
            value = object[name]
        }
        return value
    }

    /// The object with another value of a member.
    func with(_ name: String, _ value: JSONValue) -> JSONValue {
        guard case .object(let object) = self else { return self }
        return .object(
            JSONObject(
                object.members.filter { !($0.name == name) }.map { (name: $0.name.string, value: $0.value) }
                    + [(name: name, value: value)]))
    }
}

extension TestApplication {
    /// A configuration that accepts passkeys of example.org.
    static var withPasskeys: ServiceConfiguration {
        var configuration = TestApplication.configuration
        configuration.passkeys = try? RelyingParty(id: "example.org", origins: ["https://example.org"])
        return configuration
    }

    /// Options for a new passkey.
    func passkeyOptions(_ account: TestAccount, logsIn: Bool = false) async throws -> JSONValue {
        let begun = try await account.client.post(
            "/v1/account/passkeys", account.currentKey.with("logsIn", .bool(logsIn)))
        #expect(begun.status == 201)
        return try #require(begun["publicKey"])
    }

    /// Sends a new passkey.
    func confirm(
        _ credential: JSONValue, _ account: TestAccount, logsIn: Bool = false, name: String = "Key"
    ) async throws -> TestResponse {
        try await account.client.post(
            "/v1/account/passkeys/confirm",
            account.currentKey.with("credential", credential).with("name", .string(name)).with("logsIn", .bool(logsIn)))
    }

    /// Gives an account a passkey.
    @discardableResult
    func addPasskey(
        _ account: TestAccount, _ authenticator: SoftwareAuthenticator = SoftwareAuthenticator(), logsIn: Bool = false
    ) async throws -> SoftwareAuthenticator {
        let options = try await passkeyOptions(account, logsIn: logsIn)
        let confirmed = try await confirm(authenticator.create(options), account, logsIn: logsIn)
        #expect(confirmed.status == 201, "\(confirmed)")
        return authenticator
    }

    /// Tries to log in with the password key and a passkey's answer.
    func tryLogIn(_ account: TestAccount, passkey: JSONValue? = nil, totp: String? = nil) async throws -> TestResponse {
        var body: JSONValue = ["userid": .string(account.userid), "passwordKey": .string(account.passwordKey)]
        if let passkey { body = body.with("passkey", passkey) }
        if let totp { body = body.with("totp", .string(totp)) }
        return try await client.post("/v1/sessions", body)
    }

    /// The options of a log-in without password.
    func passkeyLogInOptions() async throws -> JSONValue {
        let reply = try await client.send(.post, "/v1/passkeys/options")
        #expect(reply.status == 201)
        return try #require(reply["publicKey"])
    }
}
