/// Tells evident plaintext from ciphertext.
///
/// Ciphertext looks like uniformly random bytes, so each test states how often random bytes fail it. The bytes that a
/// format prescribes are left out. What is examined is everything after them, and once more the ciphertext alone, so
/// that a real nonce in front of plain text hides nothing.
///
/// | Test | Random bytes fail it with probability |
/// | --- | --- |
/// | text of n bytes (``PlainText``) | at most 0.47^n |
/// | text with anything else among it (``TextLikelihood``) | at most 10^-14 |
/// | known file formats (``FileSignature``) | below 3·10^-13 in all |
/// | one byte value too often, relative entropy (``ByteHistogram``) | below 2·10^-13 |
/// | a repeated block of 16 bytes | below 3·10^-32 |
///
/// So from 38 bytes on, which is less than RNCryptor's shortest message and 10 bytes of plaintext under GCM, less than one
/// payload in 10^12 is refused wrongly: 0.47^38 + 10^-14 + 5·10^-13 < 9·10^-13; and where the ciphertext of at least 40
/// bytes is examined once more, 0.47^40 + 2·(10^-14 + 3·10^-13) + 2·10^-13 < 10^-12. Shorter ones are refused when they are text, because a person's whole password
/// can be 16 bytes long: 28 bytes of GCM (an empty plaintext) with a probability of 6·10^-10, 16 bytes of `opaque`
/// with 6·10^-6. Sealing again draws a new nonce and passes.
enum PlaintextEvidence {
    /// The shortest text that is evidence.
    static let textThreshold = 16
    /// The shortest ciphertext that is also examined without nonce and tag: 0.47^40 < 10^-13.
    static let ciphertextThreshold = 40
    /// How much is counted and compared. More would not make the tests sharper, only slower.
    static let sampleLimit = 65_536

    /// Whether sealed bytes are evidently plaintext.
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
