public import Postgres

/// What an operator does after a restore that the server cannot notice by itself, such as that of a snapshot of the disk.
public struct RestoredDatabase: Sendable {
    /// SQL that moves the base in the transaction that brings the rows back, before anybody can see them. For PostgreSQL's own
    /// programs. A backup from before there was a base has none.
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
        END $$;
        """

    private let database: PostgresClient
    private let sliceSize: Int64

    /// - Parameters:
    ///   - database: Connects as the schema's owner.
    ///   - sliceSize: After how many accounts ``endSessions(by:going:)`` asks whether to go on.
    public init(database: PostgresClient, sliceSize: Int64 = 500) {
        self.database = database
        self.sliceSize = sliceSize
    }

    /// Moves the base, so that no number is given out again and every device lists everything once.
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
            // A server that has just noticed it too has changed what was known.
            if let base { return base }
        }
    }

    /// Ends all sessions of all accounts, an account at a time.
    /// - Parameters:
    ///   - signature: Whose doing it is; one row in the audit log for all.
    ///   - going: Told how many sessions have ended so far, after each slice but the last; says whether to go on.
    /// - Returns: How many sessions have ended.
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
            // In a statement of its own: what follows the lock sees what was there when it was granted.
            guard try await transaction.execute(LockAccountWholly(accountID: account)).first != nil else { return 0 }
            let removal = RemoveAllSessions(accountID: account, exception: nil, now: now)
            let ended = try await transaction.execute(RecordSessionEnds(removal: removal), removal).1.count
            try await transaction.note(
                RecordSecurityEvent(accountID: account, kind: .sessionsEnded, now: now, count: Int64(max(ended, 1))))
            return ended
        }
    }
}

/// Accounts that have sessions, live or not, in the order of their ids, behind `after`.
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
