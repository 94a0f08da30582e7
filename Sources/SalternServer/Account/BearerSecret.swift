internal import Cryptography
internal import HTTPCore

/// The one way in which tokens arrive: `Authorization: Bearer`, a prefix that says of what kind the token is, and
/// base64url (RFC 6750 §2.1).
enum BearerSecret {
    /// The bytes behind the prefix; nil when the field is absent, comes twice or is anything else.
    /// - Parameter byteCount: How many bytes a token of the kind has.
    static func read(_ fields: RequestFields, prefix: String, byteCount: Int) -> SecureBytes? {
        fields.withValue(named: "authorization") { parse($0, prefix.utf8, byteCount) } ?? nil
    }

    private static func parse(
        _ value: UnsafeBufferPointer<UInt8>, _ prefix: String.UTF8View, _ byteCount: Int
    ) -> SecureBytes? {
        let scheme = "bearer ".utf8
        let start = scheme.count + prefix.count
        guard value.count == start + (byteCount * 8 + 5) / 6,
            zip(value, scheme).allSatisfy({ $0 | 0x20 == $1 }), value[scheme.count..<start].elementsEqual(prefix)
        else { return nil }
        return try? Base64URL.decodeSecure(UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(value)[start...]))
    }
}
