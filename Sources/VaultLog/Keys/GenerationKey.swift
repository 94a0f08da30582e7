public import Cryptography

/// The data key of a generation: 32 random bytes from which the keys of items, names and chunks are derived.
public struct GenerationKey: Sendable, Equatable {
    /// The size of a key, in bytes.
    public static let byteCount = 32

    /// The key.
    public let bytes: SecureBytes
    /// The id, which is that of a data key of an account.
    public let id: VaultKeyID

    /// The label of ids. Items of accounts have it too, without a zero at its end.
    private static let idLabel = "saltern-1 key id"

    /// Creates a key from 32 bytes.
    /// - Returns: nil for another number of bytes.
    public init?(_ bytes: SecureBytes) {
        guard bytes.count == Self.byteCount else { return nil }
        let id = HKDF.deriveKey(from: bytes, info: Self.idLabel.utf8, byteCount: VaultKeyID.byteCount)
        guard let id = VaultKeyID(id.withUnsafeBytes { [UInt8]($0) }) else { return nil }
        self.bytes = bytes
        self.id = id
    }

    /// Draws a key whose id no generation of the vault has.
    public static func random(for log: MembershipLog? = nil) -> GenerationKey {
        while true {
            guard let key = GenerationKey(SecureRandom.secureBytes(byteCount)) else {
                preconditionFailure("32 bytes are a key")
            }
            if log?.generation(withKey: key.id) == nil { return key }
        }
    }

    /// Compares in constant time.
    public static func == (left: GenerationKey, right: GenerationKey) -> Bool { left.bytes == right.bytes }

    func commitment(_ number: GenerationNumber) -> [UInt8] {
        HMACSHA256.authenticationCode(for: VaultLabel.generation.text(number.bytes), using: bytes).bytes
    }

    /// The key from which the ids of chunks are derived whose manifest names this generation.
    public var chunkIDKey: SecureBytes { VaultLabel.chunkID.derive(bytes) }

    // MARK: The previous key

    /// The size of a sealed previous key.
    public static let sealedPreviousByteCount = 12 + byteCount + AESGCM.tagByteCount

    /// Seals the key of the generation before for the holders of this one: nonce (12) ‖ ciphertext (32) ‖ tag (16).
    /// - Parameter number: The number of this generation.
    public func sealPrevious(
        _ previous: GenerationKey, of vault: VaultID, number: GenerationNumber
    ) throws(AESGCM.Failure) -> [UInt8] {
        try sealPrevious(previous, of: vault, number: number, nonce: SecureRandom.bytes(12))
    }

    /// Seals with the caller's nonce. Only for test vectors.
    func sealPrevious(
        _ previous: GenerationKey, of vault: VaultID, number: GenerationNumber, nonce: [UInt8]
    ) throws(AESGCM.Failure) -> [UInt8] {
        let key = VaultLabel.previousKey.derive(bytes, vault.bytes, number.bytes)
        return try AESGCM.seal(previous.bytes, using: key, uniqueNonce: nonce)
    }

    /// Opens the key of the generation before.
    /// - Returns: nil unless it is the key that `generation` describes.
    public func openPrevious(_ sealed: [UInt8], of vault: VaultID, _ generation: Generation) -> GenerationKey? {
        guard let number = generation.number.next else { return nil }
        let key = VaultLabel.previousKey.derive(bytes, vault.bytes, number.bytes)
        guard let opened = try? AESGCM.open(sealed, using: key), let previous = GenerationKey(opened),
            generation.describes(previous)
        else { return nil }
        return previous
    }
}
