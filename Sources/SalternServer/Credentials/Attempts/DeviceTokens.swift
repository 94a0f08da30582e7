internal import Cryptography
internal import HTTPCore
internal import Postgres

/// Makes and checks the tokens of known devices: `sld_` and base64url of a version, the account's id, slot, generation
/// and the authentication code of all of these (HMAC-SHA256, RFC 2104), under a key derived from the master key. Nothing
/// is stored.
///
/// A token opens nothing: the right password key is needed as without it. It only says whose failures count.
struct DeviceTokens: Sendable {
    /// The active key first; tokens under the others are still good.
    private let keys: [HMACSHA256.Key]

    static let prefix = "sld_"
    private static let version: UInt8 = 1
    /// Version, account, slot, generation.
    private static let nameByteCount = 1 + UUID.byteCount + 1 + MemoryLayout<Int64>.size
    private static let byteCount = nameByteCount + SHA256Digest.byteCount

    init(keys: [HMACSHA256.Key]) {
        self.keys = keys
    }

    /// The device's token under the active key.
    func token(_ device: KnownDevice) -> String? {
        guard let key = keys.first else { return nil }
        let name = [Self.version] + device.identity
        return Self.prefix + Base64URL.encodeToString(name + key.authenticationCode(for: name).bytes)
    }

    /// Writes the member `deviceToken`.
    func write(_ device: KnownDevice, to writer: inout JSONWriter) {
        guard let token = token(device) else { return }
        writer.member("deviceToken", token)
    }

    /// The device that a token is of; nil when it is none of this server's. Nobody is told why. Nothing is looked up.
    func device(_ token: String) -> KnownDevice? {
        guard token.utf8.count == Self.prefix.utf8.count + (Self.byteCount * 8 + 5) / 6, token.hasPrefix(Self.prefix),
            let bytes = try? Base64URL.decode(Array(token.utf8.dropFirst(Self.prefix.utf8.count))),
            bytes.count == Self.byteCount, let shown = SHA256Digest(bytes[Self.nameByteCount...])
        else { return nil }
        let name = Array(bytes[..<Self.nameByteCount])
        // Every key is tried, whichever fits; digests are compared in constant time.
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
