internal import Cryptography

/// The number of a data key of a vault, from 1.
public struct GenerationNumber: Hashable, Comparable, Sendable {
    /// The number of the founder's key.
    public static let first = GenerationNumber(unchecked: 1)

    /// The number.
    public let value: UInt64

    /// Creates a number.
    /// - Returns: nil for 0, and for numbers that exceed the entries of a log.
    public init?(_ value: UInt64) {
        guard (1...EntryNumber.limit).contains(value) else { return nil }
        self.value = value
    }

    private init(unchecked value: UInt64) { self.value = value }

    /// The next number, or nil at the limit.
    public var next: GenerationNumber? { GenerationNumber(value + 1) }

    public static func < (left: GenerationNumber, right: GenerationNumber) -> Bool { left.value < right.value }

    /// The number as 8 bytes.
    var bytes: [UInt8] { value.bigEndianBytes }
}

/// The four bytes by which sealed items name their data key.
public struct VaultKeyID: Hashable, Sendable {
    /// The four bytes.
    public let bytes: [UInt8]

    static let byteCount = 4

    /// Creates an id from four bytes.
    /// - Returns: nil for another number of bytes.
    public init?(_ bytes: some Collection<UInt8>) {
        guard bytes.count == Self.byteCount else { return nil }
        self.bytes = [UInt8](bytes)
    }
}

/// The public description of a data key, which an entry contains.
public struct Generation: Hashable, Sendable {
    /// The number.
    public let number: GenerationNumber
    /// The id of the key. Items that are written now have it.
    public let keyID: VaultKeyID
    /// HMAC-SHA256(key, label ‖ number): no other key has it.
    public let commitment: [UInt8]

    static let byteCount = 44
    private static let commitmentCount = 32

    /// Describes a key as a generation.
    public init(_ key: GenerationKey, number: GenerationNumber) {
        self.number = number
        keyID = key.id
        commitment = key.commitment(number)
    }

    /// Returns true for the key that this generation describes.
    public func describes(_ key: GenerationKey) -> Bool {
        keyID == key.id && constantTimeEquals(commitment, key.commitment(number))
    }

    /// Number (8) ‖ key id (4) ‖ commitment (32).
    var bytes: [UInt8] { number.bytes + keyID.bytes + commitment }

    init?(_ reader: inout ByteReader) {
        guard let number = reader.number(UInt64.self).flatMap({ GenerationNumber($0) }),
            let keyID = reader.take(VaultKeyID.byteCount).flatMap({ VaultKeyID($0) }),
            let commitment = reader.take(Self.commitmentCount)
        else { return nil }
        self.number = number
        self.keyID = keyID
        self.commitment = commitment
    }
}
