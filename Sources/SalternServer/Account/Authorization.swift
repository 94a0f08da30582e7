internal import HTTPCore
internal import Postgres

/// Reads and changes the account that a request's token names. Each access includes the check of the session, in one
/// round trip and one transaction.
///
/// An endpoint has no other access to an account's rows, so it cannot omit the check.
final class Authorization {
    let caller: Caller
    let database: PostgresClient
    let attempts: Attempts
    /// The address that the request comes from.
    let client: ClientAddress
    private let clock: any WallClock
    private let policy: SessionPolicy
    private let known: KnownSessions
    private let outbox: Outbox
    let door: VaultDoor

    /// Maximum of sealed bytes on a shared connection. PostgreSQL reads the statements behind a longer write, which may
    /// be other accounts', only after it has stored that.
    static let sharedByteLimit = 262_144

    /// The account, once its session was found live. It names the account in the log and grants no access.
    var authenticatedAccount: AccountID?

    /// Reads the request's token, without a query.
    ///
    /// - Throws: ``Unauthenticated`` if it is missing or malformed.
    init(
        _ request: Request, database: PostgresClient, attempts: Attempts, clock: any WallClock, policy: SessionPolicy,
        known: KnownSessions, outbox: Outbox, door: VaultDoor
    ) throws(Unauthenticated) {
        caller = Caller(try PresentedToken(request.head.fields), now: clock.now, policy: policy)
        self.database = database
        self.attempts = attempts
        client = request.client
        self.clock = clock
        self.policy = policy
        self.known = known
        self.outbox = outbox
        self.door = door
    }

    /// The request key of the account.
    var key: RequestKey { .account(caller.accountID) }

    /// The use of a dedicated connection by a transaction that may take seconds or minutes.
    var longUse: LeaseUse { .long(by: .network(of: client)) }

    /// The account that the token names.
    var accountID: AccountID { caller.accountID }

    /// The hash of the caller's own token.
    var tokenHash: TokenHash { caller.tokenHash }

    /// Reads with the request's session while the reply is sent.
    var reader: AccountReader {
        AccountReader(
            session: SessionKey(accountID: accountID, tokenHash: tokenHash), database: database, clock: clock,
            policy: policy)
    }

    /// The time of this request.
    var now: Timestamp { caller.now }

    /// The idle limit: sessions last used at or before it are not live.
    var idleSince: Timestamp { caller.idleSince }

    /// The start of the interval between versions: an item's next version is kept if the last one was kept at or before
    /// it.
    var keptSince: Timestamp { caller.keptSince }

    /// Checks the session and does nothing else.
    ///
    /// - Returns: The account.
    /// - Throws: ``Unauthenticated`` if the session is not live, or a `PostgresError`.
    func identify() async throws -> AccountID {
        let sessions = try await database.execute(Authenticate(caller: caller))
        try find(sessions)
        known.insert(tokenHash)
        return accountID
    }

    /// Checks the session unless this node has found it live recently. A request without a live session therefore never
    /// waits for an account (``KnownSessions``).
    func requireKnown() async throws {
        if !known.contains(tokenHash) { _ = try await identify() }
    }

    /// Reads rows of the account.
    ///
    /// - Throws: ``Unauthenticated`` if the session is not live, or a `PostgresError`.
    func read<Read: AccountRead>(_ read: Read) async throws -> [Read.Row] {
        let (sessions, rows) = try await database.execute(
            Authenticate(caller: caller), Owned(accountID: caller.accountID, read: read))
        try accept(sessions)
        return rows
    }

    /// Changes rows of the account.
    ///
    /// - Throws: ``Unauthenticated`` if the session is not live, or a `PostgresError`.
    func write<Write: AccountWrite>(_ write: Write) async throws -> [Write.Row] {
        try await confirm(try await send(write))
    }

    /// Changes rows of the account if the short path of `write` applies.
    ///
    /// - Returns: No rows if nothing was changed, for any reason, including an ended session. The caller then sends the
    ///   full statement.
    func writeOnShortPath<Write: ShortPath>(_ write: Write) async throws -> [Write.Row] {
        try await requireKnown()
        let write = Guarded(caller: caller, write: write)
        let rows =
            write.write.isLong
            ? try await database.withTransaction(key: key) { try await $0.execute(write) }
            : try await database.execute(write, key: key)
        return try accept(rows)
    }

