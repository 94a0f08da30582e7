public import Cryptography
public import HTTPCore
internal import Postgres

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
    private static func sealingKey(of key: Key) -> SecureBytes { derived("saltern/seal", from: key) }

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

    /// Returns the keys with those of these ids of `former` as the oldest ones, where they are missing.
    ///
    /// - Throws: ``MasterKeyError/tooManyKeys`` if there are too many.
    public func restoring(_ ids: Set<MasterKeyID>, of former: MasterKey) throws(MasterKeyError) -> MasterKey {
        let missing = former.keys.filter { ids.contains($0.id) && !self.ids.contains($0.id) }
        guard keys.count + missing.count <= Self.maximumKeys else { throw .tooManyKeys }
        return MasterKey(active: active, older: older + missing)
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
        case .noKey: "it contains no key"
        case .invalidLine(let line): "line \(line) is not base64 of \(MasterKey.keyByteCount) bytes"
        case .repeatedKey(let line): "line \(line) repeats a key"
        case .tooManyKeys: "it has \(MasterKey.maximumKeys) keys already: remove unused keys"
        case .unknownKey(let id): "it was sealed with the master key \(id), which is not in the file"
        case .notAuthentic: "it was not sealed with a master key for this purpose, or it was changed"
        }
    }
}

/// The context of a sealed secret. It opens in no other, so that writers to the database cannot move it.
struct SealedPlace: Sendable {
    let authenticatedData: [UInt8]

    /// The context of an account's secret of one-time passwords.
    static func oneTimePasswords(of account: AccountID) -> SealedPlace {
        SealedPlace(authenticatedData: Array("saltern/one-time-passwords/".utf8) + account.uuid.bytes)
    }

    /// The key of the names for audiences.
    static let pairwiseKey = SealedPlace(authenticatedData: Array("saltern/pairwise-key".utf8))
}

extension MasterKey {
    /// The first byte of sealed values: the format of the rest.
    private static let form: UInt8 = 1
    private static let headerByteCount = 1 + MasterKeyID.byteCount

    /// Seals a secret for one context with the active key.
    ///
    /// - Returns: The format, the key's id, and `nonce || ciphertext || tag` of AES-256-GCM; 33 bytes more than
    ///   `secret`.
    func seal(_ secret: some ByteSource, for place: SealedPlace) throws(AESGCM.Failure) -> [UInt8] {
        let header = [Self.form] + active.id.bytes
        return header
            + (try AESGCM.seal(
                secret, using: Self.sealingKey(of: active), authenticating: place.authenticatedData + header))
    }

    /// Opens the result of ``seal(_:for:)`` for the same context with any of the keys.
    func open(_ sealed: [UInt8], for place: SealedPlace) throws(MasterKeyError) -> SecureBytes {
        let id = try Self.id(ofKeyThatSealed: sealed)
        guard let key = keys.first(where: { $0.id == id }) else { throw .unknownKey(id) }
        let header = sealed[..<Self.headerByteCount]
        do throws(AESGCM.Failure) {
            return try AESGCM.open(
                sealed[Self.headerByteCount...], using: Self.sealingKey(of: key),
                authenticating: place.authenticatedData + header)
        } catch {
            throw .notAuthentic
        }
    }

    /// Returns the id of the key that sealed a value.
    static func id(ofKeyThatSealed sealed: [UInt8]) throws(MasterKeyError) -> MasterKeyID {
        guard sealed.first == form, let id = MasterKeyID(sealed.dropFirst().prefix(MasterKeyID.byteCount)) else {
            throw .notAuthentic
        }
        return id
    }

    /// The first bytes of values sealed with the active key.
    var activeHeader: [UInt8] { [Self.form] + active.id.bytes }
}

/// The text of a master key's file: one key a line in base64, the active one first. Empty lines and lines that begin
/// with `#` are ignored. A line may end with CR LF.
extension MasterKey {
    private static let lineEnd = UInt8(ascii: "\n")
    private static let carriageReturn = UInt8(ascii: "\r")
    private static let comment = UInt8(ascii: "#")

    /// Reads the text of a file.
    public init(text: SecureBytes) throws(MasterKeyError) {
        var keys: [Key] = []
        try text.withUnsafeBytes { bytes throws(MasterKeyError) in
            var number = 0
            var rest = bytes[...]
            while !rest.isEmpty {
                number += 1
                let line = rest.prefix { $0 != Self.lineEnd }
                rest = rest[line.endIndex...].dropFirst()
                let content = line.last == Self.carriageReturn ? line.dropLast() : line
                guard let key = try Self.key(UnsafeRawBufferPointer(rebasing: content), number) else { continue }
                guard !keys.contains(where: { $0.id == key.id }) else { throw .repeatedKey(line: number) }
                keys.append(key)
            }
        }
        guard let active = keys.first else { throw .noKey }
        guard keys.count <= Self.maximumKeys else { throw .tooManyKeys }
        self.init(active: active, older: Array(keys.dropFirst()))
    }

    /// The text that ``init(text:)`` reads, with a heading.
    public var text: SecureBytes {
        let heading = Array("# Saltern's master key, the active one first. Keep it apart from the database.\n".utf8)
        let lineByteCount = Base64.encodedCount(Self.keyByteCount) + 1
        return SecureBytes(count: heading.count + keys.count * lineByteCount) { buffer in
            buffer.copyBytes(from: heading)
            for (index, key) in keys.enumerated() {
                let start = heading.count + index * lineByteCount
                Base64.encode(key.secret, into: UnsafeMutableRawBufferPointer(rebasing: buffer[start...]))
                buffer[start + lineByteCount - 1] = Self.lineEnd
            }
        }
    }

    /// Returns the key of a line. Nil for an ignored line.
    private static func key(_ line: UnsafeRawBufferPointer, _ number: Int) throws(MasterKeyError) -> Key? {
        guard let first = line.first, first != comment else { return nil }
        guard let secret = try? Base64.decodeSecure(line), secret.count == keyByteCount else {
            throw .invalidLine(number)
        }
        return Key(secret)
    }
}
