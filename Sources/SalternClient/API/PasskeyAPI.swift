internal import Cryptography
public import Foundation

/// Encodes bytes as base64url in JSON, the form of WebAuthn.
public struct Base64URLBytes: Codable, Hashable, Sendable {
    /// The decoded bytes.
    public var bytes: [UInt8]

    /// Wraps bytes, which are encoded as base64url.
    public init(_ bytes: [UInt8]) { self.bytes = bytes }

    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        do {
            bytes = try Base64URL.decode(container.decode(String.self).utf8)
        } catch is Base64.Failure {
            throw DecodingError.dataCorruptedError(in: container, debugDescription: "no canonical base64url")
        }
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(Base64URL.encodeToString(bytes))
    }
}

/// A passkey of the account.
public struct PasskeyDescription: Decodable, Sendable {
    /// The credential id, which the authenticator has chosen.
    public let id: Base64URLBytes
    /// The user's name for it.
    public let name: String
    /// The signature algorithm, by its number in COSE.
    public let algorithm: Int
    /// True when it opens sessions without the password key.
    public let logsIn: Bool
    /// True when it claims to be on one device only.
    public let deviceBound: Bool
    /// True when it claims to be on several devices, or in a backup.
    public let backedUp: Bool
    /// True when it unlocks the keyring.
    public internal(set) var unlocks: Bool
    /// The time at which it was added.
    public let createdAt: Date
    /// The time of the last log-in with it; nil before the first.
    public let lastUsedAt: Date?
}

/// Identifies a passkey that may answer, or that must not be created again.
public struct PasskeyDescriptor: Decodable, Sendable {
    /// The credential id.
    public let id: Base64URLBytes
}

/// The account's unlock key, sealed for a passkey that unlocks the keyring.
public struct PasskeyBox: Encodable, Sendable {
    private enum CodingKeys: CodingKey { case id, box }

    /// The credential id.
    public let id: Base64URLBytes
    /// The sealed unlock key. Nil removes the server's box, so that the passkey no longer unlocks.
    public let box: Base64Bytes?

    /// Creates a box from sealed bytes.
    public init(id: Base64URLBytes, box: Base64Bytes?) {
        self.id = id
        self.box = box
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(id, forKey: .id)
        // Also null.
        try container.encode(box, forKey: .box)
    }
}

/// The options with which an authenticator creates a passkey.
public struct PasskeyCreationOptions: Decodable, Sendable {
    /// The site of the passkey.
    public struct RelyingParty: Decodable, Sendable {
        /// A domain name.
        public let id: String
        /// The name of the service.
        public let name: String
    }

    /// The account of the passkey.
    public struct User: Decodable, Sendable {
        /// The user handle, which is the account's id.
        public let id: Base64URLBytes
        /// The userid.
        public let name: String
    }

    /// A signature algorithm.
    public struct Algorithm: Decodable, Sendable {
        /// The number of the algorithm in COSE.
        public let alg: Int
    }

    /// Properties of a passkey.
    public struct Selection: Decodable, Sendable {
        /// `required` for a passkey that logs in without a userid, otherwise `preferred`.
        public let residentKey: String
        /// `required` for a passkey that logs in alone, otherwise `preferred`.
        public let userVerification: String
    }

    /// The site of the passkey.
    public let rp: RelyingParty
    /// The account of the passkey.
    public let user: User
    /// The bytes that the authenticator signs, valid for five minutes.
    public let challenge: Base64URLBytes
    /// The signature algorithms that the server accepts, the preferred one first.
    public let pubKeyCredParams: [Algorithm]
    /// The account's existing passkeys.
    public let excludeCredentials: [PasskeyDescriptor]
    /// The required properties of the passkey.
    public let authenticatorSelection: Selection
}

/// The options with which an authenticator uses a passkey.
public struct PasskeyRequestOptions: Decodable, Sendable {
    /// The domain name of the passkey.
    public let rpId: String
    /// The bytes that the authenticator signs, valid for five minutes.
    public let challenge: Base64URLBytes
    /// The permitted passkeys. Empty permits any that logs in.
    public let allowCredentials: [PasskeyDescriptor]
    /// `required` or `preferred`.
    public let userVerification: String
}

