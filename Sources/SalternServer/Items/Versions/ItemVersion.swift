internal import Cryptography
internal import HTTPCore
internal import Postgres

/// An older version of an item: a content that another content has replaced.
///
/// Older versions share the budget of ``DeletedContent``: together they are as many rows and bytes as the plan allows. A
/// new version makes room by removing the versions that expire first, never what a deleted item held. A deletion makes
/// room by removing versions first. A version expires as many days after its replacement as the plan keeps deleted items.
enum ItemVersion {
    /// How long after a kept version the next version of the same item is due to be kept. Every replacement in between
    /// takes the same single statement as an item without versions.
    static let interval = Duration.seconds(600)
    /// Sealed bytes that one replacement keeps, and that one statement removes; the last row may have more.
    static let byteLimit: Int64 = 67_108_864
    /// How many versions one statement removes.
    static let dropLimit: Int64 = 1_000

    /// The condition that a version of the item `i` is due to be kept.
    static func isDue<Root, Context>(since moment: SQLTemplate<Root, Context>) -> SQLTemplate<Root, Context> {
        "(\(wasKept(since: moment))) IS NOT TRUE"
    }

    /// The condition that a version of the item `i` was kept in the ``interval`` that began at `moment`. A time more than an
    /// interval after its end is of a clock that was ahead, and does not count: versions would not be kept until it comes.
    private static func wasKept<Root, Context>(since moment: SQLTemplate<Root, Context>) -> SQLTemplate<Root, Context> {
        "i.kept_at > \(moment) AND i.kept_at < \(moment)::timestamptz + interval '20 minutes'"
    }

    /// What `kept_at` of the item `i` is after its content was replaced. An item that is created again begins without.
    static func keptAt<Root, Context>(
        since moment: SQLTemplate<Root, Context>, now: SQLTemplate<Root, Context>
    ) -> SQLTemplate<Root, Context> {
        "CASE WHEN i.deleted THEN NULL WHEN \(wasKept(since: moment)) THEN i.kept_at ELSE \(now)::timestamptz END"
    }

    /// Returns when a version expires.
    static func expiry(now: Timestamp, days: Int32) -> Timestamp { now + .seconds(86_400 * Int64(days)) }
}

/// Names an older version of an account's item.
struct VersionKey: Sendable, Equatable {
    let item: ItemID
    let revision: Int64
}

/// A version in a listing, without its sealed bytes.
struct VersionHeader: DecodableRow {
    let header: ItemHeader
    let byteCount: Int64
    let replacedAt: Timestamp
    let expiresAt: Timestamp

    /// The columns that ``init(row:)`` reads, of the table or alias `i`.
    static let columns: SQLFragment = """
        \(ItemHeader.columns), \(SealedSize.bytes(of: "i"))::bigint, i.replaced_at, i.expires_at
        """

    /// Reads ``columns``.
    init(row: inout RowReader) throws(PostgresError) {
        header = try ItemHeader(row: &row)
        byteCount = try row.next()
        replacedAt = try row.next()
        expiresAt = try row.next()
    }

    /// Writes the members.
    func write(to writer: inout JSONWriter) {
        writer.member("revision", header.revision)
        writer.member("collection", header.collection)
        writer.member("bytes", byteCount)
        writer.member("updatedAt", header.updatedAt)
        writer.member("replacedAt", replacedAt)
        writer.member("expiresAt", expiresAt)
    }
}

/// Where a page of versions begins, and of which item: opaque to clients.
struct VersionPage: PathParameterConvertible, Equatable {
    let item: ItemID
    /// Every version of the page has a lower revision.
    let before: Int64

    /// Identifies this kind of token and its version.
    private static let tag: UInt8 = 0x07
    private static let byteCount = 25

    /// The first page: every revision is lower.
    static func first(of item: ItemID) -> VersionPage { VersionPage(item: item, before: .max) }

    init(item: ItemID, before: Int64) {
        self.item = item
        self.before = before
    }

    init?(pathParameter text: String) {
        guard let bytes = try? Base64URL.decode(text.utf8), bytes.count == Self.byteCount, bytes[0] == Self.tag,
            let uuid = UUID(bytes: Array(bytes[1..<17]))
        else { return nil }
        item = ItemID(uuid)
        before = bytes.withUnsafeBytes {
            Int64(bigEndian: $0.loadUnaligned(fromByteOffset: 17, as: Int64.self))
        }
    }

    var text: String {
        Base64URL.encodeToString(
            [Self.tag] + item.uuid.bytes + withUnsafeBytes(of: before.bigEndian) { Array($0) })
    }
}
