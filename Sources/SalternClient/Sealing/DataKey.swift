public import Cryptography

/// A random key of 32 bytes from which the keys of items are derived. It never seals an item directly.
public struct DataKey: Sendable {
    /// The id of the data key that a sealed box contains. It is derived from the key, so keys that two devices create
    /// at the same time have different ids.
    public struct ID: Hashable, Sendable {
        let bytes: [UInt8]

        init?(bytes: some Collection<UInt8>) {
            guard bytes.count == 4 else { return nil }
            self.bytes = [UInt8](bytes)
        }

        fileprivate init(of key: SecureBytes) {
            bytes = HKDF.deriveKey(from: key, info: SealingLabels.keyID.utf8, byteCount: 4).withUnsafeBytes {
                [UInt8]($0)
            }
        }
    }

    /// The size of a key, in bytes.
    public static let byteCount = 32

    let bytes: SecureBytes
    /// The key's id.
    public let id: ID

    /// Generates a key.
    public static func random() -> DataKey { DataKey(unchecked: SecureRandom.secureBytes(byteCount)) }

    /// Creates a key from 32 bytes.
    /// - Returns: nil for another number of bytes.
    public init?(_ bytes: SecureBytes) {
        guard bytes.count == Self.byteCount else { return nil }
        self.init(unchecked: bytes)
    }

    private init(unchecked bytes: SecureBytes) {
        self.bytes = bytes
        id = ID(of: bytes)
    }

    /// Returns the key of one part of one item.
    func itemKey(_ place: SealedBox.Place) -> SecureBytes {
        HKDF.deriveKey(
            from: bytes, info: Array(SealingLabels.itemKey.utf8) + [place.part.rawValue] + place.item.bytes)
    }
}

extension DataKey: Equatable {
    /// Compares in constant time.
    public static func == (left: DataKey, right: DataKey) -> Bool { left.bytes == right.bytes }
}
