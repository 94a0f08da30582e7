internal import Cryptography
internal import Postgres

extension AuditEntry {
    /// The hash that the row should have: SHA-256 of the row before's hash and of every column.
    ///
    /// Numbers are big-endian. Texts carry their length in bytes of UTF-8 in front of them, four bytes, so that no two
    /// rows are the same bytes: previous hash (32 bytes), sequence (8), microseconds since 2000-01-01 UTC (8), actor,
    /// action, a zero byte or a one and the account's 16 bytes, detail (a length of -1 when there is none).
    /// ``AppendAudit`` computes the same inside the database.
    var computedHash: AuditHash {
        var message = previousHash.digest.bytes
        message.append(bigEndian: sequence)
        message.append(bigEndian: occurredAt.microsecondsSince2000)
        message.append(lengthAndText: actor)
        message.append(lengthAndText: action)
        if let targetAccount {
            message.append(1)
            message.append(contentsOf: targetAccount.uuid.bytes)
        } else {
            message.append(0)
        }
        if let detail { message.append(lengthAndText: detail) } else { message.append(bigEndian: -1 as Int32) }
        return AuditHash(SHA256.hash(message))
    }
}

extension [UInt8] {
    fileprivate mutating func append(bigEndian number: some FixedWidthInteger) {
        Swift.withUnsafeBytes(of: number.bigEndian) { append(contentsOf: $0) }
    }

    fileprivate mutating func append(lengthAndText text: String) {
        append(bigEndian: Int32(truncatingIfNeeded: text.utf8.count))
        append(contentsOf: text.utf8)
    }
}
