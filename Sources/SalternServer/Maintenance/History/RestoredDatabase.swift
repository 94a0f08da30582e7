public import Postgres

/// The operator's steps after a restore that the server cannot detect, such as that of a disk snapshot.
public struct RestoredDatabase: Sendable {
    /// SQL that moves the base within the transaction that restores the rows, for PostgreSQL's own programs. Backups
    /// from before migration 6 have no base.
    public static let script = """
        DO $$ BEGIN
            IF EXISTS (SELECT FROM pg_catalog.pg_attribute a
                WHERE a.attrelid = 'saltern.installation'::pg_catalog.regclass AND a.attname = 'revision_base')
            THEN
                UPDATE saltern.installation SET
                    revision_base = greatest(
                        revision_base, (extract(epoch FROM pg_catalog.clock_timestamp()) * 1048576)::bigint),
                    fingerprint = saltern.database_fingerprint();
            END IF;
            IF EXISTS (SELECT FROM pg_catalog.pg_attribute a
                WHERE a.attrelid = 'saltern.installation'::pg_catalog.regclass AND a.attname = 'base_moved_at')
            THEN
                UPDATE saltern.installation SET base_moved_at = pg_catalog.clock_timestamp();
            END IF;
        END $$;
        """

    private let database: PostgresClient
    private let sliceSize: Int64

    /// - Parameters:
    ///   - database: Connects as the schema's owner.
    ///   - sliceSize: The number of accounts after which ``endSessions(by:going:)`` calls `going`.
    public init(database: PostgresClient, sliceSize: Int64 = 500) {
        self.database = database
        self.sliceSize = sliceSize
    }

    /// Moves the base. No number is then issued twice, and each device lists everything once.
    ///
    /// - Returns: The new base.
    /// - Throws: ``InstallationError/missing``, ``DatabaseIsStandby``, or a `PostgresError`.
    public func moveBase(by signature: AuditSignature) async throws -> Int64 {
        while true {
            guard let found = try await database.execute(ReadDatabase()).first, let known = found.known else {
                throw InstallationError.missing
            }
            guard let fingerprint = found.fingerprint else { throw DatabaseIsStandby() }
            let base = try await database.withTransaction { transaction -> Int64? in
                guard
                    let base = try await RevisionBase.move(
                        from: known, to: fingerprint, at: found.time, in: transaction)
                else { return nil }
                try await transaction.record(
                    AppendAudit(signature, .databaseRestored, detail: "revision base \(base)"))
                return base
            }
            // A server has detected the restore at the same time and recorded the fingerprint.
            if let base { return base }
        }
    }

    /// Ends all sessions of all accounts, one account at a time.
    ///
    /// - Parameters:
    ///   - signature: The actor, for one row in the audit log.
    ///   - going: Receives the number of ended sessions after each slice but the last, and ends the loop by returning
    ///     false.
    /// - Returns: The number of ended sessions.
    public func endSessions(by signature: AuditSignature, going: (Int) -> Bool) async throws -> Int {
        var ended = 0
        var last: AccountID?
        var isComplete = false
        repeat {
            let slice = try await database.execute(FindAccountsWithSessions(after: last, limit: sliceSize))
            for account in slice { ended += try await endSessions(of: account, now: signature.now) }
            last = slice.last
            isComplete = slice.count < sliceSize
        } while !isComplete && going(ended)
        let whose = isComplete ? "of all accounts" : "of some accounts, interrupted"
        try await database.withTransaction { [ended, whose] transaction in
            try await transaction.record(
                AppendAudit(signature, .sessionsEnded, detail: "\(ended) sessions \(whose)"))
        }
        return ended
    }

    private func endSessions(of account: AccountID, now: Timestamp) async throws -> Int {
        try await database.withTransaction { transaction in
            // A separate statement: those behind the lock see the state at the time when it was granted.
            guard try await transaction.execute(LockAccountWholly(accountID: account)).first != nil else { return 0 }
            let removal = RemoveAllSessions(accountID: account, exception: nil, now: now)
            let ended = try await transaction.endSessions(removal)
            try await transaction.note(
                RecordSecurityEvent(accountID: account, kind: .sessionsEnded, now: now, count: Int64(max(ended, 1))))
            return ended
        }
    }
}

/// Finds accounts with sessions, live or not, in the order of ids behind `after`.
struct FindAccountsWithSessions: Statement {
    typealias Row = AccountID

    let after: AccountID?
    let limit: Int64

    private var lowest: AccountID { after ?? AccountID(.zero) }

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT DISTINCT s.account_id FROM saltern.sessions s WHERE s.account_id > \(\.lowest)
            ORDER BY s.account_id LIMIT \(\.limit)
        """
}
