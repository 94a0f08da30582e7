internal import Cryptography
internal import Postgres

/// The secret that maps userids to decoys.
struct DecoySecret: Sendable {
    let bytes: SecureBytes

    static func random() -> DecoySecret { DecoySecret(bytes: SecureRandom.secureBytes(32)) }
}

extension DecoySecret: PostgresValue {
    static var postgresType: PostgresType { .bytea }

    func encode(to writer: inout ByteWriter) { bytes.withUnsafeBytes { writer.write($0) } }

    static func decode(_ bytes: UnsafeRawBufferPointer?) -> DecoySecret? {
        bytes.map { DecoySecret(bytes: SecureBytes(copying: $0)) }
    }
}
