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
