internal import CFIDO2
internal import Cryptography

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
