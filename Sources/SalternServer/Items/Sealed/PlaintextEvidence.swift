/// Distinguishes evident plaintext from ciphertext.
///
/// Ciphertext resembles uniformly random bytes, so each test has a probability of rejecting random bytes. Bytes that a
/// format prescribes are left out. The tests cover all bytes after them, and once more the ciphertext alone, so that a
/// real nonce in front of plain text hides nothing.
///
/// | Test | Random bytes fail it with probability |
/// | --- | --- |
/// | text of n bytes (``PlainText``) | at most 0.47^n |
/// | text with other bytes in it (``TextLikelihood``) | at most 10^-14 |
/// | known file formats (``FileSignature``) | below 3·10^-13 in all |
/// | one byte value too often, relative entropy (``ByteHistogram``) | below 2·10^-13 |
/// | a repeated block of 16 bytes | below 3·10^-32 |
///
/// From 38 bytes on, fewer than one payload in 10^12 is rejected wrongly: 0.47^38 + 10^-14 + 5·10^-13 < 9·10^-13.
/// RNCryptor's shortest message is longer, and under GCM 38 bytes are 10 bytes of plaintext. A ciphertext of at least
/// 40 bytes is tested twice: 0.47^40 + 2·(10^-14 + 3·10^-13) + 2·10^-13 < 10^-12.
///
/// Shorter payloads are rejected if they are text, because a whole password can have 16 bytes. For 28 bytes of GCM (an
/// empty plaintext) the probability is 6·10^-10, for 16 bytes of `opaque` 6·10^-6. Sealing again draws a new nonce and
/// passes.
enum PlaintextEvidence {
    /// The minimum length of text that is evidence.
    static let textThreshold = 16
    /// The minimum length of ciphertext that is also tested without nonce and tag: 0.47^40 < 10^-13.
    static let ciphertextThreshold = 40
    /// The maximum number of bytes that are counted and compared. More would take longer without sharper tests.
    static let sampleLimit = 65_536

    /// Returns true if sealed bytes are evidently plaintext.
    static func isFound(in sealed: [UInt8], layout: SealedFormat.Layout) -> Bool {
        sealed.withUnsafeBytes { sealed in
            let body = UnsafeRawBufferPointer(rebasing: sealed[layout.header...])
            if isTextOrFile(body, textThreshold: textThreshold) { return true }
            let ciphertext = UnsafeRawBufferPointer(
                rebasing: sealed[layout.beforeCiphertext..<(sealed.count - layout.afterCiphertext)])
            if ciphertext.count < body.count, ciphertext.count >= ciphertextThreshold,
                isTextOrFile(ciphertext, textThreshold: ciphertextThreshold)
            {
                return true
            }
            let sample = UnsafeRawBufferPointer(rebasing: ciphertext.prefix(sampleLimit))
            return RepeatedBlocks.areFound(in: sample) || ByteHistogram.isImprobable(body.prefix(sampleLimit))
        }
    }

    private static func isTextOrFile(_ bytes: UnsafeRawBufferPointer, textThreshold: Int) -> Bool {
        let sample = UnsafeRawBufferPointer(rebasing: bytes.prefix(sampleLimit))
        if bytes.count >= textThreshold, PlainText.isText(sample, isCut: sample.count < bytes.count) { return true }
        if bytes.count >= textThreshold, TextLikelihood.isFound(in: sample) { return true }
        return FileSignature.isFound(in: bytes)
    }
}
