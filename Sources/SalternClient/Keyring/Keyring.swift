internal import Cryptography

/// The keys that the password opens: the data keys of all generations, the key that names chunks, those of the
/// recovery, and those of passkeys that unlock.
///
/// It is sealed as a ``SealedBox`` of the part `keyring`, in a version of its own:
///
///     version (1) ‖ counter (8) ‖ vault key (32) ‖ number of data keys (2) ‖ data keys, the current one last
///     ‖ 0, or 1 ‖ recovery public key (65) ‖ recovery authentication key (32) ‖ length (2) ‖ sealed recovery keys
///
/// Version 2 ends with the ``PasskeyKeys``. A keyring without passkeys has version 1, so that earlier kits open it.
///
/// The place of the previous edit's hash has the ``UseridMark``, which earlier kits ignore.
public struct Keyring: Sendable {
    /// Grows with every change, so that an older keyring from the server is detected.
    public internal(set) var counter: UInt64
    /// The key from which ids of chunks are derived.
    let vaultKey: SecureBytes
    /// The data keys by generation, the oldest first; the last one seals.
    public internal(set) var dataKeys: [DataKey]
    /// Set when there is a printed code.
    var recovery: RecoveryKeys?
    /// The passkeys that unlock the keyring.
    var passkeys: [PasskeyKeys] = []
    /// The userid with which it was sealed. Nil for a keyring that an earlier kit or a printed code has sealed.
    var useridMark: UseridMark?

    /// The reason for which bytes are not a keyring.
    public enum Failure: Error, Hashable, Sendable {
        /// The password is wrong, or the bytes were changed.
        case notAuthentic
        /// The keyring is of a later version of this kit, or damaged.
        case malformed
    }

    private static let version: UInt8 = 1
    private static let versionWithPasskeys: UInt8 = 2
    /// The maximum number of data keys; 64 KiB of keyring have room for more.
    private static let dataKeyLimit = 256

    /// Creates a keyring with one data key.
    public static func new() -> Keyring {
        Keyring(counter: 1, vaultKey: SecureRandom.secureBytes(32), dataKeys: [.random()], recovery: nil)
    }

    /// The key that seals.
    var currentKey: DataKey {
        guard let key = dataKeys.last else { preconditionFailure("a keyring has at least one data key") }
        return key
    }

    func key(_ id: DataKey.ID) throws(SealedBox.Failure) -> DataKey {
        guard let key = dataKeys.last(where: { $0.id == id }) else { throw .unknownKey }
        return key
    }

    /// The highest counter. Store and comparisons use signed numbers.
    static let counterLimit = UInt64(Int64.max)

    /// Returns the keyring after a change.
    func changed(_ change: (inout Keyring) -> Void) -> Keyring {
        var keyring = self
        // A counter from outside may be the highest possible.
        keyring.counter = min(keyring.counter, Self.counterLimit - 1) + 1
        change(&keyring)
        return keyring
    }

    /// Returns this keyring with the data keys of an earlier one added. The sealing key stays the same.
    func opening(also earlier: Keyring) -> Keyring {
        var keyring = self
        keyring.dataKeys = earlier.dataKeys.filter { key in !dataKeys.contains { $0.id == key.id } } + dataKeys
        return keyring
    }

    /// A digest that recognises the content. It reveals nothing, because the content has random keys.
    var digest: [UInt8] {
        HKDF.deriveKey(from: encoded(), info: SealingLabels.keyringDigest.utf8).withUnsafeBytes { [UInt8]($0) }
    }

    // MARK: Sealing

    /// Has neither account nor item: see ``SealedBox/Place/account``.
    private static let place = SealedBox.Place(.keyring, account: .none, item: .none, collection: "")

    /// Seals the keyring with a password's unlock key.
    public func sealed(under password: StretchedPassword) throws(SealedBox.Failure) -> [UInt8] {
        try sealed(under: password.known)
    }

