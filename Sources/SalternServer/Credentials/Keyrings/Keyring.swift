internal import HTTPCore

/// An account's sealed data keys.
struct Keyring: Sendable {
    let bytes: [UInt8]

    /// Maximum length in bytes.
    static let byteLimit = 65_536
    /// Maximum body of a request with a keyring, in bytes: base64 with line breaks and other members.
    static let requestLimit = 98_304
    /// Maximum body of a request that also has a recovery keyring, in bytes.
    static let requestLimitWithRecovery = 2 * requestLimit

    /// Reads base64 of sealed bytes of any format.
    init(json: JSONValue) throws {
        let sealed = try SealedBytes(base64: json.text(), format: .opaque)
        guard sealed.bytes.count <= Self.byteLimit else { throw SealedRefusal.tooLong(limit: Self.byteLimit) }
        bytes = sealed.bytes
    }
}
