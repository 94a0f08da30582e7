internal import Cryptography
internal import Postgres

extension AuditEntry {
    /// Computes the row's hash: SHA-256 of the previous row's hash and all columns.
    ///
    /// Numbers are big-endian. A text follows its length in bytes of UTF-8 (4 bytes), so different rows never have
    /// equal bytes. The input consists of:
    ///
    /// - previous hash (32 bytes)
    /// - sequence (8 bytes)
    /// - microseconds since 2000-01-01 UTC (8 bytes)
    /// - actor
    /// - action
    /// - account: a zero byte, or a one and its 16 bytes
    /// - detail, with a length of -1 if absent
    ///
    /// ``AppendAudit`` computes the same in the database.
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