    func sealed(under password: KnownPassword) throws(SealedBox.Failure) -> [UInt8] {
        try SealedBox.seal(
            encoded(), SealedBox.Edit(number: counter, previous: UseridMark.bytes(of: useridMark)), at: Self.place,
            with: Self.key(password))
    }

    /// Opens the result of ``sealed(under:)``.
    public init(sealed: [UInt8], openedBy password: StretchedPassword) throws(Failure) {
        try self.init(sealed: sealed, openedBy: password.known)
    }

    init(sealed: [UInt8], openedBy password: KnownPassword) throws(Failure) {
        let content: SealedBox.Content
        do throws(SealedBox.Failure) {
            content = try SealedBox.open(sealed, at: Self.place, with: Self.key(password))
        } catch .malformed {
            throw .malformed
        } catch {
            throw .notAuthentic
        }
        try self.init(encoded: content.content)
        guard counter == content.edit.number else { throw .malformed }
        useridMark = UseridMark(content.edit.previous)
    }

    private static func key(_ password: KnownPassword) -> DataKey {
        let bytes = HKDF.deriveKey(from: password.unlockKey, info: SealingLabels.keyringKey.utf8)
        guard let key = DataKey(bytes) else { preconditionFailure("HKDF returns the requested length") }
        return key
    }

    // MARK: Encoding

    func encoded() -> SecureBytes {
        var writer = SecretWriter()
        writer.write([passkeys.isEmpty ? Self.version : Self.versionWithPasskeys])
        writer.write(counter.bigEndianBytes)
        writer.write(vaultKey)
        writer.write(UInt16(dataKeys.count).bigEndianBytes)
        for key in dataKeys { writer.write(key.bytes) }
        if let recovery {
            writer.write([1])
            writer.write(recovery.publicKey.bytes)
            writer.write(recovery.authenticationKey)
            writer.write(UInt16(recovery.sealedPrivateKey.count).bigEndianBytes)
            writer.write(recovery.sealedPrivateKey)
        } else {
            writer.write([0])
        }
        if !passkeys.isEmpty { PasskeyKeys.write(passkeys, to: &writer) }
        return writer.bytes
    }

    init(encoded: SecureBytes) throws(Failure) {
        var reader = SecretReader(encoded)
        guard let version = reader.byte(), [Self.version, Self.versionWithPasskeys].contains(version),
            let counter = reader.number(8),
            counter <= Self.counterLimit, let vaultKey = reader.secret(32),
            let count = reader.number(2), (1...UInt64(Self.dataKeyLimit)).contains(count)
        else { throw .malformed }
        var keys: [DataKey] = []
        for _ in 0..<count {
            guard let key = reader.secret(DataKey.byteCount).flatMap(DataKey.init) else { throw .malformed }
            keys.append(key)
        }
        var recovery: RecoveryKeys?
        switch reader.byte() {
        case 0: break
        case 1:
            guard let point = reader.bytes(P256.PublicKey.byteCount), let publicKey = try? P256.PublicKey(point),
                let authenticationKey = reader.secret(32), let length = reader.number(2),
                let sealed = reader.bytes(Int(length))
            else { throw .malformed }
            recovery = RecoveryKeys(
                publicKey: publicKey, authenticationKey: authenticationKey, sealedPrivateKey: sealed)
        default: throw .malformed
        }
        let passkeys = version == Self.versionWithPasskeys ? try PasskeyKeys.read(&reader) : []
        guard reader.isAtEnd else { throw .malformed }
        self.init(counter: counter, vaultKey: vaultKey, dataKeys: keys, recovery: recovery)
        self.passkeys = passkeys
    }

    private init(counter: UInt64, vaultKey: SecureBytes, dataKeys: [DataKey], recovery: RecoveryKeys?) {
        self.counter = counter
        self.vaultKey = vaultKey
        self.dataKeys = dataKeys
        self.recovery = recovery
    }
}

