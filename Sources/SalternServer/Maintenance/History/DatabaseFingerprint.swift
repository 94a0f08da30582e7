internal import Postgres

/// Identifies a database and its history. Copies such as restored backups and promoted standbys differ in it.
struct DatabaseFingerprint: Sendable, Hashable {
    /// The text from `saltern.database_fingerprint()`: the cluster's identifier, the timeline, the object identifiers
    /// of the database and of the installation's table. A hyphen replaces parts that the server's role may not read.
    let text: String

    init(_ text: String) {
        self.text = text
    }

    private var parts: [Substring] { text.split(separator: "/", omittingEmptySubsequences: false) }

    /// True if all parts that show a failover are readable.
    var detectsFailovers: Bool { !parts.contains("-") }

    /// The cluster and its timeline, if they are readable.
    var place: (cluster: Substring, timeline: UInt32)? {
        guard parts.count == 4, parts[0] != "-", let timeline = UInt32(parts[1], radix: 16) else { return nil }
        return (parts[0], timeline)
    }

    /// Returns true if this is the same database on a later timeline than `other`, after the promotion of a standby or
    /// a point-in-time recovery.
    func isLaterTimeline(of other: DatabaseFingerprint) -> Bool {
        let (mine, others) = (parts, other.parts)
        guard mine.count == 4, others.count == 4, mine[0] == others[0], mine[2...] == others[2...],
            let timeline = UInt32(mine[1], radix: 16), let earlier = UInt32(others[1], radix: 16)
        else { return false }
        return timeline > earlier
    }
}

extension DatabaseFingerprint: PostgresValue {
    static var postgresType: PostgresType { .text }

    func encode(to writer: inout ByteWriter) { text.encode(to: &writer) }

    static func decode(_ bytes: UnsafeRawBufferPointer?) -> DatabaseFingerprint? {
        String.decode(bytes).map(DatabaseFingerprint.init)
    }
}

/// The consequence of a new timeline of the write-ahead log (`SALTERN_FAILOVER`).
public enum FailoverKind: Sendable {
    /// Acknowledged commits may be missing on it: numbers continue above a new base.
    case asynchronous
    /// Standbys are synchronous, so no commit is missing. The operator must then report point-in-time recoveries.
    case synchronous
}
