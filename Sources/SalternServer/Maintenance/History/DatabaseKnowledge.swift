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
