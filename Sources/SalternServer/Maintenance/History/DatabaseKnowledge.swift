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

/// The latest timeline of each cluster in use. A frozen or disconnected primary can return on an earlier timeline after
/// a standby was promoted. It accepts writes as a primary, but they are lost.
struct TimelineMemory: Sendable {
    /// The server of a connection, compared with earlier connections.
    enum Place: Sendable {
        /// The same as before. Also used if the timeline is not readable.
        case same
        /// A new one: another server was promoted, or has replaced it.
        case later
        /// A server in whose place another one was promoted.
        case earlier
    }

    private var latest: [Substring: UInt32] = [:]

    /// Records the server of a connection.
    mutating func note(_ fingerprint: DatabaseFingerprint) -> Place {
        guard let (cluster, timeline) = fingerprint.place else { return .same }
        let isFirst = latest.isEmpty
        let known = latest[cluster] ?? 0
        latest[cluster] = max(known, timeline)
        if timeline < known { return .earlier }
        return timeline == known || isFirst ? .same : .later
    }
}

/// The error of a server from before a failover.
public struct DatabaseIsSuperseded: Error, CustomStringConvertible {
    public var description: String {
        "it is on an earlier timeline than the primary that was used before: another server was promoted in its place"
    }
}