/// An authenticator's answer to ``PasskeyCreationOptions``. It excludes PRF outputs, which never leave the client.
public struct PasskeyRegistration: Encodable, Sendable {
    private struct Response: Encodable {
        let clientDataJSON: Base64URLBytes
        let attestationObject: Base64URLBytes
        let publicKeyAlgorithm: Int
    }

    /// The credential id.
    public let id: Base64URLBytes
    private let type = "public-key"
    private let response: Response

    /// Creates an answer from an authenticator's values.
    public init(id: [UInt8], clientDataJSON: [UInt8], attestationObject: [UInt8], publicKeyAlgorithm: Int) {
        self.id = Base64URLBytes(id)
        response = Response(
            clientDataJSON: Base64URLBytes(clientDataJSON), attestationObject: Base64URLBytes(attestationObject),
            publicKeyAlgorithm: publicKeyAlgorithm)
    }
}

/// An authenticator's answer to ``PasskeyRequestOptions``. It excludes PRF outputs, which never leave the client.
public struct PasskeyAssertion: Encodable, Sendable {
    private struct Response: Encodable {
        let clientDataJSON: Base64URLBytes
        let authenticatorData: Base64URLBytes
        let signature: Base64URLBytes
        let userHandle: Base64URLBytes?
    }

    /// The credential id.
    public let id: Base64URLBytes
    private let type = "public-key"
    private let response: Response

    /// Creates an answer from an authenticator's values.
    public init(
        id: [UInt8], clientDataJSON: [UInt8], authenticatorData: [UInt8], signature: [UInt8], userHandle: [UInt8]?
    ) {
        self.id = Base64URLBytes(id)
        response = Response(
            clientDataJSON: Base64URLBytes(clientDataJSON), authenticatorData: Base64URLBytes(authenticatorData),
            signature: Base64URLBytes(signature), userHandle: userHandle.map(Base64URLBytes.init))
    }
}

/// The reply to a log-in by a passkey.
public struct PasskeyLoginReply: Decodable, Sendable {
    /// The sealed values by which a passkey unlocks the keyring.
    public struct Unlock: Decodable, Sendable {
        /// A private key, sealed under the passkey's PRF output.
        public let sealedPrivateKey: Base64Bytes
        /// The account's unlock key, sealed to that key.
        public let box: Base64Bytes
    }

    /// The id of the account. It never changes.
    public let accountId: AccountID
    /// The session that was opened.
    public let session: NewSession
    /// The sealed keyring; nil when the account has none.
    public let keyring: Base64Bytes?
    /// The revision of ``keyring``; nil when the account has none.
    public let keyringRevision: Revision?
    /// Nil when the passkey does not unlock the keyring.
    public let unlock: Unlock?
}

/// A request that accepts an assertion in place of the password key.
public enum PasskeyPurpose: String, Encodable, Sendable, CaseIterable {
    /// A change of the password key.
    case changeCredential
    /// A change of the userid.
    case changeUserid
    /// The deletion of the account.
    case deleteAccount
    /// An export of the account.
    case exportAccount
    /// The registration of an authenticator app.
    case beginTOTP
    /// New recovery codes of the second factor.
    case renewRecoveryCodes
}

extension SalternAPI {
    /// `POST /v1/account/passkeys/options`
    /// - Parameter bodySHA256: SHA-256 of the body of the request that the assertion is for.
    public func beginPasskeyAssertion(
        for purpose: PasskeyPurpose, bodySHA256: [UInt8], _ token: Token
    ) async throws(APIError) -> PasskeyRequestOptions {
        struct Body: Encodable {
            let purpose: PasskeyPurpose
            let bodySHA256: Base64Bytes
        }
        struct Reply: Decodable { let publicKey: PasskeyRequestOptions }
        let body = Body(purpose: purpose, bodySHA256: Base64Bytes(bodySHA256))
        let request = try Self.request(.post, "/v1/account/passkeys/options", token: token, body)
        return try await call(request, as: Reply.self).publicKey
    }
}

extension SalternAPI {
    private struct Options<Value: Decodable>: Decodable { let publicKey: Value }

    private static func path(_ id: [UInt8]) -> String { "/v1/account/passkeys/" + Base64URL.encodeToString(id) }

