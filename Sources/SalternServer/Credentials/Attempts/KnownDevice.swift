internal import Cryptography
internal import HTTPCore
internal import Postgres

/// A device that has presented an account's right key before, as one of sixteen slots.
///
/// A slot identifies no device: new devices draw one at random, several may share it, and nothing is stored. Its
/// failures are counted separately, so strangers' failures do not block it.
struct KnownDevice: Sendable, Equatable {
    let accountID: AccountID
    /// Below ``slotCount``.
    let slot: UInt8
    /// The generation of the account's tokens: see ``FindLogin/Row/deviceGeneration``.
    let generation: Int64

    static let slotCount: UInt8 = 16
    /// The period in which tokens of the previous generation share a counter of their own.
    static let graceOfEarlierGeneration = Duration.seconds(7 * 86_400)

    /// Draws the slot of a new device.
    static func new(of accountID: AccountID, generation: Int64) -> KnownDevice {
        KnownDevice(accountID: accountID, slot: .random(in: 0..<slotCount), generation: generation)
    }

    /// Returns the device that a session counts for. It is always the same slot, so a stolen session allows no more
    /// guesses than one device.
    static func ofSession(_ accountID: AccountID, _ tokenHash: TokenHash, generation: Int64) -> KnownDevice {
        KnownDevice(
            accountID: accountID, slot: tokenHash.digest.withUnsafeBytes { $0[0] } % slotCount, generation: generation)
    }

    /// The bytes that identify slot, account and generation.
    var identity: [UInt8] { accountID.uuid.bytes + [slot] + Self.bytes(of: generation) }

    /// The bytes that identify account and generation.
    var generationIdentity: [UInt8] { accountID.uuid.bytes + Self.bytes(of: generation) }

    /// Returns the same device in another generation.
    func inGeneration(_ generation: Int64) -> KnownDevice {
        KnownDevice(accountID: accountID, slot: slot, generation: generation)
    }

    private static func bytes(of generation: Int64) -> [UInt8] {
        withUnsafeBytes(of: generation.bigEndian) { [UInt8]($0) }
    }
}

/// Makes and verifies tokens of known devices by HMAC-SHA256 (RFC 2104) under a key derived from the master key.
/// Nothing is stored.
///
/// A token grants no access, and the password key is still required. It only selects the counter of failures.
struct DeviceTokens: Sendable {
    /// The active key first. Tokens under the others remain valid.
    private let keys: [HMACSHA256.Key]

    private static let version: UInt8 = 1

    init(keys: [HMACSHA256.Key]) {
        self.keys = keys
    }

    /// Returns the device's token under the active key.
    func token(_ device: KnownDevice) -> DeviceToken? {
        guard let key = keys.first else { return nil }
        let name = [Self.version] + device.identity
        return DeviceToken(name: name, code: key.authenticationCode(for: name))
    }

    /// Writes the member `deviceToken`.
    func write(_ device: KnownDevice, to writer: inout JSONWriter) { token(device)?.write(to: &writer) }

    /// Returns the device of a token, without a query. Nil if the token is not this server's; clients do not receive
    /// the reason.
    func device(_ token: DeviceToken) -> KnownDevice? {
        token.bytes.withUnsafeBytes { bytes in
            let name = Array(bytes[..<DeviceToken.nameByteCount])
            let shown = SHA256Digest(UnsafeRawBufferPointer(rebasing: bytes[DeviceToken.nameByteCount...]))
            // All keys are tried, even after a match. Digests are compared in constant time.
            let fits = keys.reduce(false) { fits, key in key.authenticationCode(for: name) == shown || fits }
            guard fits, name[0] == Self.version, let account = UUID(bytes: Array(name[1...UUID.byteCount])) else {
                return nil
            }
            let slot = name[1 + UUID.byteCount]
            let generation = name[(2 + UUID.byteCount)...].reduce(0 as UInt64) { $0 << 8 | UInt64($1) }
            guard slot < KnownDevice.slotCount else { return nil }
            return KnownDevice(
                accountID: AccountID(account), slot: slot, generation: Int64(bitPattern: generation))
        }
    }
}

/// The token of a known device: `sld_` and base64url of a version, the account's id, slot, generation, and the
/// authentication code of these. ``DeviceTokens`` makes and verifies it.
struct DeviceToken: Sendable {
    /// The ``byteCount`` bytes of the token.
    let bytes: SecureBytes

    private static let prefix = "sld_"
    /// The length of version, account, slot and generation in bytes.
    static let nameByteCount = 1 + UUID.byteCount + 1 + MemoryLayout<Int64>.size
    private static let byteCount = nameByteCount + SHA256Digest.byteCount

    init(name: [UInt8], code: SHA256Digest) {
        bytes = SecureBytes(count: Self.byteCount) { bytes in
            bytes.copyBytes(from: name)
            let rest = UnsafeMutableRawBufferPointer(rebasing: bytes[Self.nameByteCount...])
            code.withUnsafeBytes { rest.copyMemory(from: $0) }
        }
    }

    /// Nil for malformed tokens.
    init?(_ text: UnsafeBufferPointer<UInt8>) {
        let prefix = Self.prefix.utf8
        guard text.count == prefix.count + (Self.byteCount * 8 + 5) / 6, text.starts(with: prefix),
            let bytes = try? Base64URL.decodeSecure(
                UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(text)[prefix.count...]))
        else { return nil }
        self.bytes = bytes
    }

    /// Writes the member `deviceToken`.
    func write(to writer: inout JSONWriter) { writer.member("deviceToken", Self.prefix, base64URL: bytes) }
}
