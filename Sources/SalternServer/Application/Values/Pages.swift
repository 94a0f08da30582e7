internal import Cryptography
internal import HTTPCore
internal import Postgres

/// Tracks the written part of a page that is read in windows, and the room that is left.
///
/// Windows, like pages, share no snapshot. An item that changes meanwhile moves behind those still to come. A listing
/// therefore returns it again or in its new state, and never omits it.
struct PageWindows {
    private let limit: Int64
    private var count: Int64 = 0
    private var bytes = 0
    private var isFull = false

    init(limit: Int64) { self.limit = limit }

    /// Returns true if a window is the whole page.
    static func isWhole(_ window: [ItemInParts], isFollowed: Bool, _ limit: Int64) -> Bool {
        window.allSatisfy(\.isWhole) && (!isFollowed || Int64(window.count) >= limit)
    }

    /// Counts an item unless it belongs to the next page. After such an item, no further one fits.
    mutating func takes(_ byteCount: Int) -> Bool {
        guard hasRoom, count == 0 || bytes + byteCount <= PageSize.byteLimit else {
            isFull = true
            return false
        }
        count += 1
        bytes += byteCount
        return true
    }

    /// True if another item may fit.
    var hasRoom: Bool { !isFull && count < limit && bytes < PageSize.byteLimit }

    /// The number of items that may follow.
    var remaining: Int64 { limit - count }

    /// The maximum of sealed bytes in the next window.
    var windowByteLimit: Int64 { min(PageSize.windowByteLimit, PageSize.byteLimit - Int64(bytes)) }
}

/// Limits of a page of a listing.
enum PageSize {
    /// Number of items or changes.
    static let limits = 1...500
    private static let defaultLimit = 100
    /// Maximum of sealed bytes. A single item may have more.
    static let byteLimit: Int64 = 4 * 1_048_576
    /// Maximum of sealed bytes that are read and sent at once. Of a longer item, it is one part.
    static let windowByteLimit: Int64 = 131_072

    /// Reads the query parameter `limit`.
    static func limit(of request: Request) throws -> Int {
        let limit: Int = try request.query.optional("limit") ?? defaultLimit
        guard limits.contains(limit) else {
            throw Problem(
                .badRequest, "invalid_parameter", detail: "`limit` must be from 1 to \(limits.upperBound).",
                field: "limit", limit: limits.upperBound)
        }
        return limit
    }
}

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
