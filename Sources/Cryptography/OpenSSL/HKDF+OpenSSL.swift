internal import COpenSSL

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
