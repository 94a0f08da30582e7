public import Cryptography

/// The key of a generation, sealed for one member:
///
///     ephemeral public key (65) ‖ ciphertext (32) ‖ tag (16)
///
/// The key is `HKDF(ECDH, label ‖ vault ‖ generation's number ‖ member ‖ ephemeral ‖ agreement key)` and seals once, so
/// the nonce is zeros. Any manager can make a lost box again: it is right when the key fits the commitment in the log.
public enum GenerationBox {
    /// The size of a box.
    public static let byteCount = P256.PublicKey.byteCount + GenerationKey.byteCount + AESGCM.tagByteCount

    private static let nonce = [UInt8](repeating: 0, count: 12)

    /// The reason for which there is no box.
    public enum Failure: Error, Hashable, Sendable {
        /// The platform's library failed.
        case library
        /// The box was not made for this member and generation, or was changed.
        case notAuthentic
        /// The box contains another key than the log names. Its author is dishonest, or its device is defective.
        case wrongKey
    }

    /// Seals a key for a member.
    public static func seal(
        _ key: GenerationKey, _ number: GenerationNumber, for member: MemberID, _ agreementKey: P256.PublicKey,
        of vault: VaultID
    ) throws(Failure) -> [UInt8] {
        guard let ephemeral = try? P256.PrivateKey.generate() else { throw .library }
        return try seal(key, number, for: member, agreementKey, of: vault, ephemeral: ephemeral)
    }

    /// Seals with the caller's ephemeral key. Only for test vectors: a key that is used twice reveals both contents.
    static func seal(
        _ key: GenerationKey, _ number: GenerationNumber, for member: MemberID, _ agreementKey: P256.PublicKey,
        of vault: VaultID, ephemeral: P256.PrivateKey
    ) throws(Failure) -> [UInt8] {
        guard let secret = try? ephemeral.sharedSecret(with: agreementKey) else { throw .library }
        let boxKey = Self.key(secret, vault, number, member, ephemeral.publicKey, agreementKey)
        guard let sealed = try? AESGCM.seal(key.bytes, using: boxKey, uniqueNonce: nonce) else { throw .library }
        return ephemeral.publicKey.bytes + sealed.dropFirst(nonce.count)
    }

    /// Opens a member's box.
    public static func open(
        _ box: [UInt8], _ generation: Generation, for member: MemberID, _ keys: MemberPrivateKeys, of vault: VaultID
    ) throws(Failure) -> GenerationKey {
        guard box.count == byteCount,
            let ephemeral = try? P256.PublicKey(Array(box.prefix(P256.PublicKey.byteCount))),
            let secret = try? keys.agreement.sharedSecret(with: ephemeral)
        else { throw .notAuthentic }
        let boxKey = key(secret, vault, generation.number, member, ephemeral, keys.publicKeys.agreement)
        let sealed = nonce + box.dropFirst(P256.PublicKey.byteCount)
        guard let opened = try? AESGCM.open(sealed, using: boxKey), let key = GenerationKey(opened) else {
            throw .notAuthentic
        }
        guard generation.describes(key) else { throw .wrongKey }
        return key
    }

    private static func key(
        _ secret: SecureBytes, _ vault: VaultID, _ number: GenerationNumber, _ member: MemberID,
        _ ephemeral: P256.PublicKey, _ recipient: P256.PublicKey
    ) -> SecureBytes {
        VaultLabel.box.derive(
            secret, vault.bytes, number.bytes, member.bytes, ephemeral.bytes, recipient.bytes)
    }
}
