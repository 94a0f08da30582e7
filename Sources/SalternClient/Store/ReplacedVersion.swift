public import Foundation

/// A version of an item that another one has replaced on this device.
public struct ReplacedVersion: Hashable, Sendable {
    /// The number of the version on this device, as long as it is kept.
    public let number: Int64
    /// The id of the item.
    public let item: ItemID
    /// The collection that the item was in.
    public let collection: String
    /// The title of the version; nil when it has none.
    public let title: String?
    /// The length of the body, in bytes.
    public let byteCount: Int
    /// The time at which another version replaced it, by the clock of this device.
    public let replacedAt: Date
}

/// A version of an item that was replaced on this device.
struct ReplacedContent: Sendable {
    let number: Int64
    let item: ItemID
    let content: ItemContent
    let replacedAt: Date
    /// The revision on the server, if it is known.
    let revision: Revision?
    /// The number of the log's latest entry when the version was accepted, in a shared vault; nil if it is unknown.
    let judgedAt: Int64?
}

/// Versions that an edit, a received version or a merge has replaced. They are kept as long as deleted items.
extension Store {
    /// The limits of the versions that are kept of one item: their number, and their sealed bytes.
    static let versionLimit = 32
    static let versionByteLimit: Int64 = 64 << 20

    private static let columns =
        "number, item, collection, format, iterations, title, body, replaced_at, revision, judged_at"

    /// Stores a version that is about to be replaced. Each version is stored once.
    /// - Parameters:
    ///   - revision: Its revision on the server; nil when it is unknown.
    ///   - judgedAt: The number of the log's latest entry when it was accepted. The lowest one is kept.
    func keepReplaced(
        _ id: ItemID, _ content: ItemContent, edit: UInt64, revision: Revision? = nil, judgedAt: Int64? = nil,
        at moment: Date = Date()
    ) throws {
        // A version that was never opened on this device cannot be shown.
        guard edit != 0 else { return }
        try database.execute(
            """
            INSERT INTO versions
                (item, collection, format, iterations, title, body, edit, replaced_at, digest, revision, judged_at)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
            ON CONFLICT (item, digest) DO UPDATE SET revision = coalesce(excluded.revision, versions.revision),
                judged_at = coalesce(
                    min(excluded.judged_at, versions.judged_at), excluded.judged_at, versions.judged_at)
            """, .blob(id.bytes), .text(content.collection), .text(content.format),
            .optional(content.iterations.map(Int64.init)), .optional(content.title?.bytes), .blob(content.body.bytes),
            .integer(Int64(bitPattern: edit)), .integer(Int64(moment.timeIntervalSince1970)), .blob(content.digest),
            .optional(revision?.number), .optional(judgedAt))
        try thinOut(id)
    }

    /// Removes the versions whose neighbours in time are closest to each other, until the others are within the limits.
    /// The first and the latest stay if their bytes are within the limit.
    private func thinOut(_ id: ItemID) throws {
        var versions = try database.rows(
            "SELECT number, replaced_at, length(body) FROM versions WHERE item = ? ORDER BY replaced_at, number",
            .blob(id.bytes)
        ) { (number: $0.integer(0) ?? 0, moment: $0.integer(1) ?? 0, bytes: $0.integer(2) ?? 0) }
        var bytes = versions.reduce(0) { $0 + $1.bytes }
        while versions.count > 1, versions.count > Self.versionLimit || bytes > Self.versionByteLimit {
            let inner = versions.indices.dropFirst().dropLast()
            let closest = inner.min {
                versions[$0 + 1].moment - versions[$0 - 1].moment < versions[$1 + 1].moment - versions[$1 - 1].moment
            }
            let removed = versions.remove(at: closest ?? 0)
            bytes -= removed.bytes
            try database.execute("DELETE FROM versions WHERE number = ?", .integer(removed.number))
        }
    }

    /// Returns the number of further versions, and of their sealed bytes, for which an item has room.
    func versionRoom(of id: ItemID) throws -> (count: Int, bytes: Int64) {
        let used = try database.rows(
            "SELECT count(*), coalesce(sum(length(body)), 0) FROM versions WHERE item = ?", .blob(id.bytes)
        ) { (count: Int($0.integer(0) ?? 0), bytes: $0.integer(1) ?? 0) }.first
        return (
            max(Self.versionLimit - (used?.count ?? 0), 0), max(Self.versionByteLimit - (used?.bytes ?? 0), 0)
        )
    }

    /// Calls `body` with the replaced versions of an item, the latest first; without an id, of all items.
    func forEachReplaced(of id: ItemID?, _ body: (ReplacedContent) throws -> Void) throws {
        try database.forEach(
            """
            SELECT \(Self.columns) FROM versions \(id == nil ? "" : "WHERE item = ?1 ")
            ORDER BY replaced_at DESC, number DESC
            """,
            id.map { [.blob($0.bytes)] } ?? []
        ) { try body(Self.replaced($0)) }
    }

    /// Returns the known revisions of an item's stored versions.
    func replacedRevisions(of id: ItemID) throws -> Set<Int64> {
        Set(
            try database.rows(
                "SELECT revision FROM versions WHERE item = ? AND revision IS NOT NULL", .blob(id.bytes)
            ) { $0.integer(0) ?? 0 })
    }

    /// Returns true when this content is among an item's versions.
    func hasReplaced(_ id: ItemID, _ content: ItemContent) throws -> Bool {
        try !database.rows(
            "SELECT 1 FROM versions WHERE item = ? AND digest = ?", .blob(id.bytes), .blob(content.digest),
            decode: { _ in true }
        ).isEmpty
    }

    func replaced(_ number: Int64) throws -> ReplacedContent? {
        try database.rows(
            "SELECT \(Self.columns) FROM versions WHERE number = ?", .integer(number), decode: Self.replaced
        ).first
    }

    /// Replaces a version by the same one under another key.
    func replaceSealed(_ version: ReplacedContent, by content: ItemContent) throws {
        try database.execute(
            "UPDATE OR REPLACE versions SET title = ?, body = ?, digest = ? WHERE number = ?",
            .optional(content.title?.bytes), .blob(content.body.bytes), .blob(content.digest), .integer(version.number))
    }

    /// The numbers of all versions, in their order.
    func replacedNumbers(after number: Int64, limit: Int) throws -> [Int64] {
        try database.rows(
            "SELECT number FROM versions WHERE number > ? ORDER BY number LIMIT ?", .integer(number),
            .integer(Int64(limit))
        ) { $0.integer(0) ?? 0 }
    }

    private static func replaced(_ row: SQLiteRow) throws -> ReplacedContent {
        guard let number = row.integer(0), let moment = row.integer(7) else { throw StoreError.damaged }
        return ReplacedContent(
            number: number, item: try id(row, 1), content: try content(row, 2),
            replacedAt: Date(timeIntervalSince1970: TimeInterval(moment)), revision: row.integer(8).map(Revision.init),
            judgedAt: row.integer(9))
    }
}
