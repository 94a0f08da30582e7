internal import Postgres

/// What is kept of the past: events, and failures that nobody added to.
extension Purge {
    func purgeEvents(_ connection: PostgresLease) async throws(PostgresError) -> Int {
        let before = now - policy.eventRetention
        var removed = 0
        while true {
            let due = try await connection.execute(FindOldEvents(before: before, limit: Int64(policy.biteSize)))
            var bite = 0
            for (account, rows) in Dictionary(grouping: due, by: \.accountID) {
                bite += Self.sum(
                    try await connection.execute(
                        RemoveEvents(accountID: account, before: before, ids: rows.map(\.id))))
            }
            removed += bite
            guard due.count == policy.biteSize, bite > 0 else { return removed }
        }
    }

    func purgeAttempts(_ connection: PostgresLease) async throws(PostgresError) -> Int {
        let before = now - AttemptPolicy.retention
        var removed = 0
        while true {
            let due = try await connection.execute(FindOldAttempts(before: before, limit: Int64(policy.biteSize)))
            let bite = Self.sum(try await connection.execute(RemoveOldAttempts(subjects: due, before: before)))
            removed += bite
            guard due.count == policy.biteSize, bite > 0 else { return removed }
        }
    }
}