    /// Changes rows on the short path, and sends one dependent statement in the same transaction.
    ///
    /// - Parameters:
    ///   - next: Must change nothing unless `write` has.
    ///   - byteCount: Sealed bytes in the parameters of `next`.
    func writeOnShortPath<Write: ShortPath, Next: Statement>(
        _ write: Write, followedBy next: Next, of byteCount: Int
    ) async throws -> [Write.Row] {
        let (rows, _) = try await send(
            Guarded(caller: caller, write: write), next, alone: byteCount > Self.sharedByteLimit)
        return try accept(rows)
    }

    /// Changes rows on the short path, sends two dependent statements, and returns the rows of the first and the last.
    func writeOnShortPath<Write: ShortPath, Next: Statement, Last: Statement>(
        _ write: Write, followedBy next: Next, _ last: Last
    ) async throws -> (first: [Write.Row], last: [Last.Row]) {
        let (rows, _, lastRows) = try await send(
            Guarded(caller: caller, write: write), next, last, alone: false)
        return (try accept(rows), lastRows)
    }

    /// Accepts the session with which a short path has changed rows.
    private func accept<Row: ShortPathRow>(_ rows: [Row]) throws(Unauthenticated) -> [Row] {
        if let row = rows.first { try accept([LiveSession(isTouchDue: row.isTouchDue)]) }
        return rows
    }

    /// Ends sessions of the account.
    ///
    /// - Throws: ``Unauthenticated`` if the caller's session is not live, or a `PostgresError`.
    func end<Removal: CallersSessionRemoval>(_ removal: Removal) async throws -> [Removal.Row] {
        guard outbox.gets(.sessionEnded) else {
            return try await write(RecordCallersSessionEnds(removal: removal), then: removal)
        }
        let ends = QueueCallersEnds(removal: removal)
        let (sessions, _, _, _, rows) = try await send(
            AuthenticateForWrite(caller: caller),
            Guarded(caller: caller, write: RecordCallersSessionEnds(removal: removal)),
            Guarded(caller: caller, write: ends), Guarded(caller: caller, write: StoreCallersEnds(queue: ends)),
            Guarded(caller: caller, write: removal), alone: false)
        try accept(sessions)
        return try await confirm(rows)
    }

    /// Changes rows of the account by two statements of one transaction, and returns the rows of the second.
    ///
    /// - Throws: ``Unauthenticated`` if the session is not live, or a `PostgresError`.
    func write<First: AccountWrite, Second: AccountWrite>(
        _ first: First, then second: Second
    ) async throws -> [Second.Row] {
        let (sessions, _, rows) = try await send(
            AuthenticateForWrite(caller: caller), Guarded(caller: caller, write: first),
            Guarded(caller: caller, write: second), alone: First.needsLease)
        try accept(sessions)
        return try await confirm(rows)
    }

    /// Checks the session again if no row was returned. It may have ended while the first statement waited for the
    /// lock; the later statements have then changed nothing.
    private func confirm<Row>(_ rows: [Row]) async throws -> [Row] {
        if rows.isEmpty {
            try accept(try await database.execute(Authenticate(caller: caller)))
        }
        return rows
    }

    private func send<Write: AccountWrite>(_ write: Write) async throws -> [Write.Row] {
        let (sessions, rows) = try await send(
            AuthenticateForWrite(caller: caller), Guarded(caller: caller, write: write),
            alone: write.isLong)
        try accept(sessions)
        return rows
    }

    /// Sends statements under the account's request key.
    ///
    /// - Parameter alone: True for a dedicated connection.
    private func send<each S: Statement>(
        _ statement: repeat each S, alone: Bool
    ) async throws -> (repeat [(each S).Row]) {
        try await requireKnown()
        guard alone else { return try await database.execute(repeat each statement, key: key) }
        return try await database.withTransaction(key: key) { transaction in
            transaction.enqueue(PlanForParameters())
            return try await transaction.execute(repeat each statement)
        }
    }

    /// Changes rows of the account, and sends one dependent statement in the same transaction.
    ///
    /// - Parameters:
    ///   - next: Must change nothing unless `write` has.
    ///   - byteCount: Sealed bytes in the parameters of `next`.
    func write<Write: AccountWrite, Next: Statement>(
        _ write: Write, followedBy next: Next, of byteCount: Int = 0
    ) async throws -> [Write.Row] {
        let (sessions, rows, _) = try await send(
            AuthenticateForWrite(caller: caller), Guarded(caller: caller, write: write),
            next, alone: Write.needsLease || byteCount > Self.sharedByteLimit)
        try accept(sessions)
        return rows
    }

