internal import CFIDO2
internal import Cryptography
internal import Synchronization

/// Parses and verifies a response of `navigator.credentials.get()`.
public struct Assertion {
    /// The longest signature, in bytes. RSA signatures have 256.
    public static let signatureLimit = 512

    public let credentialID: [UInt8]
    public let clientData: ClientData
    public let userHandle: [UInt8]?
    /// True if the passkey claims that it can be on several devices.
    public var isBackupEligible: Bool { data.flags.contains(.backupEligible) }
    private let data: AuthenticatorData
    private let signature: [UInt8]

    public init(
        credentialID: [UInt8], clientDataJSON: [UInt8], authenticatorData: [UInt8], signature: [UInt8],
        userHandle: [UInt8]?
    ) throws(WebAuthnFailure) {
        guard (1...AuthenticatorData.credentialIDLimit).contains(credentialID.count) else { throw .wrongCredentialID }
        guard signature.count <= Self.signatureLimit else { throw .tooLong }
        clientData = try ClientData(clientDataJSON, ceremony: .assertion)
        data = try AuthenticatorData(authenticatorData[...])
        guard data.credential == nil else { throw .unexpectedCredential }
        self.credentialID = credentialID
        self.signature = signature
        self.userHandle = userHandle
    }

    /// The stored state of a passkey, for the comparison with an assertion.
    public struct Expectation: Sendable {
        public let key: CredentialKey
        public let signCount: UInt32
        public let isBackupEligible: Bool
        /// The user handle of the registration.
        public let userHandle: [UInt8]
        /// False if the request has named the credentials. Authenticators may then omit the user handle.
        public let requiresUserHandle: Bool

        public init(
            key: CredentialKey, signCount: UInt32, isBackupEligible: Bool, userHandle: [UInt8], requiresUserHandle: Bool
        ) {
            self.key = key
            self.signCount = signCount
            self.isBackupEligible = isBackupEligible
            self.userHandle = userHandle
            self.requiresUserHandle = requiresUserHandle
        }
    }

    /// The state of a passkey after an assertion.
    public struct Verified: Sendable, Hashable {
        public let signCount: UInt32
        public let isBackedUp: Bool
        public let isUserVerified: Bool
    }

    /// Verifies the assertion (WebAuthn Level 3 §7.2). The signature is verified before any comparison with the stored
    /// state, so all comparisons take the same work.
    /// - Parameter challenge: The challenge that the server created for the assertion.
    /// - Throws: ``WebAuthnFailure/signCountDidNotGrow`` if the signature is right, and its count is not above the
    ///   stored one. Two counts of zero are accepted.
    public func verify(
        for relyingParty: RelyingParty, challenge: [UInt8], requiresUserVerification: Bool, _ expected: Expectation
    ) throws(WebAuthnFailure) -> Verified {
        try relyingParty.check(
            clientData, data, challenge: challenge, requiresUserVerification: requiresUserVerification)
        let isSigned = try isSigned(
            by: expected.key, for: relyingParty, requiresUserVerification: requiresUserVerification)
        guard userHandle == nil ? !expected.requiresUserHandle : userHandle == expected.userHandle else {
            throw .wrongUserHandle
        }
        guard isBackupEligible == expected.isBackupEligible else {
            throw .changedBackupEligibility
        }
        guard isSigned else { throw .wrongSignature }
        guard data.signCount > expected.signCount || data.signCount == 0 && expected.signCount == 0 else {
            throw .signCountDidNotGrow
        }
        return Verified(
            signCount: data.signCount, isBackedUp: data.flags.contains(.backedUp),
            isUserVerified: data.flags.contains(.userVerified))
    }

    private func isSigned(
        by key: CredentialKey, for relyingParty: RelyingParty, requiresUserVerification: Bool
    ) throws(WebAuthnFailure) -> Bool {
        Self.verifications?.add()
        let object = try AssertionObject.make(
            data: data, clientDataHash: clientData.hash, signature: signature, relyingPartyID: relyingParty.id,
            requiresUserVerification: requiresUserVerification)
        return try PublicKeyObject.make(key).verifies(object)
    }

    /// Counts the signatures that a task verifies, for tests of equal work.
    package final class Verifications: Sendable {
        private let total = Atomic(0)

        package init() {}

        package var count: Int { total.load(ordering: .relaxed) }

        fileprivate func add() { total.add(1, ordering: .relaxed) }
    }

    @TaskLocal package static var verifications: Verifications?
}

/// Owns an assertion of libfido2.
struct AssertionObject: ~Copyable {
    // Owned: freed once, by `deinit`.
    let pointer: OpaquePointer

    private init(takingOwnershipOf pointer: OpaquePointer) {
        self.pointer = pointer
    }

    /// - Parameters:
    ///   - data: The parsed authenticator data. libfido2 parses its bytes again.
    ///   - clientDataHash: SHA-256 of the client data.
    /// - Throws: ``WebAuthnFailure/wrongSignature`` if libfido2 rejects any of them.
    static func make(
        data: AuthenticatorData, clientDataHash: SHA256Digest, signature: [UInt8], relyingPartyID: String,
        requiresUserVerification: Bool
    ) throws(WebAuthnFailure) -> AssertionObject {
        guard let pointer = fido_assert_new() else { throw .wrongSignature }
        let object = AssertionObject(takingOwnershipOf: pointer)
        let (hash, bytes) = (clientDataHash.bytes, [UInt8](data.bytes))
        guard fido_assert_set_rp(pointer, relyingPartyID) == FIDO_OK,
            fido_assert_set_clientdata_hash(pointer, hash, hash.count) == FIDO_OK,
            fido_assert_set_count(pointer, 1) == FIDO_OK,
            fido_assert_set_up(pointer, FIDO_OPT_TRUE) == FIDO_OK,
            fido_assert_set_uv(pointer, requiresUserVerification ? FIDO_OPT_TRUE : FIDO_OPT_OMIT) == FIDO_OK,
            // libfido2 rejects an assertion with an unrequested output of these extensions.
            fido_assert_set_extensions(pointer, extensions(of: data)) == FIDO_OK,
            fido_assert_set_authdata_raw(pointer, 0, bytes, bytes.count) == FIDO_OK,
            fido_assert_set_sig(pointer, 0, signature, signature.count) == FIDO_OK
        else { throw .wrongSignature }
        return object
    }

    deinit {
        var pointer: OpaquePointer? = pointer
        fido_assert_free(&pointer)
    }

    private static func extensions(of data: AuthenticatorData) -> CInt {
        var mask: CInt = 0
        if data.extensions.contains("hmac-secret") { mask |= FIDO_EXT_HMAC_SECRET }
        if data.extensions.contains("credBlob") { mask |= FIDO_EXT_CRED_BLOB }
        return mask
    }
}
