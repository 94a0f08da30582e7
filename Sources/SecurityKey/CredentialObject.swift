internal import CFIDO2
internal import Cryptography
internal import SalternClient

/// Owns a credential of libfido2: the request for a passkey, and the new passkey.
struct CredentialObject: ~Copyable {
    // Owned: freed once, by `deinit`.
    let pointer: OpaquePointer
    /// The signature algorithm in COSE.
    let algorithm: CInt

    private init(takingOwnershipOf pointer: OpaquePointer, algorithm: CInt) {
        self.pointer = pointer
        self.algorithm = algorithm
    }

    deinit {
        var pointer: OpaquePointer? = pointer
        fido_cred_free(&pointer)
    }

    /// - Parameter isResident: True for a passkey that is found without its credential id.
    static func make(
        _ options: PasskeyCreationOptions, _ clientData: [UInt8], isResident: Bool
    ) throws(PasskeyError) -> CredentialObject {
        let algorithms = [COSE_ES256, COSE_EDDSA]
        guard let algorithm = algorithms.first(where: { options.pubKeyCredParams.map(\.alg).contains(Int($0)) }),
            let pointer = fido_cred_new()
        else { throw .failed }
        let object = CredentialObject(takingOwnershipOf: pointer, algorithm: algorithm)
        let (user, hash) = (options.user.id.bytes, SHA256.hash(clientData).bytes)
        try check(fido_cred_set_type(pointer, algorithm))
        try check(fido_cred_set_clientdata_hash(pointer, hash, hash.count))
        try check(fido_cred_set_rp(pointer, options.rp.id, options.rp.name))
        try check(fido_cred_set_user(pointer, user, user.count, options.user.name, options.user.name, nil))
        try check(fido_cred_set_rk(pointer, isResident ? FIDO_OPT_TRUE : FIDO_OPT_OMIT))
        try check(fido_cred_set_extensions(pointer, FIDO_EXT_HMAC_SECRET))
        for excluded in options.excludeCredentials {
            try check(fido_cred_exclude(pointer, excluded.id.bytes, excluded.id.bytes.count))
        }
        return object
    }

    /// Has the key verify its user without a PIN.
    func setVerification(_ isBuiltIn: Bool) throws(PasskeyError) {
        if isBuiltIn { try check(fido_cred_set_uv(pointer, FIDO_OPT_TRUE)) }
    }

    var id: [UInt8] { Self.bytes(fido_cred_id_ptr(pointer), fido_cred_id_len(pointer)) }

    /// The attestation object of format `none` (WebAuthn Level 3 §8.7). The key's own statement is left out, because it
    /// can identify the key.
    var attestationObject: [UInt8] {
        let data = Self.bytes(fido_cred_authdata_raw_ptr(pointer), fido_cred_authdata_raw_len(pointer))
        var object: [UInt8] = [0xA3, 0x63] + Array("fmt".utf8) + [0x64] + Array("none".utf8)
        object += [0x67] + Array("attStmt".utf8) + [0xA0, 0x68] + Array("authData".utf8)
        // Authenticator data with a credential is longer than 255 bytes or not; two bytes of length hold both.
        let count = UInt16(truncatingIfNeeded: data.count)
        return object
            + (count > 255 ? [0x59, UInt8(count >> 8), UInt8(count & 0xFF)] : [0x58, UInt8(count)]) + data
    }

    /// Copies bytes of libfido2.
    static func bytes(_ start: UnsafePointer<UInt8>?, _ count: Int) -> [UInt8] {
        Array(UnsafeBufferPointer(start: start, count: start == nil ? 0 : count))
    }
}
