internal import Cryptography
internal import HTTPCore
internal import Postgres

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
