import Cryptography
import HTTPCore

/// A change that makes a right response wrong, with the reason of its refusal.
struct PasskeyRefusal: Sendable {
    let name: String
    /// The check that fails, or `malformed_credential`.
    let reason: String
    let change: @Sendable (SoftwareAuthenticator) -> Void
    /// Changes the JSON form after the signature.
    let changeJSON: @Sendable (JSONValue) -> JSONValue

    init(_ name: String, _ reason: String, _ change: @escaping @Sendable (SoftwareAuthenticator) -> Void) {
        self.name = name
        self.reason = reason
        self.change = change
        changeJSON = { $0 }
    }

    init(_ name: String, _ reason: String, json changeJSON: @escaping @Sendable (JSONValue) -> JSONValue) {
        self.name = name
        self.reason = reason
        change = { _ in }
        self.changeJSON = changeJSON
    }
}

extension PasskeyRefusal {
    private static func response(_ name: String, _ value: JSONValue) -> @Sendable (JSONValue) -> JSONValue {
        { $0.with("response", ($0.member("response") ?? .null).with(name, value)) }
    }

    private static func replacing(_ old: String, _ new: String) -> @Sendable (SoftwareAuthenticator) -> Void {
        { $0.changeClientData = { $0.replacing(old, with: new) } }
    }

