public import Postgres

/// The rows that are due at the moment: their number, and the age of the oldest.
///
/// Ended sessions are not included: no index finds them, and each purge scans all sessions.
public struct PurgeBacklog: Sendable, Equatable {
    /// The maximum count of rows of a kind.
    public static let countLimit = 1_000

    /// The due rows of one kind.
    public struct Part: Sendable, Equatable {
        /// The kind's name in ``Purge/Report``.
        public let kind: String
        /// The number of due rows, at most ``PurgeBacklog/countLimit``.
        public let rows: Int
        /// The time since which the oldest one is due. Zero if none is.
        public let overdue: Duration
    }

    public let parts: [Part]

    /// Reads a limited number of rows by each index of the purge.
    ///
    /// - Parameters:
    ///   - database: Has the rights of the server's role.
    ///   - policy: The retention of rows.
    ///   - now: The time from which ages are counted.
    /// - Throws: A `PostgresError`.
    public static func read(
        _ database: PostgresClient, policy: PurgePolicy, now: Timestamp
    ) async throws -> PurgeBacklog {
        let tombstonesBefore = now - policy.tombstoneRetention
        let eventsBefore = now - policy.eventRetention
        let attemptsBefore = now - AttemptPolicy.retention
        // On a dedicated connection, so that a slow database delays no requests.
        return try await database.withConnection { connection in
            PurgeBacklog(parts: [
                try await part(FindDueTombstones.self, tombstonesBefore, connection),
                try await part(FindDueContents.self, now, connection),
                try await part(FindDueKeyrings.self, now, connection),
                try await part(FindDueChallenges.self, now, connection),
                try await part(FindDueVersions.self, now, connection),
                try await part(FindDueRotations.self, now, connection),
                try await part(FindDueEvents.self, eventsBefore, connection),
                try await part(FindDueAttempts.self, attemptsBefore, connection),
                try await part(FindDueShares.self, now, connection),
            ])
        }
    }

    private static func part<Rows: DueRows>(
        _ rows: Rows.Type, _ moment: Timestamp, _ connection: PostgresLease
    ) async throws -> Part {
        let due = try await connection.execute(Rows(moment: moment, limit: Int64(countLimit)))
        // Contents that a rotation's commit has expired have the epoch as expiry, not a time.
        let oldest = due.lazy.filter { $0.unixMicroseconds > 0 }.min()
        return Part(kind: Rows.kind, rows: due.count, overdue: oldest.map { moment - $0 } ?? .zero)
    }
}
