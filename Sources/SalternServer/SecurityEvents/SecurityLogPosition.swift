internal import Cryptography
internal import HTTPCore
internal import Postgres

/// A place in an account's security log; as text it is opaque to clients, and names a page.
struct SecurityLogPosition: Sendable, Comparable, PathParameterConvertible {
    let moment: Timestamp
    let id: UUID

    /// Before the latest entry.
    static let newest = SecurityLogPosition(moment: .distantFuture, id: UUID(high: .max, low: .max))

    /// Tells this kind of token, and its version, from any other.
    private static let tag: UInt8 = 0x03

    init(moment: Timestamp, id: UUID) {
        self.moment = moment
        self.id = id
    }

    init?(pathParameter text: String) {
        guard let bytes = try? Base64URL.decode(text.utf8), bytes.count == 25, bytes[0] == Self.tag,
            let id = UUID(bytes: Array(bytes[9...]))
        else { return nil }
        let microseconds = bytes[1..<9].reduce(0 as UInt64) { $0 << 8 | UInt64($1) }
        moment = Timestamp(microsecondsSince2000: Int64(bitPattern: microseconds))
        self.id = id
    }

    var text: String {
        let microseconds = withUnsafeBytes(of: moment.microsecondsSince2000.bigEndian) { Array($0) }
        return Base64URL.encodeToString([Self.tag] + microseconds + id.bytes)
    }

    static func < (left: SecurityLogPosition, right: SecurityLogPosition) -> Bool {
        (left.moment, left.id.high, left.id.low) < (right.moment, right.id.high, right.id.low)
    }
}
