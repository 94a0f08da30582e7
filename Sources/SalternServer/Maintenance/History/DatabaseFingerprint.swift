internal import Postgres

/// Which history of which database this is: what a copy of it, a restored backup or a promoted standby, does not share.
struct DatabaseFingerprint: Sendable, Hashable {
    /// As `saltern.database_fingerprint()` writes it: the cluster's identifier, the timeline, the object identifiers of the
    /// database and of the installation's table. A hyphen stands for what the server's role may not know.
    let text: String

    init(_ text: String) {
        self.text = text
    }

    private var parts: [Substring] { text.split(separator: "/", omittingEmptySubsequences: false) }

    /// Whether everything is known that tells a failover from no failover.
    var detectsFailovers: Bool { !parts.contains("-") }

    /// The cluster and its timeline, as far as they may be known.
    var place: (cluster: Substring, timeline: UInt32)? {
        guard parts.count == 4, parts[0] != "-", let timeline = UInt32(parts[1], radix: 16) else { return nil }
        return (parts[0], timeline)
    }

    /// Whether this is the same database on a later timeline than `other`: what is left after a standby was promoted, or
    /// after a recovery to a point in time.
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

/// What a new timeline of the write-ahead log means (`SALTERN_FAILOVER`).
public enum FailoverKind: Sendable {
    /// Commits that clients heard of may be missing on it: numbers begin anew above the base.
    case asynchronous
    /// Standbys are synchronous, so nothing is missing. Recoveries to a point in time have to be told by hand then.
    case synchronous
}