/// Identifies the userid to which a keyring belongs: `SHA-256(label ‖ userid)`.
///
/// The userid is the salt of the password key. A device that logs in by a passkey receives it from the server, which
/// could choose another one. The sealed keyring authenticates it.
struct UseridMark: Hashable, Sendable {
    let bytes: [UInt8]

    /// - Parameter userid: The canonical userid.
    init(of userid: String) {
        bytes = SHA256.hash(Array(SealingLabels.userid.utf8) + userid.utf8).bytes
    }

    /// Reads the mark of a sealed keyring. Nil for zeros, which earlier kits write.
    init?(_ bytes: [UInt8]) {
        guard bytes != SealedBox.Edit.first.previous else { return nil }
        self.bytes = bytes
    }

    /// The bytes in a sealed keyring.
    static func bytes(of mark: UseridMark?) -> [UInt8] { mark?.bytes ?? SealedBox.Edit.first.previous }
}

extension Identifier {
    /// The id of zeros, for a place without item or account.
    static var none: Self {
        guard let none = Self(bytes: [UInt8](repeating: 0, count: 16)) else { preconditionFailure("sixteen bytes") }
        return none
    }
}

/// Concatenates secrets, and zeroes the buffers that it outgrows.
struct SecretWriter {
    private(set) var bytes = SecureBytes(copying: [UInt8]())

    mutating func write(_ source: some ByteSource) {
        let before = bytes
        bytes = source.withContiguousBytes { added in
            SecureBytes(count: before.count + added.count) { target in
                before.withUnsafeBytes { target.copyMemory(from: $0) }
                UnsafeMutableRawBufferPointer(rebasing: target[before.count...]).copyMemory(from: added)
            }
        }
    }
}

/// Reads concatenated secrets.
struct SecretReader {
    private let source: SecureBytes
    private var position = 0

    init(_ source: SecureBytes) { self.source = source }

    var isAtEnd: Bool { position == source.count }

    mutating func secret(_ count: Int) -> SecureBytes? {
        guard count >= 0, source.count - position >= count else { return nil }
        defer { position += count }
        return source.withUnsafeBytes {
            SecureBytes(copying: UnsafeRawBufferPointer(rebasing: $0[position..<position + count]))
        }
    }

    mutating func bytes(_ count: Int) -> [UInt8]? { secret(count)?.withUnsafeBytes { [UInt8]($0) } }

    mutating func byte() -> UInt8? { bytes(1)?.first }

    /// Reads a big-endian number of `count` bytes, at most eight.
    mutating func number(_ count: Int) -> UInt64? { bytes(count)?.reduce(0) { $0 << 8 | UInt64($1) } }
}

/// The relation of a keyring to the last confirmed one of this device.
enum KeyringOrder {
    /// The keyring is older, or contradicts the confirmed one: the same counter with other content, or a data key that
    /// a rotation has retired.
    case rolledBack
    case same
    case later

    /// Compares a keyring from the server with the confirmed one. Only the needed one of the last two values is read.
    /// - Parameters:
    ///   - counter: The counter of the confirmed keyring.
    ///   - isRetired: True if a rotation has retired the current data key of `keyring`. Read for a higher counter.
    ///   - digest: The digest of the confirmed keyring; nil for none. Read for an equal counter.
    static func of(
        _ keyring: Keyring, counter: UInt64, isRetired: @autoclosure () throws(VaultError) -> Bool,
        digest: () throws(VaultError) -> [UInt8]?
    ) throws(VaultError) -> KeyringOrder {
        if keyring.counter < counter { return .rolledBack }
        if keyring.counter > counter {
            // It would seal with a key that was retired because it may have been disclosed.
            return try isRetired() ? .rolledBack : .later
        }
        let expected = try digest()
        return expected == nil || expected == keyring.digest ? .same : .rolledBack
    }
}
