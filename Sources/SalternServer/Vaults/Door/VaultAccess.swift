internal import HTTPCore
internal import Postgres
internal import VaultLog

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

    /// Reads rows of a vault by four statements in one round trip.
    func read<A: Statement, B: Statement, C: Statement, D: Statement>(
        _ first: A, _ second: B, _ third: C, _ fourth: D, in vault: VaultID
    ) async throws -> ([A.Row], [B.Row], [C.Row], [D.Row]) {
        let (sessions, members, a, b, c, d) = try await database.execute(
            Authenticate(caller: caller), IsMember(vaultID: vault, accountID: accountID), first, second, third, fourth)
        try accept(sessions)
        if members.isEmpty { throw Problem.notFound }
        return (a, b, c, d)
    }

    /// Finds the caller's seat for a request about the log, before its body is read.
    ///
    /// - Throws: ``Unauthenticated`` if the session is not live, 404 outside of the vault,
    ///   ``VaultProblem/roleTooLow``, ``VaultProblem/tooManyEntries(wait:)`` after many rejected requests, or a
    ///   `PostgresError`.
    @discardableResult
    func seat(in vault: VaultID, atLeast role: VaultRole) async throws -> VaultSeat {
        let (sessions, seats) = try await database.execute(
            Authenticate(caller: caller), FindSeat(vaultID: vault, accountID: accountID))
        try accept(sessions)
        try admitToLogs()
        guard let seat = seats.first else {
            door.seats.remove(accountID, from: vault)
            throw Problem.notFound
        }
        guard seat.role >= role else { throw VaultProblem.roleTooLow }
        return seat
    }

    /// Rejects the caller after many rejected requests about logs.
    func admitToLogs() throws(VaultProblem) {
        if let wait = door.refusals.wait(of: accountID.uuid) { throw .tooManyEntries(wait: wait) }
    }

    /// Runs `body`, and counts its rejection.
    func countingRefusal<Result>(_ body: () async throws -> Result) async throws -> Result {
        do {
            return try await body()
        } catch let error where error is VaultProblem || error is ItemProblem || error is Problem {
            door.refusals.take(accountID.uuid)
            throw error
        }
    }

    /// Reads the log of a vault, without a lock. The caller must be a member, or have a link.
    func log(of vault: VaultID, pace: Pace) async throws -> MembershipLog {
        try await door.log(of: vault, in: database, pace: pace)
    }

    /// Sends a change of a vault's items behind the statement that keeps the session.
    func send<Write: Statement>(_ write: Write, in vault: VaultID) async throws -> [Write.Row] {
        let (sessions, rows) = try await queueing(for: vault) {
            try await database.execute(HoldSession(caller: caller), write, key: .vault(vault, of: accountID))
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
        let hold = HoldSession(caller: caller)
        let (sessions, rows, _) = try await queueing(for: vault) {
            guard alone else { return try await database.execute(hold, write, next, key: .vault(vault, of: accountID)) }
            return try await database.withTransaction(key: .vault(vault, of: accountID)) { transaction in
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
        let (sessions, rows, _, lastRows) = try await queueing(for: vault) {
            try await database.execute(
                HoldSession(caller: caller), write, next, last, key: .vault(vault, of: accountID))
        }
        try accept(sessions)
        return (rows, lastRows)
    }

    /// Runs `body` in a transaction that keeps the session and has locked the vault's row.
    ///
    /// - Parameters:
    ///   - role: The lowest role that suffices.
    ///   - lane: The queue of the vault.
    /// - Throws: ``Unauthenticated`` if the session is not live, 404 outside of the vault,
    ///   ``VaultProblem/roleTooLow``, a `PostgresError`, or an error of `body`.
    func transaction<Result>(
        in vault: VaultID, atLeast role: VaultRole, lane: VaultQueues.Lane = .items,
        _ body: (Transaction, VaultSeat) async throws -> Result
    ) async throws -> Result {
        let find = FindSeat(vaultID: vault, accountID: accountID)
        let (sessions, result) = try await queueing(for: vault, lane, atLeast: role) {
            try await database.withTransaction(key: lane.key(of: vault, for: accountID)) { transaction in
                let (sessions, seats) = try await transaction.execute(
                    HoldSession(caller: caller), LockVault(find: find))
                // A row that was changed while the statement waited for its lock is read as it is now, the others as
                // they were before: another statement finds the seat.
                let current = try await transaction.execute(find)
                guard !seats.isEmpty, let seat = current.first else {
                    door.seats.remove(accountID, from: vault)
                    throw Problem.notFound
                }
                guard seat.role >= role else {
                    door.seats.remove(accountID, from: vault)
                    throw VaultProblem.roleTooLow
                }
                return (sessions, try await body(transaction, seat))
            }
        }
        try accept(sessions)
        return result
    }

    /// Runs `body` with the log in a transaction that keeps the session and has locked the vault's row. The log is read
    /// before the lock; behind it only new entries are.
    ///
    /// - Throws: The errors of ``transaction(in:atLeast:lane:_:)``. Rejections count (``VaultDoor/refusals``).
    func transaction<Result>(
        onLogOf vault: VaultID, atLeast role: VaultRole, pace: Pace,
        _ body: (Transaction, VaultSeat, StoredLog) async throws -> Result
    ) async throws -> Result {
        try await countingRefusal {
            _ = try await log(of: vault, pace: pace)
            return try await transaction(in: vault, atLeast: role, lane: .log) { transaction, seat in
                let stored = try await StoredLog(of: vault, in: transaction, door.logs, pace: pace, now: now)
                return try await body(transaction, seat, stored)
            }
        }
    }

    /// Runs `body` in a transaction that has locked the vault's row for a long time. It does not keep the session: the
    /// end of a session and an admin's lock wait for no deletion of a large vault. The session is checked again behind
    /// `body`, so nothing is committed after its end.
    func longTransaction<Result>(
        in vault: VaultID, _ body: (Transaction, VaultSeat) async throws -> Result
    ) async throws -> Result {
        let find = FindSeat(vaultID: vault, accountID: accountID)
        return try await queueing(for: vault, .log, atLeast: .reader) {
            try await database.withTransaction(key: .vaultLog(vault, of: accountID), use: longUse) { transaction in
                _ = try await transaction.execute(LockVault(find: find))
                let (sessions, seats) = try await transaction.execute(Authenticate(caller: caller), find)
                try accept(sessions)
                guard let seat = seats.first else { throw Problem.notFound }
                let result = try await body(transaction, seat)
                try accept(try await transaction.execute(Authenticate(caller: caller)))
                return result
            }
        }
    }

    /// Runs a request that queues for a vault. The caller's session and role are checked before, unless this node has
    /// found them recently.
    ///
    /// - Parameter role: The lowest role that suffices. Items are for writers.
    private func queueing<Result>(
        for vault: VaultID, _ lane: VaultQueues.Lane = .items, atLeast role: VaultRole = .writer,
        _ body: () async throws -> Result
    ) async throws -> Result {
        try await requireKnown()
        if !door.seats.contains(accountID, in: vault, atLeast: role) {
            let find = FindSeat(vaultID: vault, accountID: accountID)
            let (sessions, seats) = try await database.execute(Authenticate(caller: caller), find)
            try accept(sessions)
            guard let seat = seats.first else { throw Problem.notFound }
            door.seats.insert(accountID, in: vault, as: seat.role)
            guard seat.role >= role else { throw VaultProblem.roleTooLow }
        }
        for wait in Self.waits {
            do {
                return try await door.queues.run(accountID, vault, lane, body)
            } catch let error as PostgresError where error.sqlState == .divisionByZero {
                // The session has ended, or a change has locked it or its account. The request waits for that change
                // outside of the vault's queue.
                try accept(try await database.execute(Authenticate(caller: caller)))
                try await Task.sleep(for: .milliseconds(wait))
            }
        }
        throw PostgresError.queueFull
    }

    /// The times after the attempts of ``HoldSession``, in milliseconds: two seconds together.
    private static var waits: [Int] { [50, 100, 200, 400, 600, 650] }
}

extension Authorization {
    /// Runs `body` in a transaction under the vault's key that has found the session live and locked the caller's
    /// account, and another one.
    ///
    /// Such a transaction waits for the vault's row. Under the account's key each of several accounts would occupy a
    /// connection meanwhile. It waits for accounts only shortly, because other members wait with it.
    func transaction<Result>(
        joining vault: VaultID, lockingWith other: AccountID? = nil,
        _ body: (Transaction) async throws -> Result
    ) async throws -> Result {
        try await requireKnown()
        return try await door.queues.run(accountID, vault, .log) {
            try await database.withTransaction(key: .vaultLog(vault, of: accountID)) { transaction in
                transaction.enqueue(LimitLockWait(milliseconds: 200))
                for account in [accountID, other ?? accountID].sorted(by: { $0.uuid < $1.uuid }) {
                    transaction.enqueue(LockAccount(accountID: account))
                }
                let (held, sessions) = try await transaction.execute(
                    AuthenticateForWrite(caller: caller), Authenticate(caller: caller))
                // An admin has locked the account.
                if held.isEmpty { try accept([]) }
                try accept(sessions)
                transaction.enqueue(LimitLockWait(milliseconds: 5_000))
                return try await body(transaction)
            }
        }
    }
}

extension VaultDoor {
    /// Reads the log of a vault, without a lock.
    ///
    /// - Throws: 404 without the vault, or a `PostgresError`.
    func log(of vault: VaultID, in database: PostgresClient, pace: Pace) async throws -> MembershipLog {
        // The owner can replace the entries of a recovering vault between two reads.
        for _ in 0..<3 {
            guard let state = try await database.execute(FindVaultState(vaultID: vault)).first else {
                throw Problem.notFound
            }
            do {
                return try await logs.read(vault, upTo: state.head, pace: pace) { try await database.execute($0) }
            } catch is Problem {
                continue
            }
        }
        throw Problem.internalError
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
    /// The key of changes of a vault's items. Members are served round robin.
    static func vault(_ id: VaultID, of member: AccountID? = nil) -> RequestKey {
        RequestKey(.vault, id.uuid, of: member?.uuid)
    }

    /// The key of changes of a vault's log and members. Members are served round robin.
    static func vaultLog(_ id: VaultID, of member: AccountID? = nil) -> RequestKey {
        RequestKey(.vaultLog, id.uuid, of: member?.uuid)
    }
}
