internal import HTTPCore

/// An account's sealed data keys.
struct Keyring: Sendable {
    let bytes: [UInt8]

    /// The longest keyring in bytes.
    static let byteLimit = 65_536
    /// The longest body, in bytes, of a request that carries one: base64 with line breaks, and room for the rest.
    static let requestLimit = 98_304
    /// The longest body, in bytes, of a request that also carries the keyring that the recovery code opens.
    static let requestLimitWithRecovery = 2 * requestLimit

    /// Reads base64 of sealed bytes of any format.
    init(json: JSONValue) throws {
        let sealed = try SealedBytes(base64: json.text(), format: .opaque)
        guard sealed.bytes.count <= Self.byteLimit else { throw SealedRefusal.tooLong(limit: Self.byteLimit) }
        bytes = sealed.bytes
    }
}