    /// Changes rows of the account, sends two dependent statements, and returns the rows of the first and the last.
    func write<Write: AccountWrite, Next: Statement, Last: Statement>(
        _ write: Write, followedBy next: Next, _ last: Last, of byteCount: Int = 0
    ) async throws -> (first: [Write.Row], last: [Last.Row]) {
        let (sessions, rows, _, lastRows) = try await send(
            AuthenticateForWrite(caller: caller), Guarded(caller: caller, write: write),
            next, last, alone: Write.needsLease || byteCount > Self.sharedByteLimit)
        try accept(sessions)
        return (rows, lastRows)
    }

    /// Changes rows of the account, sends three dependent statements, and returns the rows of the first and the last.
    func write<Write: AccountWrite, Next: Statement, Third: Statement, Last: Statement>(
        _ write: Write, followedBy next: Next, _ third: Third, _ last: Last
    ) async throws -> (first: [Write.Row], last: [Last.Row]) {
        let (sessions, rows, _, _, lastRows) = try await send(
            AuthenticateForWrite(caller: caller), Guarded(caller: caller, write: write),
            next, third, last, alone: Write.needsLease)
        try accept(sessions)
        return (rows, lastRows)
    }

    /// Writes like the function above, with three further statements and an event of the account.
    func write<Write: AccountWrite, Next: Statement, Third: Statement, Fourth: Statement>(
        _ write: Write, followedBy next: Next, _ third: Third, _ fourth: Fourth, _ event: ReportedEvent
    ) async throws -> [Write.Row] {
        let (sessions, rows, _, _, _, _, _) = try await send(
            AuthenticateForWrite(caller: caller), Guarded(caller: caller, write: write),
            next, third, fourth, QueueAccountEvent(event: event), StoreAccountEvent(event: event),
            alone: Write.needsLease)
        try accept(sessions)
        return rows
    }

    /// Runs `body` in a transaction that has found the session live and locked the account's row.
    ///
    /// - Throws: ``Unauthenticated`` if the session is not live, a `PostgresError`, or an error of `body`.
    func transaction<Result>(_ body: (Transaction) async throws -> Result) async throws -> Result {
        try await requireKnown()
        let (session, result) = try await database.withTransaction(key: key) { transaction in
            // The session may have ended while the first statement waited for the lock; the second one detects that.
            // The first returns no row, and locks none, if an admin has locked the account.
            let (held, sessions) = try await transaction.execute(
                AuthenticateForWrite(caller: caller),
                Authenticate(caller: caller))
            if held.isEmpty { try find([]) }
            let session = try find(sessions)
            return (session, try await body(transaction))
        }
        try accept([session])
        return result
    }

    /// Runs `body` in a transaction that has found the session live and locked the account's row. `body` receives the
    /// rows of `first`, which is sent in the same round trip as the lock.
    ///
    /// - Parameter first: Must return no row if the session has ended.
    /// - Throws: ``Unauthenticated`` if the session is not live, a `PostgresError`, or an error of `body`.
    func transaction<First: AccountWrite, Result>(
        after first: First, _ body: (Transaction, [First.Row]) async throws -> Result
    ) async throws -> Result {
        try await requireKnown()
        let (sessions, result) = try await database.withTransaction(key: key) { transaction in
            let (sessions, rows) = try await transaction.execute(
                AuthenticateForWrite(caller: caller),
                Guarded(caller: caller, write: first))
            try find(sessions)
            return (sessions, try await body(transaction, rows))
        }
        try accept(sessions)
        return result
    }

    /// Returns the session that was found. Without one, it removes the session from ``KnownSessions`` and throws
    /// ``Unauthenticated``.
    @discardableResult
    private func find(_ sessions: [LiveSession]) throws(Unauthenticated) -> LiveSession {
        guard let session = sessions.first else {
            known.remove(tokenHash)
            throw Unauthenticated()
        }
        authenticatedAccount = caller.accountID
        return session
    }

    func accept(_ sessions: [LiveSession]) throws(Unauthenticated) {
        let session = try find(sessions)
        guard session.isTouchDue else { return }
        // The request does not wait for it: without the record a session only appears slightly older.
        database.executeInBackground(TouchSession(caller: caller), about: .session(caller.tokenHash))
    }
}

extension Authorization {
    /// Begins a check of one of the account's secrets within the session.
    ///
    /// It counts for the session's own counter. A stolen token therefore blocks no other device, and allows no more
    /// guesses than a device's token.
    ///
    /// - Parameter userid: The account's userid.
    func attempt(_ userid: Userid) async throws(PostgresError) -> ThrottledCheck {
        let login = try await database.execute(FindLogin(userid: userid)).first
        let device = KnownDevice.ofSession(accountID, tokenHash, generation: login?.deviceGeneration ?? 0)
        return ThrottledCheck(attempts: attempts, userid: userid, device: device, client: client)
    }
}
