internal import HTTPCore
internal import Postgres

/// What one request may do with the account that its token names: read and write, always together with the look-up
/// of the session, in one round trip and one transaction.
///
/// An endpoint has no other way to the rows of an account, so it cannot forget to authenticate.
final class Authorization {
    let caller: Caller
    let database: PostgresClient
    let attempts: Attempts
    private let touchInterval: Duration

    /// The account, once its session was found to be live. It names the account in the log and permits nothing.
    var authenticatedAccount: AccountID?

    /// Reads the request's token. Nothing is looked up yet.
    /// - Throws: ``Unauthenticated`` when there is none or it is malformed.
    init(
        _ request: Request, database: PostgresClient, attempts: Attempts, now: Timestamp, policy: SessionPolicy
    ) throws(Unauthenticated) {
        caller = Caller(try PresentedToken(request.head.fields), now: now, policy: policy)
        self.database = database
        self.attempts = attempts
        touchInterval = policy.touchInterval
    }

    /// The account that the token names.
    var accountID: AccountID { caller.accountID }

    /// The hash of the caller's own token.
    var tokenHash: TokenHash { caller.tokenHash }

    /// The time of this request.
    var now: Timestamp { caller.now }

    /// A session that was last used at or before it is not live.
    var idleSince: Timestamp { caller.idleSince }

    /// Reads what belongs to the account.
    /// - Throws: ``Unauthenticated`` when the session is not live, or a `PostgresError`.
    func read<Read: AccountRead>(_ read: Read) async throws -> [Read.Row] {
        let (sessions, rows) = try await database.execute(
            Authenticate(caller: caller, touchInterval: touchInterval), Owned(accountID: caller.accountID, read: read))
        try await accept(sessions)
        return rows
    }

    /// Changes what belongs to the account.
    /// - Throws: ``Unauthenticated`` when the session is not live, or a `PostgresError`.
    func write<Write: AccountWrite>(_ write: Write) async throws -> [Write.Row] {
        let guarded = Guarded(caller: caller, write: write)
        if Write.locksAccount {
            let (sessions, rows) = try await database.execute(
                AuthenticateForWrite(caller: caller, touchInterval: touchInterval), guarded)
            try await accept(sessions)
            // It may have ended while the first statement waited for the lock; the second one has changed nothing then.
            if rows.isEmpty {
                try await accept(database.execute(Authenticate(caller: caller, touchInterval: touchInterval)))
            }
            return rows
        }
        let (sessions, rows) = try await database.execute(
            Authenticate(caller: caller, touchInterval: touchInterval), guarded)
        try await accept(sessions)
        return rows
    }

    /// Changes what belongs to the account, and in the same transaction something else that belongs to the change.
    /// - Parameters:
    ///   - write: Locks the account's row.
    ///   - next: Must change nothing unless `write` has.
    func write<Write: AccountWrite, Next: Statement>(
        _ write: Write, followedBy next: Next
    ) async throws -> [Write.Row] {
        let (sessions, rows, _) = try await database.execute(
            AuthenticateForWrite(caller: caller, touchInterval: touchInterval), Guarded(caller: caller, write: write),
            next)
        try await accept(sessions)
        return rows
    }

    /// Runs `body` in a transaction that has found the session to be live and holds the lock of the account's row.
    /// - Throws: ``Unauthenticated`` when the session is not live, a `PostgresError`, or what `body` throws.
    func transaction<Result>(_ body: (Transaction) async throws -> Result) async throws -> Result {
        let (session, result) = try await database.withTransaction { transaction in
            // The session may have ended while the first statement waited for the lock; the second one sees it.
            let (_, sessions) = try await transaction.execute(
                AuthenticateForWrite(caller: caller, touchInterval: touchInterval),
                Authenticate(caller: caller, touchInterval: touchInterval))
            guard let session = sessions.first else { throw Unauthenticated() }
            authenticatedAccount = caller.accountID
            return (session, try await body(transaction))
        }
        try await accept([session])
        return result
    }

    private func accept(_ sessions: [LiveSession]) async throws {
        guard let session = sessions.first else { throw Unauthenticated() }
        authenticatedAccount = caller.accountID
        guard session.isTouchDue else { return }
        // The request itself has succeeded; a session whose use could not be recorded is only a little older.
        _ = try? await database.execute(TouchSession(caller: caller, touchInterval: touchInterval))
    }
}
