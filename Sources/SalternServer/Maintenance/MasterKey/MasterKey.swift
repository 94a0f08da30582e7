public import Cryptography
public import HTTPCore

/// The secret of an installation that is not in its database: it seals what the database must keep secret, and further
/// keys are derived from it.
///
/// It is one key or several. The first is active: it seals. The others open what was sealed before a rotation.
public struct MasterKey: Sendable {
    /// The size of a key, in bytes.
    public static let keyByteCount = 32
    /// More than anybody rotates through; keeps a wrong file from being taken for keys.
    public static let maximumKeys = 16

    /// One of the keys.
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

    /// Every key, the active one first.
    var keys: [Key] { [active] + older }

    /// What the keys are called, the active one first.
    public var ids: [MasterKeyID] { keys.map(\.id) }

    init(active: Key, older: [Key]) {
        self.active = active
        self.older = older
    }

    /// A new key, and no older one.
    public static func random() -> MasterKey {
        MasterKey(active: Key(SecureRandom.secureBytes(keyByteCount)), older: [])
    }

    /// A key for one purpose, which `label` names, derived from each of the keys by HMAC-SHA256, that of the active key
    /// first: authenticate with the first, verify with any, so that a rotation takes nothing away from anybody.
    ///
    /// Labels are constants of this program, and each is used for one thing.
    public func subkeys(_ label: String) -> [HMACSHA256.Key] {
        keys.map { HMACSHA256.Key(Self.derived("saltern/key/" + label, from: $0)) }
    }

    /// The key with which AES-GCM seals: the master key itself is an HMAC key and nothing else.
    static func sealingKey(of key: Key) -> SecureBytes { derived("saltern/seal", from: key) }

    private static func derived(_ label: String, from key: Key) -> SecureBytes {
        SecureBytes(copying: HMACSHA256.authenticationCode(for: label.utf8, using: key.secret))
    }
}

extension MasterKey {
    /// This one with a new active key in front; all of the others stay.
    /// - Throws: ``MasterKeyError/tooManyKeys`` when there is no room.
    public func rotated() throws(MasterKeyError) -> MasterKey {
        guard keys.count < Self.maximumKeys else { throw .tooManyKeys }
        return MasterKey(active: Self.random().active, older: keys)
    }

    /// This one without the older keys of these names. The active one stays.
    public func removing(_ ids: Set<MasterKeyID>) -> MasterKey {
        MasterKey(active: active, older: older.filter { !ids.contains($0.id) })
    }
}

/// The short name of a key: the first four bytes of its SHA-256, from which nobody learns anything of 32 random bytes.
public struct MasterKeyID: Hashable, Sendable, CustomStringConvertible {
    /// The size, in bytes.
    static let byteCount = 4

    let bytes: [UInt8]

    init(of secret: SecureBytes) {
        bytes = Array(SHA256.hash(secret).bytes.prefix(Self.byteCount))
    }

    /// Takes four bytes.
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

/// Why a master key cannot be read or used.
public enum MasterKeyError: Error, Hashable, Sendable {
    /// The text has no key.
    case noKey
    /// A line, counted from 1, is not base64 of 32 bytes.
    case invalidLine(Int)
    /// The key of a line, counted from 1, stands above already.
    case repeatedKey(line: Int)
    /// More keys than ``MasterKey/maximumKeys``.
    case tooManyKeys
    /// Something was sealed with a key that is not among the keys.
    case unknownKey(MasterKeyID)
    /// What should be sealed is not, was changed, or belongs elsewhere.
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
