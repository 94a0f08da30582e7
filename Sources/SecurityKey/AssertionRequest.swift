internal import CFIDO2
internal import Cryptography
internal import SalternClient

/// Owns an assertion of libfido2: the request, and the answer of the key.
struct AssertionRequest: ~Copyable {
    // Owned: freed once, by `deinit`.
    let pointer: OpaquePointer

    private init(takingOwnershipOf pointer: OpaquePointer) { self.pointer = pointer }

    deinit {
        var pointer: OpaquePointer? = pointer
        fido_assert_free(&pointer)
    }

    /// - Parameter salt: The input of hmac-secret, 32 bytes; nil for no output.
    static func make(
        _ options: PasskeyRequestOptions, _ clientData: [UInt8], salt: [UInt8]?
    ) throws(PasskeyError) -> AssertionRequest {
        guard let pointer = fido_assert_new() else { throw .failed }
        let object = AssertionRequest(takingOwnershipOf: pointer)
        let hash = SHA256.hash(clientData).bytes
        try check(fido_assert_set_clientdata_hash(pointer, hash, hash.count))
        try check(fido_assert_set_rp(pointer, options.rpId))
        for allowed in options.allowCredentials {
            try check(fido_assert_allow_cred(pointer, allowed.id.bytes, allowed.id.bytes.count))
        }
        if let salt {
            try check(fido_assert_set_extensions(pointer, FIDO_EXT_HMAC_SECRET))
            try check(fido_assert_set_hmac_salt(pointer, salt, salt.count))
        }
        return object
    }

    /// Has the key verify its user without a PIN.
    func setVerification(_ isBuiltIn: Bool) throws(PasskeyError) {
        if isBuiltIn { try check(fido_assert_set_uv(pointer, FIDO_OPT_TRUE)) }
    }

    private static func bytes(_ start: UnsafePointer<UInt8>?, _ count: Int) -> [UInt8] {
        CredentialObject.bytes(start, count)
    }

    /// The credential id. A key may omit the only permitted one.
    var id: [UInt8]? {
        let id = Self.bytes(fido_assert_id_ptr(pointer, 0), fido_assert_id_len(pointer, 0))
        return id.isEmpty ? nil : id
    }

    var signature: [UInt8] { Self.bytes(fido_assert_sig_ptr(pointer, 0), fido_assert_sig_len(pointer, 0)) }

    var userHandle: [UInt8]? {
        let user = Self.bytes(fido_assert_user_id_ptr(pointer, 0), fido_assert_user_id_len(pointer, 0))
        return user.isEmpty ? nil : user
    }

    /// The output of hmac-secret; nil for a passkey without.
    var output: SecretBytes? {
        guard let start = fido_assert_hmac_secret_ptr(pointer, 0) else { return nil }
        let bytes = UnsafeRawBufferPointer(start: start, count: fido_assert_hmac_secret_len(pointer, 0))
        return SecretBytes(SecureBytes(copying: bytes))
    }

    /// libfido2 has them as a byte string of CBOR.
    var authenticatorData: [UInt8] {
        get throws(PasskeyError) {
            try ClientData.content(
                ofByteString: Self.bytes(
                    fido_assert_authdata_ptr(pointer, 0), fido_assert_authdata_len(pointer, 0)))
        }
    }
}
