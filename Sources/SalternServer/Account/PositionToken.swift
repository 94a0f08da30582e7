internal import Cryptography
internal import Postgres

/// Encodes a position in a listing that is ordered by a moment and then by sixteen bytes. Clients treat the text as
/// opaque.
enum PositionToken {
    /// The listing of a token. No other kind of token begins with the same byte.
    enum Kind: UInt8 {
        case securityLog = 0x03
        case shares = 0x04
    }

    static func text(_ kind: Kind, _ moment: Timestamp, _ bytes: [UInt8]) -> String {
        let microseconds = withUnsafeBytes(of: moment.microsecondsSince2000.bigEndian) { [UInt8]($0) }
        return Base64URL.encodeToString([kind.rawValue] + microseconds + bytes)
    }

    /// Reads ``text(_:_:_:)``. Returns nil for text that this server cannot have written.
    static func parse(_ text: String, _ kind: Kind) -> (moment: Timestamp, bytes: [UInt8])? {
        guard let token = try? Base64URL.decode(text.utf8), token.count == 25, token[0] == kind.rawValue else {
            return nil
        }
        let microseconds = token[1..<9].reduce(0 as UInt64) { $0 << 8 | UInt64($1) }
        let moment = Timestamp(microsecondsSince2000: Int64(bitPattern: microseconds))
        // A moment that PostgreSQL cannot store was never a position, and PostgreSQL rejects a comparison with it.
        guard Timestamp.storable.contains(moment) else { return nil }
        return (moment, Array(token[9...]))
    }
}
