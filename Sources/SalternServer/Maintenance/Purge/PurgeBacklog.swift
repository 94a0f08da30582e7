public import Postgres

/// What a purge would remove at this moment: how much, and for how long it has been due.
///
/// Ended sessions are not in it: no index finds them, and every purge walks over all of them.
public struct PurgeBacklog: Sendable, Equatable {
    /// More rows of a kind than these are not counted.
    public static let countLimit = 1_000

    /// What is due of one kind.
    public struct Part: Sendable, Equatable {
        /// The name that ``Purge/Report`` has for it.
        public let kind: String
        /// How many rows are due; ``PurgeBacklog/countLimit`` when there are so many or more.
        public let rows: Int
        /// For how long the oldest of them has been due; zero when nothing is.
        public let overdue: Duration
    }

    public let parts: [Part]

    /// Asks for a few rows by each index that purges go by, however many there are.
    /// - Parameters:
    ///   - database: With the rights of the server's role.
    ///   - policy: How long things are kept.
    ///   - now: The time that ages are taken from.
    /// - Throws: A `PostgresError`.
    public static func read(
        _ database: PostgresClient, policy: PurgePolicy, now: Timestamp
    ) async throws -> PurgeBacklog {
        let tombstonesBefore = now - policy.tombstoneRetention
        let eventsBefore = now - policy.eventRetention
        let attemptsBefore = now - AttemptPolicy.retention
        // On a lease: it holds up no request when the database is slow to say.
        return try await database.withConnection { connection in
            PurgeBacklog(parts: [
                try await part(FindDueTombstones.self, tombstonesBefore, connection),
                try await part(FindDueContents.self, now, connection),
                try await part(FindDueKeyrings.self, now, connection),
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
        // What a committed rotation has released is due since no moment that anybody knows: it has the epoch.
        let oldest = due.lazy.filter { $0.unixMicroseconds > 0 }.min()
        return Part(kind: Rows.kind, rows: due.count, overdue: oldest.map { moment - $0 } ?? .zero)
    }
}