    /// `POST /v1/account/passkeys`
    /// - Parameter logsIn: True if the passkey opens sessions without the password key.
    public func beginPasskey(
        logsIn: Bool, currentPasswordKey: SecretBytes, _ token: Token
    ) async throws(APIError) -> PasskeyCreationOptions {
        struct Body: Encodable {
            let currentPasswordKey: SecretBytes
            let logsIn: Bool
        }
        let body = Body(currentPasswordKey: currentPasswordKey, logsIn: logsIn)
        let request = try Self.request(.post, "/v1/account/passkeys", token: token, body)
        return try await call(request, as: Options<PasskeyCreationOptions>.self).publicKey
    }

    /// `POST /v1/account/passkeys/confirm`
    public func confirmPasskey(
        _ credential: PasskeyRegistration, name: String, logsIn: Bool, currentPasswordKey: SecretBytes, _ token: Token
    ) async throws(APIError) -> PasskeyDescription {
        struct Body: Encodable {
            let currentPasswordKey: SecretBytes
            let credential: PasskeyRegistration
            let name: String
            let logsIn: Bool
        }
        let body = Body(currentPasswordKey: currentPasswordKey, credential: credential, name: name, logsIn: logsIn)
        return try await call(Self.request(.post, "/v1/account/passkeys/confirm", token: token, body))
    }

    /// `GET /v1/account/passkeys`
    public func listPasskeys(_ token: Token) async throws(APIError) -> [PasskeyDescription] {
        struct Reply: Decodable { let passkeys: [PasskeyDescription] }
        let request = HTTPRequest(.get, "/v1/account/passkeys", token: token.text)
        return try await call(request, as: Reply.self).passkeys
    }

    /// `PATCH /v1/account/passkeys/{id}`
    public func renamePasskey(_ id: [UInt8], name: String, _ token: Token) async throws(APIError) -> PasskeyDescription
    {
        struct Body: Encodable { let name: String }
        return try await call(Self.request(.patch, Self.path(id), token: token, Body(name: name)))
    }

    /// `DELETE /v1/account/passkeys/{id}`
    public func removePasskey(_ id: [UInt8], currentPasswordKey: SecretBytes, _ token: Token) async throws(APIError) {
        try await call(
            Self.request(.delete, Self.path(id), token: token, Proof(currentPasswordKey: currentPasswordKey)))
    }

    /// `PUT /v1/account/passkeys/{id}/box`
    /// - Parameters:
    ///   - sealedPrivateKey: A private key, sealed under the passkey's PRF output.
    ///   - box: The account's unlock key, sealed to that key.
    public func putPasskeyBox(
        _ id: [UInt8], sealedPrivateKey: [UInt8], box: [UInt8], currentPasswordKey: SecretBytes, _ token: Token
    ) async throws(APIError) {
        struct Body: Encodable {
            let currentPasswordKey: SecretBytes
            let sealedPrivateKey: Base64Bytes
            let box: Base64Bytes
        }
        let body = Body(
            currentPasswordKey: currentPasswordKey, sealedPrivateKey: Base64Bytes(sealedPrivateKey),
            box: Base64Bytes(box))
        try await call(Self.request(.put, Self.path(id) + "/box", token: token, body))
    }

    /// `PUT /v1/account/passkeys/{id}/box` without a box: the passkey no longer unlocks the keyring.
    public func removePasskeyBox(
        _ id: [UInt8], currentPasswordKey: SecretBytes, _ token: Token
    ) async throws(APIError) {
        struct Body: Encodable {
            let currentPasswordKey: SecretBytes
            // An optional of nil would be omitted.
            let box = Base64Bytes??.some(nil)
        }
        try await call(
            Self.request(
                .put, Self.path(id) + "/box", token: token, Body(currentPasswordKey: currentPasswordKey)))
    }

    /// `POST /v1/passkeys/options`
    public func beginPasskeyLogIn() async throws(APIError) -> PasskeyRequestOptions {
        try await call(HTTPRequest(.post, "/v1/passkeys/options"), as: Options<PasskeyRequestOptions>.self).publicKey
    }

    /// `POST /v1/passkeys/sessions`
    public func logInWithPasskey(
        _ credential: PasskeyAssertion, deviceName: String? = nil
    ) async throws(APIError) -> PasskeyLoginReply {
        struct Name: Encodable { let name: String }
        struct Body: Encodable {
            let credential: PasskeyAssertion
            let device: Name?
        }
        let body = Body(credential: credential, device: deviceName.map(Name.init))
        return try await call(Self.request(.post, "/v1/passkeys/sessions", body))
    }
}
