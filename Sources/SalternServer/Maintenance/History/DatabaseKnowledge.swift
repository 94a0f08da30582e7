internal import Postgres

/// The facts about its database that a process has gathered from all its connections.
struct DatabaseKnowledge: Sendable {
    /// The consequence of a connection's facts.
    enum Verdict: Sendable {
        /// The connection may be used.
        case isGood
        /// The connection may be used, and earlier ones may lead to another server.
        case isNew
        /// The connection must not be used, nor others to the same server.
        case isBad(any Error)
        /// The connection must not be used. Others are not affected.
        case isOfNoUse(any Error)
    }

    private var timelines = TimelineMemory()
    /// True if the database had an installation. Without one it is being restored at the moment.
    private var hasInstallation = false

    mutating func judge(_ found: ReadDatabase.Row) -> Verdict {
        guard let fingerprint = found.fingerprint else { return .isBad(DatabaseIsStandby()) }
        let place = timelines.note(fingerprint)
        if case .earlier = place { return .isBad(DatabaseIsSuperseded()) }
        if found.isRestoring { return .isBad(UnfinishedRestore()) }
        hasInstallation = hasInstallation || found.known != nil
        if found.known == nil && hasInstallation { return .isBad(InstallationError.missing) }
        if case .later = place { return .isNew }
        return .isGood
    }

    /// Returns the consequence of an error of the query itself.
    static func judge(_ error: PostgresError) -> Verdict {
        switch error.sqlState?.errorClass {
        // Missing objects or rights: the schema is being replaced.
        case "42", "3F": .isBad(error)
        default: .isOfNoUse(error)
        }
    }
}

extension TimelineMemory {
    /// Records the server of a connection.
    mutating func note(_ fingerprint: DatabaseFingerprint) -> Place {
        guard let (cluster, timeline) = fingerprint.place else { return .same }
        return note(cluster: String(cluster), timeline: timeline)
    }
}

/// The error of a server from before a failover.
public struct DatabaseIsSuperseded: Error, CustomStringConvertible {
    public var description: String {
        "it is on an earlier timeline than the primary that was used before: another server was promoted in its place"
    }
}

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
