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
    /// The key of the content that a printed code opens, from the code's unlock key.
    static let recoveryKey = "saltern-1 recovery key"
    /// The key between the recovery public key and an ephemeral one: followed by account, both keys and counter.
    static let recoveryBox = "saltern-1 recovery box"
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
