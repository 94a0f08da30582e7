internal import COpenSSL

extension PBKDF2 {
    /// Fills `key`. Each length fits in 31 bits.
    static func derive(
        _ key: UnsafeMutableRawBufferPointer, from password: UnsafeRawBufferPointer, salt: UnsafeRawBufferPointer,
        _ digest: HMACDigest, rounds: Int32
    ) throws(Failure) {
        let function =
            switch digest {
            case .sha1: FetchedAlgorithm.sha1
            case .sha256: FetchedAlgorithm.sha256
            }
        let status = PKCS5_PBKDF2_HMAC(
            password.baseAddress?.assumingMemoryBound(to: CChar.self), Int32(password.count),
            salt.baseAddress?.assumingMemoryBound(to: UInt8.self), Int32(salt.count), rounds, function.pointer,
            Int32(key.count), key.baseAddress?.assumingMemoryBound(to: UInt8.self))
        guard status == 1 else { throw .library(LibraryError(draining: "derive a key with PBKDF2")) }
    }
}

extension HKDF {
    static func derive(
        _ output: UnsafeMutableRawBufferPointer, from key: UnsafeRawBufferPointer, salt: UnsafeRawBufferPointer,
        info: UnsafeRawBufferPointer
    ) {
        let context = requireAllocated(EVP_KDF_CTX_new(FetchedAlgorithm.hkdf.pointer), "allocate HKDF")
        defer { EVP_KDF_CTX_free(context) }
        let status = saltern_EVP_KDF_derive_HKDF(
            context, key.baseAddress, key.count, salt.baseAddress, salt.count, info.baseAddress, info.count,
            output.baseAddress?.assumingMemoryBound(to: UInt8.self), output.count)
        requireSuccess(status, "derive a key with HKDF")
    }
}
