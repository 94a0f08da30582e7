public import Cryptography
public import HTTPCore

/// The secret of an installation outside its database. It seals secrets in the database, and further keys are derived
/// from it.
///
/// It consists of one or more keys. The first one is active and seals. The others open values from before a rotation.
public struct MasterKey: Sendable {
    /// The size of a key in bytes.
    public static let keyByteCount = 32
    /// The maximum number of keys, to reject wrong files.
    public static let maximumKeys = 16

    /// One key with its id.
    struct Key: Sendable {
        let id: MasterKeyID
        let secret: SecureBytes

        /// - Parameter secret: 32 random bytes.
        init(_ secret: SecureBytes) {
            id = MasterKeyID(of: secret)
            self.secret = secret
        }
    }

    let active: Key
    let older: [Key]

    /// All keys, the active one first.
    var keys: [Key] { [active] + older }

    /// The ids of all keys, the active one first.
    public var ids: [MasterKeyID] { keys.map(\.id) }

    init(active: Key, older: [Key]) {
        self.active = active
        self.older = older
    }

    /// Draws a new key, without older ones.
    public static func random() -> MasterKey {
        MasterKey(active: Key(SecureRandom.secureBytes(keyByteCount)), older: [])
    }

    /// Derives a key for the purpose `label` from each key by HMAC-SHA256, that of the active key first. Authenticate
    /// with the first and verify with any, so that values from before a rotation stay valid.
    ///
    /// Labels are constants of this program, each for one purpose.
    public func subkeys(_ label: String) -> [HMACSHA256.Key] {
        keys.map { HMACSHA256.Key(Self.derived("saltern/key/" + label, from: $0)) }
    }

    /// Derives the key for AES-GCM. The master key itself serves only as an HMAC key.
    static func sealingKey(of key: Key) -> SecureBytes { derived("saltern/seal", from: key) }

    private static func derived(_ label: String, from key: Key) -> SecureBytes {
        SecureBytes(copying: HMACSHA256.authenticationCode(for: label.utf8, using: key.secret))
    }
}

extension MasterKey {
    /// Returns the keys with a new active one in front.
    ///
    /// - Throws: ``MasterKeyError/tooManyKeys`` if there are too many.
    public func rotated() throws(MasterKeyError) -> MasterKey {
        guard keys.count < Self.maximumKeys else { throw .tooManyKeys }
        return MasterKey(active: Self.random().active, older: keys)
    }

    /// Returns the keys without older ones of these ids. The active one stays.
    public func removing(_ ids: Set<MasterKeyID>) -> MasterKey {
        MasterKey(active: active, older: older.filter { !ids.contains($0.id) })
    }
}

/// The short name of a key: the first four bytes of its SHA-256, which reveal nothing about 32 random bytes.
public struct MasterKeyID: Hashable, Sendable, CustomStringConvertible {
    /// The size in bytes.
    static let byteCount = 4

    let bytes: [UInt8]

    init(of secret: SecureBytes) {
        bytes = Array(SHA256.hash(secret).bytes.prefix(Self.byteCount))
    }

    /// Accepts four bytes.
    init?(_ bytes: some Collection<UInt8>) {
        guard bytes.count == Self.byteCount else { return nil }
        self.bytes = Array(bytes)
    }

    /// Eight hexadecimal digits.
    public var description: String { Hex.encode(bytes) }
}

extension MasterKeyID: LogValue {
    public func writeLogValue(to writer: inout JSONWriter) { writer.string(description) }
}

/// Reasons to reject a master key or a sealed value.
public enum MasterKeyError: Error, Hashable, Sendable {
    /// The text has no key.
    case noKey
    /// A line, counted from 1, is not base64 of 32 bytes.
    case invalidLine(Int)
    /// The key of a line, counted from 1, repeats an earlier one.
    case repeatedKey(line: Int)
    /// There are more keys than ``MasterKey/maximumKeys``.
    case tooManyKeys
    /// A value was sealed with a key that is missing.
    case unknownKey(MasterKeyID)
    /// A value is not sealed, was changed, or belongs to another context.
    case notAuthentic
}

extension MasterKeyError: CustomStringConvertible {
    public var description: String {
        switch self {
        case .noKey: "there is no key in it"
        case .invalidLine(let line): "line \(line) is not base64 of \(MasterKey.keyByteCount) bytes"
        case .repeatedKey(let line): "the key of line \(line) stands there twice"
        case .tooManyKeys: "it has \(MasterKey.maximumKeys) keys already: remove those that nothing needs any more"
        case .unknownKey(let id): "it was sealed with the master key \(id), which is not in the file"
        case .notAuthentic: "it was not sealed with a master key for this place, or it was changed"
        }
    }
}
