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
        let limit = Int64(countLimit)
        let tombstonesBefore = now - policy.tombstoneRetention
        let eventsBefore = now - policy.eventRetention
        let attemptsBefore = now - AttemptPolicy.retention
        // On a lease: it holds up no request when the database is slow to say.
        return try await database.withConnection { connection in
            PurgeBacklog(parts: [
                part(
                    "tombstones", tombstonesBefore,
                    try await connection.execute(FindDueTombstones(before: tombstonesBefore, limit: limit))),
                part("contents", now, try await connection.execute(FindDueContents(now: now, limit: limit))),
                part("rotations", now, try await connection.execute(FindDueRotations(now: now, limit: limit))),
                part(
                    "events", eventsBefore,
                    try await connection.execute(FindDueEvents(before: eventsBefore, limit: limit))),
                part(
                    "attempts", attemptsBefore,
                    try await connection.execute(FindDueAttempts(before: attemptsBefore, limit: limit))),
                part("shares", now, try await connection.execute(FindDueShares(now: now, limit: limit))),
            ])
        }
    }

    /// What a committed rotation has released is due since no moment that anybody knows: it has the epoch.
    private static func part(_ kind: String, _ moment: Timestamp, _ due: [Timestamp]) -> Part {
        let due = due.filter { $0 <= moment }
        let oldest = due.lazy.filter { $0.unixMicroseconds > 0 }.min()
        return Part(kind: kind, rows: due.count, overdue: oldest.map { moment - $0 } ?? .zero)
    }
}
