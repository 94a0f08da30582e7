internal import Cryptography

/// The SHA-256 of an entry without its signature.
///
/// An entry can have many valid signatures, because ECDSA is randomised. All of them have one hash.
public struct EntryHash: Hashable, Sendable {
    /// The 32 bytes.
    public let bytes: [UInt8]

    /// Creates a hash from 32 bytes.
    /// - Returns: nil for another number of bytes.
    public init?(_ bytes: some Collection<UInt8>) {
        guard bytes.count == SHA256Digest.byteCount else { return nil }
        self.bytes = [UInt8](bytes)
    }

    /// Hashes an entry without its signature.
    init(of text: some ByteSource) { bytes = SHA256.hash(text).bytes }

    /// The predecessor of a founding entry: zeros.
    public static let none = EntryHash(unchecked: [UInt8](repeating: 0, count: SHA256Digest.byteCount))

    private init(unchecked bytes: [UInt8]) { self.bytes = bytes }

    /// Four words with the first 44 bits. People compare those of the entry by which a member joined.
    public var words: [String] { CodeWords.words(in: bytes, count: 4) }
}

/// Number and hash of an entry. The hash covers all entries before it.
public struct Head: Hashable, Sendable {
    /// The number.
    public let number: EntryNumber
    /// The hash.
    public let hash: EntryHash

    static let byteCount = 40

    /// Creates a head.
    public init(number: EntryNumber, hash: EntryHash) {
        self.number = number
        self.hash = hash
    }

    /// Number (8) ‖ hash (32).
    public var bytes: [UInt8] { number.bytes + hash.bytes }

    /// Twelve words, 132 bits: members compare them by voice. Nobody can find two logs with the same ones.
    public func words(of vault: VaultID) -> [String] {
        CodeWords.words(in: SHA256.hash(VaultLabel.head.text(vault.bytes, bytes)).bytes, count: 12)
    }
}
