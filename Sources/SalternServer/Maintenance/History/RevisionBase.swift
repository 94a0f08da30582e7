internal import Postgres

/// Moves the lower bound of all further revisions of all accounts.
enum RevisionBase {
    /// The maximum wait for running changes, after which the move is tried later.
    private static let patience = LimitLockWait(milliseconds: 5_000)

    /// Moves the base to a time of the database, in a transaction without concurrent changes of accounts.
    ///
    /// - Returns: The new base. Nil if another node was faster.
    static func move(
        from known: DatabaseFingerprint, to fingerprint: DatabaseFingerprint, at time: Timestamp,
        on connection: PostgresLease
    ) async throws -> Int64? {
        try await connection.withTransaction { transaction in
            try await move(from: known, to: fingerprint, at: time, in: transaction)
        }
    }

    /// Moves the base within a transaction.
    static func move(
        from known: DatabaseFingerprint, to fingerprint: DatabaseFingerprint, at time: Timestamp,
        in transaction: Transaction
    ) async throws(PostgresError) -> Int64? {
        let (_, moved, _) = try await transaction.execute(
            patience, MoveRevisionBase(known: known, fingerprint: fingerprint, time: time), BlockChanges())
        return moved.first
    }
}