    private static func challenge(_ text: String) -> @Sendable (SoftwareAuthenticator) -> Void {
        { $0.changeClientData = { $0.replacing(/"challenge":"[^"]*"/, with: "\"challenge\":\"\(text)\"") } }
    }

    private static func object(
        _ change: @escaping @Sendable ([UInt8]) -> [UInt8]
    ) -> @Sendable (SoftwareAuthenticator) -> Void {
        { $0.changeObject = change }
    }

    private static func data(
        _ change: @escaping @Sendable (inout [UInt8]) -> Void
    ) -> @Sendable (SoftwareAuthenticator) -> Void {
        { authenticator in
            authenticator.changeData = { data in
                var data = data
                change(&data)
                return data
            }
        }
    }

    private static let (flags, algorithm) = (32, 91)

    /// Refusals of both ceremonies.
    static let common: [PasskeyRefusal] = [
        PasskeyRefusal("another origin", "wrong_origin") { $0.origin = "https://example.com" },
        PasskeyRefusal("http", "wrong_origin") { $0.origin = "http://example.org" },
        PasskeyRefusal("an origin with a port", "wrong_origin") { $0.origin = "https://example.org:8443" },
        PasskeyRefusal("an origin below that is not allowed", "wrong_origin") { $0.origin = "https://a.example.org" },
        PasskeyRefusal("no origin", "wrong_origin") { $0.origin = "null" },
        PasskeyRefusal("a frame of another origin", "cross_origin") { $0.moreClientData = #","crossOrigin":true"# },
        PasskeyRefusal("an origin on top", "cross_origin") {
            $0.moreClientData = #","topOrigin":"https://example.org""#
        },
        PasskeyRefusal("a text as flag", "client_data_malformed") { $0.moreClientData = #","crossOrigin":"false""# },
        PasskeyRefusal("a challenge twice", "client_data_malformed") { $0.moreClientData = #","challenge":"AA""# },
        PasskeyRefusal("a member twice", "client_data_malformed") { $0.moreClientData = #","a":1,"\u0061":1"# },
        PasskeyRefusal("a payment", "wrong_type", replacing("webauthn.", "payment.")),
        PasskeyRefusal("no client data", "client_data_malformed") { $0.changeClientData = { _ in "" } },
        PasskeyRefusal("text behind client data", "client_data_malformed") { $0.changeClientData = { $0 + "{}" } },
        PasskeyRefusal("a byte order mark", "client_data_malformed") { $0.changeClientData = { "\u{FEFF}" + $0 } },
        PasskeyRefusal("long client data", "client_data_too_long") {
            $0.moreClientData = #","a":"\#(String(repeating: "a", count: 4_096))""#
        },
        PasskeyRefusal("another challenge", "wrong_challenge", challenge("AAAA")),
        PasskeyRefusal("no challenge", "wrong_challenge", challenge("")),
        PasskeyRefusal(
            "a challenge of another server", "wrong_challenge", challenge(String(repeating: "A", count: 96))),
        PasskeyRefusal("a malformed challenge", "client_data_malformed", challenge("***")),
        PasskeyRefusal("another RP id", "wrong_relying_party") { $0.rpID = "example.com" },
        PasskeyRefusal("no user", "user_not_present") { $0.flags = 0x1C },
        PasskeyRefusal("a user who is not verified", "user_not_verified") { $0.flags = 0x19 },
        PasskeyRefusal("an impossible backup", "impossible_backup") { $0.flags = 0x15 },
        PasskeyRefusal("the flag of extensions without any", "malformed_cbor", data { $0[flags] |= 0x80 }),
        PasskeyRefusal("bytes behind the data", "trailing_bytes", data { $0.append(0) }),
        PasskeyRefusal(
            "data that end in the head", "malformed_authenticator_data", data { $0.removeLast($0.count - 36) }),
        PasskeyRefusal("another type", "malformed_credential", json: { $0.with("type", "password") }),
        PasskeyRefusal("two ids", "malformed_credential", json: { $0.with("rawId", "AAAA") }),
        PasskeyRefusal("a padded id", "malformed_credential", json: { $0.with("id", "AA==").with("rawId", .null) }),
        PasskeyRefusal("no response", "malformed_credential", json: { $0.with("response", .null) }),
        PasskeyRefusal("a number as client data", "malformed_credential", json: response("clientDataJSON", 1)),
    ]

    static let registrations: [PasskeyRefusal] =
        common + [
            PasskeyRefusal("client data of an assertion", "wrong_type", replacing("webauthn.create", "webauthn.get")),
            PasskeyRefusal("bytes behind the object", "trailing_bytes", object { $0 + [0] }),
            PasskeyRefusal("an object that ends early", "malformed_cbor", object { $0.dropLast() }),
            PasskeyRefusal("a large object", "too_long", object { _ in [UInt8](repeating: 0, count: 32_769) }),
            PasskeyRefusal(
                "a huge length", "malformed_cbor", object { _ in [0x5B] + [UInt8](repeating: 0xFF, count: 8) }),
            PasskeyRefusal("a deep object", "too_deep", object { _ in [UInt8](repeating: 0x81, count: 20) + [0] }),
            PasskeyRefusal(
                "many items", "too_many_items", object { _ in [0x99, 1, 44] + [UInt8](repeating: 0, count: 300) }),
            PasskeyRefusal("an indefinite length", "indefinite_length", object { _ in [0xBF, 0xFF] }),
            PasskeyRefusal("a tag", "tagged", object { [0xC0] + $0 }),
            PasskeyRefusal(
                "a key twice", "duplicate_key", object { [0xA4, 0x63] + "fmt".utf8 + [0x60] + $0.dropFirst() }),
            PasskeyRefusal(
                "a fourth member", "malformed_attestation_object", object { [0xA4, 0x61, 0x61, 0] + $0.dropFirst() }),
            PasskeyRefusal("no attestation object", "malformed_cbor", object { _ in [] }),
            PasskeyRefusal(
                "no credential", "missing_credential",
                data {
                    $0.removeLast($0.count - 37)
                    $0[flags] &= ~0x40
                }),
            PasskeyRefusal("a credential without its flag", "trailing_bytes", data { $0[flags] &= ~0x40 }),
            PasskeyRefusal("a key that ends early", "malformed_cbor", data { $0.removeLast() }),
            PasskeyRefusal(
                "another algorithm beside the key", "wrong_algorithm", json: response("publicKeyAlgorithm", -7)),
            PasskeyRefusal("another algorithm in the key", "malformed_key", data { $0[algorithm] = 0x26 }),
            PasskeyRefusal("an unknown algorithm", "unsupported_algorithm", data { $0[algorithm] = 0x28 }),
            PasskeyRefusal("another id", "wrong_credential_id", json: { $0.with("id", "AAAA").with("rawId", "AAAA") }),
        ]

    static let assertions: [PasskeyRefusal] =
        common + [
            PasskeyRefusal("client data of a registration", "wrong_type", replacing("webauthn.get", "webauthn.create")),
            PasskeyRefusal("a passkey that had backups", "changed_backup_eligibility") { $0.flags = 0x05 },
            PasskeyRefusal("the flag of a credential", "malformed_authenticator_data", data { $0[flags] |= 0x40 }),
            PasskeyRefusal("a random signature", "wrong_signature") {
                $0.changeSignature = { SecureRandom.bytes($0.count) }
            },
            PasskeyRefusal("no signature", "wrong_signature") { $0.changeSignature = { _ in [] } },
            PasskeyRefusal("a signature that ends early", "wrong_signature") { $0.changeSignature = { $0.dropLast() } },
            PasskeyRefusal("bytes behind the signature", "wrong_signature") { $0.changeSignature = { $0 + [0] } },
            PasskeyRefusal("a long signature", "too_long") {
                $0.changeSignature = { _ in [UInt8](repeating: 0, count: 513) }
            },
            PasskeyRefusal("a signature that is missing", "malformed_credential", json: response("signature", .null)),
            PasskeyRefusal(
                "other signed data", "wrong_signature",
                json: { credential in
                    let text = try? credential.member("response")?.member("authenticatorData")?.string()
                    var data = (try? Base64URL.decode([UInt8]((text ?? "").utf8))) ?? []
                    data[36] = 99
                    return response("authenticatorData", .string(Base64URL.encodeToString(data)))(credential)
                }),
            PasskeyRefusal("no user handle", "wrong_user_handle") { $0.userHandle = nil },
            PasskeyRefusal("an unknown user handle", "wrong_signature") { $0.userHandle = SecureRandom.bytes(16) },
            PasskeyRefusal("a short user handle", "wrong_user_handle") { $0.userHandle = [1] },
            PasskeyRefusal("an unknown id", "wrong_signature", json: { $0.with("id", "AAAA").with("rawId", "AAAA") }),
            PasskeyRefusal("the same sign count", "sign_count_did_not_grow") { $0.signCount -= 1 },
            PasskeyRefusal("an earlier sign count", "sign_count_did_not_grow") { $0.signCount = 2 },
        ]
}
