internal import Cryptography
internal import Postgres

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
