internal import HTTPCore
internal import Postgres

extension Authorization {
    /// Reads rows of a vault whose member the caller is.
    ///
    /// - Throws: ``Unauthenticated`` if the session is not live, 404 outside of the vault, or a `PostgresError`.
    func read<Read: Statement>(_ read: Read, in vault: VaultID) async throws -> [Read.Row] {
        let (sessions, members, rows) = try await database.execute(
            Authenticate(caller: caller), IsMember(vaultID: vault, accountID: accountID), read)
        try accept(sessions)
        if members.isEmpty { throw Problem.notFound }
        return rows
    }

    /// Sends a change of a vault's items behind the statement that keeps the session.
    func send<Write: Statement>(_ write: Write, in vault: VaultID) async throws -> [Write.Row] {
        try await requireKnown()
        let (sessions, rows) = try await holdingSession {
            try await database.execute(HoldSession(caller: caller), write, key: .vault(vault))
        }
        try accept(sessions)
        return rows
    }

    /// Sends a change and one dependent statement.
    ///
    /// - Parameter alone: True for a dedicated connection.
    func send<Write: Statement, Next: Statement>(
        _ write: Write, _ next: Next, in vault: VaultID, alone: Bool
    ) async throws -> [Write.Row] {
        try await requireKnown()
        let hold = HoldSession(caller: caller)
        let (sessions, rows, _) = try await holdingSession {
            guard alone else { return try await database.execute(hold, write, next, key: .vault(vault)) }
            return try await database.withTransaction(key: .vault(vault)) { transaction in
                try await transaction.execute(hold, write, next)
            }
        }
        try accept(sessions)
        return rows
    }

    /// Sends a change and two dependent statements, and returns the rows of the first and the last.
    func send<Write: Statement, Next: Statement, Last: Statement>(
        _ write: Write, _ next: Next, _ last: Last, in vault: VaultID
    ) async throws -> (first: [Write.Row], last: [Last.Row]) {
        try await requireKnown()
        let (sessions, rows, _, lastRows) = try await holdingSession {
            try await database.execute(HoldSession(caller: caller), write, next, last, key: .vault(vault))
        }
        try accept(sessions)
        return (rows, lastRows)
    }

    /// Runs `body` in a transaction that keeps the session and has locked the vault's row.
    ///
    /// - Parameter role: The lowest role that suffices.
    /// - Throws: ``Unauthenticated`` if the session is not live, 404 outside of the vault,
    ///   ``VaultProblem/roleTooLow``, a `PostgresError`, or an error of `body`.
    func transaction<Result>(
        in vault: VaultID, atLeast role: VaultRole, use: LeaseUse = .short,
        _ body: (Transaction, VaultSeat) async throws -> Result
    ) async throws -> Result {
        try await requireKnown()
        let (sessions, result) = try await database.withTransaction(key: .vault(vault), use: use) { transaction in
            let (sessions, seats) = try await holdingSession {
                try await transaction.execute(
                    HoldSession(caller: caller), LockVault(find: FindSeat(vaultID: vault, accountID: accountID)))
            }
            // A row that was changed while the statement waited for its lock is read as it is now, the others as they
            // were before: another statement finds the seat.
            let current = try await transaction.execute(FindSeat(vaultID: vault, accountID: accountID))
            guard !seats.isEmpty, let seat = current.first else { throw Problem.notFound }
            guard seat.role >= role else { throw VaultProblem.roleTooLow }
            return (sessions, try await body(transaction, seat))
        }
        try accept(sessions)
        return result
    }

    /// Converts the error of ``HoldSession`` without a live session.
    private func holdingSession<Result>(_ body: () async throws -> Result) async throws -> Result {
        do {
            return try await body()
        } catch let error as PostgresError where error.sqlState == .divisionByZero {
            try accept([])
            throw error
        }
    }
}

extension Authorization {
    /// Runs `body` in a transaction that has found the session live, and has locked the rows of the caller's account
    /// and another one.
    func transaction<Result>(
        lockingWith other: AccountID, _ body: (Transaction) async throws -> Result
    ) async throws -> Result {
        try await requireKnown()
        return try await database.withTransaction(key: key) { transaction in
            for account in [accountID, other].sorted(by: { $0.uuid < $1.uuid }) {
                transaction.enqueue(LockAccount(accountID: account))
            }
            let (_, sessions) = try await transaction.execute(
                AuthenticateForWrite(caller: caller), Authenticate(caller: caller))
            try accept(sessions)
            return try await body(transaction)
        }
    }
}

extension AccountReader {
    /// Reads rows of a vault whose member the caller is.
    ///
    /// - Throws: `ResponseStreamEnded` if the session or the membership has ended, or a `PostgresError`.
    func read<Read: Statement>(_ read: Read, in vault: VaultID) async throws -> [Read.Row] {
        let caller = Caller(session, now: clock.now, policy: policy)
        let (sessions, members, rows) = try await database.execute(
            Authenticate(caller: caller), IsMember(vaultID: vault, accountID: caller.accountID), read)
        guard !sessions.isEmpty, !members.isEmpty else { throw ResponseStreamEnded() }
        return rows
    }
}

extension RequestKey {
    /// The key of changes of a vault.
    static func vault(_ id: VaultID) -> RequestKey { RequestKey(.vault, id.uuid) }
}
