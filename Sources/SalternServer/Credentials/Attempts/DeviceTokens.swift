internal import Cryptography
internal import HTTPCore
internal import Postgres

/// Makes and checks the tokens of known devices, by HMAC-SHA256 (RFC 2104) under a key derived from the master key.
/// Nothing is stored.
///
/// A token opens nothing: the right password key is needed as without it. It only says whose failures count.
struct DeviceTokens: Sendable {
    /// The active key first; tokens under the others are still good.
    private let keys: [HMACSHA256.Key]

    private static let version: UInt8 = 1

    init(keys: [HMACSHA256.Key]) {
        self.keys = keys
    }

    /// The device's token under the active key.
    func token(_ device: KnownDevice) -> DeviceToken? {
        guard let key = keys.first else { return nil }
        let name = [Self.version] + device.identity
        return DeviceToken(name: name, code: key.authenticationCode(for: name))
    }

    /// Writes the member `deviceToken`.
    func write(_ device: KnownDevice, to writer: inout JSONWriter) { token(device)?.write(to: &writer) }

    /// The device that a token is of; nil when it is none of this server's. Nobody is told why. Nothing is looked up.
    func device(_ token: DeviceToken) -> KnownDevice? {
        token.bytes.withUnsafeBytes { bytes in
            let name = Array(bytes[..<DeviceToken.nameByteCount])
            let shown = SHA256Digest(UnsafeRawBufferPointer(rebasing: bytes[DeviceToken.nameByteCount...]))
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
}
