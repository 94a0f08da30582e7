internal import Cryptography
internal import HTTPCore
internal import Postgres

/// Identifies a passkey: the credential id, which its authenticator has chosen. Clients write it in base64url.
struct PasskeyID: Sendable, Hashable, PathParameterConvertible, PostgresValue, PostgresArrayElement {
    let bytes: [UInt8]

    /// The longest id (WebAuthn Level 3 §5.8.3).
    private static let byteLimit = 1_023

    init?(_ bytes: [UInt8]) {
        guard (1...Self.byteLimit).contains(bytes.count) else { return nil }
        self.bytes = bytes
    }

    init?(pathParameter text: String) {
        guard let bytes = Base64Text.decodeURL(text) else { return nil }
        self.init(bytes)
    }

    init(json: JSONValue) throws {
        guard let id = try PasskeyID(pathParameter: json.string()) else { throw PasskeyProblem.malformed }
        self = id
    }

    /// The mark of the sessions that the passkey opens.
    var hash: PasskeyHash { PasskeyHash(SHA256.hash(bytes)) }

    /// Base64url, as in `id` of the WebAuthn JSON forms.
    var text: String { Base64URL.encodeToString(bytes) }

    static var postgresType: PostgresType { .bytea }
    static var postgresArrayType: PostgresType { .byteaArray }

    func encode(to writer: inout ByteWriter) { bytes.encode(to: &writer) }

    static func decode(_ bytes: UnsafeRawBufferPointer?) -> PasskeyID? {
        [UInt8].decode(bytes).flatMap { PasskeyID($0) }
    }
}

/// SHA-256 of a credential id. It has a constant length, unlike the id.
struct PasskeyHash: StoredDigest {
    let digest: SHA256Digest
}
