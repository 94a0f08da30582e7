internal import Cryptography
internal import HTTPCore
internal import Postgres

/// Reads tokens in their only form: `Authorization: Bearer`, a prefix that names the kind of token, and base64url (RFC
/// 6750 §2.1).
enum BearerSecret {
    /// Calls `body` with the bytes behind the prefix, which are wiped afterwards.
    ///
    /// - Parameter byteCount: The length of tokens of this kind, in bytes.
    /// - Returns: Nil if the field is absent, repeated or malformed.
    static func read<Result>(
        _ fields: RequestFields, prefix: String, byteCount: Int, _ body: (UnsafeRawBufferPointer) -> Result?
    ) -> Result? {
        fields.withValue(named: "authorization") { value -> Result? in
            guard let text = text(of: value, prefix.utf8, byteCount) else { return nil }
            return withUnsafeTemporaryAllocation(byteCount: byteCount, alignment: 8) { bytes in
                defer { bytes.wipe() }
                guard (try? Base64URL.decode(text, into: bytes)) != nil else { return nil }
                return body(UnsafeRawBufferPointer(bytes))
            }
        } ?? nil
    }

    /// Returns the text behind the prefix.
    private static func text(
        of value: UnsafeBufferPointer<UInt8>, _ prefix: String.UTF8View, _ byteCount: Int
    ) -> UnsafeRawBufferPointer? {
        let scheme = "bearer".utf8
        guard value.count > scheme.count, zip(value, scheme).allSatisfy({ $0 | 0x20 == $1 }),
            value[scheme.count] == ASCII.space
        else { return nil }
        // One space or several (RFC 9110 §11.4).
        let token = value[scheme.count...].drop { $0 == ASCII.space }
        guard token.count == prefix.count + (byteCount * 8 + 5) / 6, token.starts(with: prefix) else { return nil }
        return UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(value)[(token.startIndex + prefix.count)...])
    }
}

/// A SHA-256 digest or code that the database stores as `bytea`. Each kind is a type of its own, so the hash of a token
/// cannot be used as a verifier. Compared in constant time.
protocol StoredDigest: PostgresValue, Hashable, Sendable {
    var digest: SHA256Digest { get }

    init(digest: SHA256Digest)
}

extension StoredDigest {
    init(_ digest: SHA256Digest) { self.init(digest: digest) }

    static var postgresType: PostgresType { .bytea }
    static var postgresArrayType: PostgresType { .byteaArray }

    func encode(to writer: inout ByteWriter) { digest.withUnsafeBytes { writer.write($0) } }

    static func decode(_ bytes: UnsafeRawBufferPointer?) -> Self? {
        bytes.flatMap { SHA256Digest($0) }.map { Self($0) }
    }
}
