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

/// All labels of key derivation and authentication. Each has one purpose and never changes, because sealed content must
/// remain readable. docs/protocol.md has vectors.
enum SealingLabels {
    /// The beginning of the additional data of the format ``SealedBox``.
    static let box = "saltern-1"
    /// The key of one part of one item, followed by the part and the item's id.
    static let itemKey = "saltern-1 item key"
    /// The four bytes by which a sealed box names its data key.
    static let keyID = "saltern-1 key id"
    /// The key of the keyring, from a password's unlock key.
    static let keyringKey = "saltern-1 keyring key"
    /// The mark of the userid in a sealed keyring, followed by the userid.
    static let userid = "saltern-1 userid"
    /// The key of the content that a printed code opens, from the code's unlock key.
    static let recoveryKey = "saltern-1 recovery key"
    /// The key between the recovery public key and an ephemeral one: followed by account, both keys and counter.
    static let recoveryBox = "saltern-1 recovery box"
    /// The input of a passkey's pseudo-random function.
    static let passkeyInput = "saltern-1 passkey"
    /// The key of a passkey's private half, from the output of that function: followed by account and credential id.
    static let passkeyKey = "saltern-1 passkey key"
    /// The key between a passkey's public key and an ephemeral one: followed by account, both keys and counter.
    static let passkeyBox = "saltern-1 passkey box"
    /// The key from which ids of chunks are derived.
    static let chunkID = "saltern-1 chunk id"
    /// The key from which ids of imported copies of documents are derived.
    static let documentID = "saltern-1 document id"
    /// The key of the stored record of a password change before it is sent, from the present unlock key. It stays on
    /// the device.
    static let unconfirmedChange = "saltern-1 unconfirmed change"
    /// The digest by which a device recognises the password. It stays on the device.
    static let passwordDigest = "saltern-1 password digest"
    /// The digest of a keyring's content. It stays on the device.
    static let keyringDigest = "saltern-1 keyring digest"
    /// The digest of a retired data key. It stays on the device.
    static let retiredKey = "saltern-1 retired key"
}
