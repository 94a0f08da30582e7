internal import HTTPCore
internal import Postgres

/// One line of an export.
protocol ExportedRecord: Sendable {
    /// The line's member `type`.
    var type: String { get }

    /// Writes the other members.
    func write(to writer: inout JSONWriter)
}

/// A statement that reads one kind of record in key order, in pages. A page has at least one row if any is behind the
/// key, and is limited in bytes.
protocol ExportedPage: AccountRead where Row: ExportedRecord {
    /// The columns that order the records.
    associatedtype Key: Sendable

    /// The key that the page follows. Nil for the first page.
    var after: Key? { get }

    init(after: Key?)

    /// The key of a record.
    static func key(of row: Row) -> Key
}

/// Limits of a page of an export.
enum ExportLimits {
    static let rows: Int64 = 500
    /// Maximum of sealed bytes. A single record may have more.
    static let bytes = PageSize.windowByteLimit
}

/// Writes records as lines, and counts them.
struct ExportOutput {
    private let body: any ResponseBodyWriter
    private(set) var counts: [(type: String, count: Int64)] = []

    init(_ body: any ResponseBodyWriter) {
        self.body = body
    }

    /// Writes a line for each record.
    mutating func write(_ records: some Collection<some ExportedRecord>) async throws {
        var lines: [UInt8] = []
        for record in records {
            count(record.type)
            lines += Self.line(record)
        }
        try await body.write(lines)
    }

    /// Writes the last line, with the number of lines of each kind. It shows that the export is complete.
    func end() async throws {
        var writer = JSONWriter()
        writer.object { writer in
            writer.member("type", "end")
            writer.object("counts") { writer in
                for (type, count) in counts { writer.member(type, count) }
            }
        }
        try await body.write(writer.finish() + [0x0A])
    }

    private mutating func count(_ type: String) {
        if let index = counts.lastIndex(where: { $0.type == type }) {
            counts[index].count += 1
        } else {
            counts.append((type, 1))
        }
    }

    private static func line(_ record: some ExportedRecord) -> [UInt8] {
        var writer = JSONWriter(capacity: 512)
        writer.object { writer in
            writer.member("type", record.type)
            record.write(to: &writer)
        }
        return writer.finish() + [0x0A]
    }
}

/// The account's sessions, live or not, without token hashes.
struct ExportSessions: ExportedPage {
    let after: TokenHash?

    struct Row: ExportedRecord {
        let tokenHash: TokenHash
        let id: SessionID
        let deviceName: String?
        let createdAt: Timestamp
        let lastUsedAt: Timestamp
        let expiresAt: Timestamp
        let isRestricted: Bool

        let type = "session"

        func write(to writer: inout JSONWriter) {
            writer.member("id", id)
            if let deviceName {
                writer.object("device") { writer in writer.member("name", deviceName) }
            }
            writer.member("createdAt", createdAt)
            writer.member("lastUsedAt", lastUsedAt)
            writer.member("expiresAt", expiresAt)
            writer.member("restricted", isRestricted)
        }
    }

    /// No hash is empty, so the first page begins behind the empty one.
    static let sql: AccountSQL<Self> = """
        SELECT s.token_hash, s.session_id, s.device_name, s.created_at, s.last_used_at, s.expires_at, s.restricted
        FROM saltern.sessions s
        WHERE s.account_id = \(.account) AND s.token_hash > coalesce(\(\.after)::bytea, '')
        ORDER BY s.token_hash LIMIT \(ExportLimits.rows)
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row { try row.read(Row.init) }

    static func key(of row: Row) -> TokenHash { row.tokenHash }
}

/// The account's security log, oldest first.
struct ExportSecurityEvents: ExportedPage {
    let after: Key?

    struct Key: Sendable {
        let occurredAt: Timestamp
        let id: SecurityEventID
    }

    struct Row: ExportedRecord {
        let id: SecurityEventID
        let occurredAt: Timestamp
        let kind: String
        let sessionID: SessionID?
        let deviceName: String?
        let count: Int64?
        let since: Timestamp?

        let type = "securityEvent"

        func write(to writer: inout JSONWriter) {
            writer.member("id", id)
            writer.member("occurredAt", occurredAt)
            writer.member("kind", kind)
            if let sessionID { writer.member("sessionId", sessionID) }
            if let deviceName {
                writer.object("device") { writer in writer.member("name", deviceName) }
            }
            if let count { writer.member("count", count) }
            if let since { writer.member("since", since) }
        }
    }

    static let sql: AccountSQL<Self> = """
        SELECT e.event_id, e.occurred_at, e.kind, e.session_id, e.device_name, e.count, e.since
        FROM saltern.security_events e
        WHERE e.account_id = \(.account) AND (e.occurred_at, e.event_id) > (\(\.bound.occurredAt), \(\.bound.id))
        ORDER BY e.occurred_at, e.event_id LIMIT \(ExportLimits.rows)
        """

    private var bound: Key { after ?? Key(occurredAt: .distantPast, id: SecurityEventID(.zero)) }

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row { try row.read(Row.init) }

    static func key(of row: Row) -> Key { Key(occurredAt: row.occurredAt, id: row.id) }
}

/// The account's rotations, without staged items.
struct ExportRotations: ExportedPage {
    let after: UUID?

    struct Row: ExportedRecord {
        let id: UUID
        let openedAt: Timestamp
        let expiresAt: Timestamp
        let committedAt: Timestamp?
        let items: Int64
        let bytes: Int64

        let type = "rotation"

        func write(to writer: inout JSONWriter) {
            writer.member("id", id.description)
            writer.member("openedAt", openedAt)
            writer.member("expiresAt", expiresAt)
            if let committedAt { writer.member("committedAt", committedAt) }
            writer.member("items", items)
            writer.member("bytes", bytes)
        }
    }

    /// The server draws these identifiers, and none is zero.
    static let sql: AccountSQL<Self> = """
        SELECT r.rotation_id, r.opened_at, r.expires_at, r.committed_at, r.item_count, r.item_bytes
        FROM saltern.rotations r
        WHERE r.account_id = \(.account) AND r.rotation_id > \(\.bound)
        ORDER BY r.rotation_id LIMIT \(ExportLimits.rows)
        """

    private var bound: UUID { after ?? .zero }

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row { try row.read(Row.init) }

    static func key(of row: Row) -> UUID { row.id }
}
