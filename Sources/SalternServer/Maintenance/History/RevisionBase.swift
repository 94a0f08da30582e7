internal import Postgres

/// The number that all further ones of all accounts are above.
enum RevisionBase {
    /// How long changes under way may take before it is given up for now.
    private static let patience = LimitLockWait(milliseconds: 5_000)

    /// Moves the base to a time of the database's, in a transaction that no change of an account overlaps.
    /// - Returns: The new base; nil when somebody else was faster.
    static func move(
        from known: DatabaseFingerprint, to fingerprint: DatabaseFingerprint, at time: Timestamp,
        on connection: PostgresLease
    ) async throws -> Int64? {
        try await connection.withTransaction { transaction in
            try await move(from: known, to: fingerprint, at: time, in: transaction)
        }
    }

    /// The same, as a part of a transaction.
    static func move(
        from known: DatabaseFingerprint, to fingerprint: DatabaseFingerprint, at time: Timestamp,
        in transaction: Transaction
    ) async throws(PostgresError) -> Int64? {
        let (_, moved, _) = try await transaction.execute(
            patience, MoveRevisionBase(known: known, fingerprint: fingerprint, time: time), BlockChanges())
        return moved.first
    }
}
