internal import COpenSSL

extension AESGCM {
    /// Writes the ciphertext, which is as long as the plaintext, and the tag.
    static func encrypt(
        _ plaintext: UnsafeRawBufferPointer, using key: SecureBytes, nonce: RawSpan,
        authenticating authenticatedData: UnsafeRawBufferPointer, into ciphertext: UnsafeMutableRawBufferPointer,
        tag: UnsafeMutableRawBufferPointer
    ) throws(Failure) {
        let cipher = AESGCMCipher()
        try cipher.begin(.seal, key: key, nonce: nonce)
        try cipher.authenticate(authenticatedData)
        try cipher.process(plaintext, into: ciphertext)
        try cipher.finishSealing(tag: tag)
    }

    /// Writes the plaintext, which is invalid when this throws.
    static func decrypt(
        _ ciphertext: UnsafeRawBufferPointer, tag: UnsafeRawBufferPointer, using key: SecureBytes, nonce: RawSpan,
        authenticating authenticatedData: UnsafeRawBufferPointer, into plaintext: UnsafeMutableRawBufferPointer
    ) throws(Failure) {
        let cipher = AESGCMCipher()
        try cipher.begin(.open, key: key, nonce: nonce)
        try cipher.authenticate(authenticatedData)
        try cipher.process(ciphertext, into: plaintext)
        try cipher.finishOpening(tag: tag)
    }
}

/// Owns one `EVP_CIPHER_CTX *` for one message.
struct AESGCMCipher: ~Copyable {
    /// The operation of the cipher.
    enum Direction: Int32 {
        case open = 0
        case seal = 1
    }

    private let context: OpaquePointer

    init() {
        context = requireAllocated(EVP_CIPHER_CTX_new(), "allocate AES-GCM")
    }

    deinit { EVP_CIPHER_CTX_free(context) }

    /// Sets key and nonce, after a check of their lengths. This is the first call.
    borrowing func begin(_ direction: Direction, key: SecureBytes, nonce: RawSpan) throws(AESGCM.Failure) {
        let cipher = FetchedAlgorithm.aes256GCM.pointer
        // OpenSSL requires this order: cipher, length of the nonce, nonce.
        guard EVP_CipherInit_ex2(context, cipher, nil, nil, direction.rawValue, nil) == 1,
            saltern_EVP_CIPHER_CTX_set_iv_length(context, Int32(nonce.byteCount)) == 1
        else { throw .library(OpenSSLError(draining: "set up AES-GCM")) }
        let status = key.withUnsafeBytes { key in
            nonce.withUnsafeBytes { nonce in
                EVP_CipherInit_ex2(
                    context, nil, key.baseAddress?.assumingMemoryBound(to: UInt8.self),
                    nonce.baseAddress?.assumingMemoryBound(to: UInt8.self), direction.rawValue, nil)
            }
        }
        guard status == 1 else { throw .library(OpenSSLError(draining: "set the key of AES-GCM")) }
    }

    borrowing func authenticate(_ data: UnsafeRawBufferPointer) throws(AESGCM.Failure) {
        guard let base = data.baseAddress, !data.isEmpty else { return }
        guard let length = Int32(exactly: data.count) else { throw .wrongLength }
        var written: Int32 = 0
        guard EVP_CipherUpdate(context, nil, &written, base.assumingMemoryBound(to: UInt8.self), length) == 1 else {
            throw .library(OpenSSLError(draining: "authenticate data with AES-GCM"))
        }
    }

    borrowing func process(
        _ input: UnsafeRawBufferPointer, into output: UnsafeMutableRawBufferPointer
    ) throws(AESGCM.Failure) {
        guard let source = input.baseAddress, let target = output.baseAddress, !input.isEmpty else { return }
        guard let length = Int32(exactly: input.count), output.count >= input.count else { throw .wrongLength }
        var written: Int32 = 0
        let status = EVP_CipherUpdate(
            context, target.assumingMemoryBound(to: UInt8.self), &written,
            source.assumingMemoryBound(to: UInt8.self), length)
        guard status == 1, written == length else { throw .library(OpenSSLError(draining: "AES-GCM")) }
    }

    borrowing func finishSealing(tag: UnsafeMutableRawBufferPointer) throws(AESGCM.Failure) {
        var written: Int32 = 0
        var unused: UInt8 = 0
        guard EVP_CipherFinal_ex(context, &unused, &written) == 1,
            saltern_EVP_CIPHER_CTX_get_tag(context, Int32(tag.count), tag.baseAddress) == 1
        else { throw .library(OpenSSLError(draining: "finish AES-GCM")) }
    }

    borrowing func finishOpening(tag: UnsafeRawBufferPointer) throws(AESGCM.Failure) {
        guard saltern_EVP_CIPHER_CTX_set_tag(context, Int32(tag.count), tag.baseAddress) == 1 else {
            throw .library(OpenSSLError(draining: "set the tag of AES-GCM"))
        }
        var written: Int32 = 0
        var unused: UInt8 = 0
        guard EVP_CipherFinal_ex(context, &unused, &written) == 1 else {
            OpenSSLError.clearQueue()
            throw .authenticationFailed
        }
    }
}
