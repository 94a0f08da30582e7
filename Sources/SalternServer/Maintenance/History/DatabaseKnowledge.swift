internal import Postgres

/// What a process knows of its database, of all that its connections have shown.
struct DatabaseKnowledge: Sendable {
    /// What follows from what a connection has shown.
    enum Verdict: Sendable {
        /// It may be used.
        case isGood
        /// It may be used, and those from before may lead elsewhere.
        case isNew
        /// It is not to be used, and neither are others that lead there.
        case isBad(any Error)
        /// It is not to be used, and says nothing of others.
        case isOfNoUse(any Error)
    }

    private var timelines = TimelineMemory()
    /// Whether it had an installation: one that has none any more is being restored just now.
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

    /// What follows from an error of the question itself.
    static func judge(_ error: PostgresError) -> Verdict {
        switch error.sqlState?.errorClass {
        // What is asked for is not there, or not for this role: the schema is being exchanged.
        case "42", "3F": .isBad(error)
        default: .isOfNoUse(error)
        }
    }
}
