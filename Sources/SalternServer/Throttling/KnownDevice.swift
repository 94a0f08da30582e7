internal import Cryptography
internal import HTTPCore

/// A device from which the right key of a userid was shown before: it has a number that nobody else can name.
///
/// Its failures are counted by themselves, so that no stranger's can keep it out.
struct KnownDevice: Sendable, Equatable {
    let userid: Userid
    /// Random.
    let number: [UInt8]

    static let numberByteCount = 16

    /// A device that was not known so far.
    static func new(_ userid: Userid) -> KnownDevice {
        KnownDevice(userid: userid, number: SecureRandom.bytes(numberByteCount))
    }

    /// The bytes that tell it from any other device.
    var identity: [UInt8] { number + Array(userid.string.utf8) }
}

/// Makes and checks the tokens of known devices: `sld_` and base64url of the device's number and its authentication
/// code (HMAC-SHA256, RFC 2104) together with the userid, under a key derived from the master key. Nothing is stored.
///
/// A token opens nothing: the right password key is needed as without it. It only says whose failures count.
struct DeviceTokens: Sendable {
    /// The active key first; tokens under the others are still good.
    private let keys: [HMACSHA256.Key]

    static let prefix = "sld_"

    init(keys: [HMACSHA256.Key]) {
        self.keys = keys
    }

    /// The device's token under the active key.
    func token(_ device: KnownDevice) -> String? {
        guard let key = keys.first else { return nil }
        return Self.prefix + Base64URL.encodeToString(device.number + Self.code(device, key).bytes)
    }

    /// Writes the member `deviceToken`.
    func write(_ device: KnownDevice, to writer: inout JSONWriter) {
        guard let token = token(device) else { return }
        writer.member("deviceToken", token)
    }

    /// The device that a token is of; nil when it is not one of this userid. Nobody is told why.
    func device(_ token: String, _ userid: Userid) -> KnownDevice? {
        guard token.utf8.count == Self.prefix.utf8.count + 64, token.hasPrefix(Self.prefix),
            let bytes = try? Base64URL.decode(Array(token.utf8.dropFirst(Self.prefix.utf8.count))),
            let shown = SHA256Digest(bytes[KnownDevice.numberByteCount...])
        else { return nil }
        let device = KnownDevice(userid: userid, number: Array(bytes[..<KnownDevice.numberByteCount]))
        // Every key is tried, whichever fits; digests are compared in constant time.
        let fits = keys.reduce(false) { fits, key in Self.code(device, key) == shown || fits }
        return fits ? device : nil
    }

    private static func code(_ device: KnownDevice, _ key: HMACSHA256.Key) -> SHA256Digest {
        key.authenticationCode(for: device.identity)
    }
}
