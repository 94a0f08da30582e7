/// Parses and verifies a response of `navigator.credentials.create()`.
public struct PasskeyRegistration {
    public let clientData: ClientData
    private let data: AuthenticatorData
    private let credential: AuthenticatorData.Credential
    private let algorithm: Int

    /// - Parameters:
    ///   - credentialID: The id in the response, beside the attestation object.
    ///   - algorithm: `publicKeyAlgorithm` of the response.
    public init(
        credentialID: [UInt8], clientDataJSON: [UInt8], attestationObject: [UInt8], algorithm: Int
    ) throws(WebAuthnFailure) {
        clientData = try ClientData(clientDataJSON, ceremony: .registration)
        data = try AttestationObject(attestationObject).authenticatorData
        guard let credential = data.credential else { throw .missingCredential }
        guard credential.id == credentialID else { throw .wrongCredentialID }
        self.credential = credential
        self.algorithm = algorithm
    }

    /// A registered passkey.
    public struct Passkey: Sendable {
        public let credentialID: [UInt8]
        public let key: CredentialKey
        public let signCount: UInt32
        /// True if its owner may use it on several devices. The value is not attested.
        public let isBackupEligible: Bool
        public let isBackedUp: Bool
        public let isUserVerified: Bool
        /// The model of the authenticator, or zeros if it is hidden. The value is not attested.
        public let aaguid: [UInt8]
    }

    /// Verifies the registration (WebAuthn Level 3 §7.1), without its attestation statement.
    /// - Parameter challenge: The challenge that the server created for the registration.
    public func verify(
        for relyingParty: RelyingParty, challenge: [UInt8], requiresUserVerification: Bool
    ) throws(WebAuthnFailure) -> Passkey {
        try relyingParty.check(
            clientData, data, challenge: challenge, requiresUserVerification: requiresUserVerification)
        guard credential.key.algorithm.rawValue == algorithm else { throw .wrongAlgorithm }
        return Passkey(
            credentialID: credential.id, key: credential.key, signCount: data.signCount,
            isBackupEligible: data.flags.contains(.backupEligible), isBackedUp: data.flags.contains(.backedUp),
            isUserVerified: data.flags.contains(.userVerified), aaguid: credential.aaguid)
    }
}

/// Parses the attestation object of a registration (WebAuthn Level 3 §6.5).
///
/// The server requests no attestation. So the statement must be CBOR, and its content is ignored.
struct AttestationObject {
    /// The longest object, in bytes. Unrequested statements contain some certificates.
    static let byteLimit = 32_768

    let authenticatorData: AuthenticatorData

    init(_ bytes: [UInt8]) throws(WebAuthnFailure) {
        guard bytes.count <= Self.byteLimit else { throw .tooLong }
        guard case .map(let members) = try CBORValue(decoding: bytes[...]), members.count == 3,
            case .text? = members[.text("fmt")], case .map? = members[.text("attStmt")],
            case .bytes(let data)? = members[.text("authData")]
        else { throw .malformedAttestationObject }
        authenticatorData = try AuthenticatorData(data[...])
    }
}
