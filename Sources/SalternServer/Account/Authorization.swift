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
    /// Who sends the request.
    let client: ClientAddress
    private let clock: any WallClock
    private let policy: SessionPolicy
    private let known: KnownSessions

    /// Who sends more sealed bytes does not share a connection: PostgreSQL takes what comes behind them when it has stored
    /// them, and that can be other accounts'.
    static let sharedByteLimit = 262_144

    /// The account, once its session was found to be live. It names the account in the log and permits nothing.
    var authenticatedAccount: AccountID?

    /// Reads the request's token. Nothing is looked up yet.
    /// - Throws: ``Unauthenticated`` when there is none or it is malformed.
    init(
        _ request: Request, database: PostgresClient, attempts: Attempts, clock: any WallClock, policy: SessionPolicy,
        known: KnownSessions
    ) throws(Unauthenticated) {
        caller = Caller(try PresentedToken(request.head.fields), now: clock.now, policy: policy)
        self.database = database
        self.attempts = attempts
        client = request.client
        self.clock = clock
        self.policy = policy
        self.known = known
    }

    /// What requests of the account lock.
    var key: RequestKey { .account(caller.accountID) }

    /// How a transaction has its connection that may take seconds or minutes.
    var longUse: LeaseUse { .long(by: .network(of: client)) }

    /// The account that the token names.
    var accountID: AccountID { caller.accountID }

    /// The hash of the caller's own token.
    var tokenHash: TokenHash { caller.tokenHash }

    /// Reads on with the request's session for as long as the reply takes.
    var reader: AccountReader {
        AccountReader(
            session: SessionKey(accountID: accountID, tokenHash: tokenHash), database: database, clock: clock,
            policy: policy)
    }

    /// The time of this request.
    var now: Timestamp { caller.now }

    /// A session that was last used at or before it is not live.
    var idleSince: Timestamp { caller.idleSince }

    /// Another version of an item is due to be kept when the last one was kept at or before it.
    var keptSince: Timestamp { caller.keptSince }

    /// Looks the session up and does nothing else.
    /// - Returns: The account.
    /// - Throws: ``Unauthenticated`` when the session is not live, or a `PostgresError`.
    func identify() async throws -> AccountID {
        let sessions = try await database.execute(Authenticate(caller: caller))
        try find(sessions)
        known.insert(tokenHash)
        return accountID
    }

    /// Looks the session up when nobody has lately: whoever has none waits for no account (``KnownSessions``).
    private func requireKnown() async throws {
        if !known.contains(tokenHash) { _ = try await identify() }
    }

    /// Reads what belongs to the account.
    /// - Throws: ``Unauthenticated`` when the session is not live, or a `PostgresError`.
    func read<Read: AccountRead>(_ read: Read) async throws -> [Read.Row] {
        let (sessions, rows) = try await database.execute(
            Authenticate(caller: caller), Owned(accountID: caller.accountID, read: read))
        try accept(sessions)
        return rows
    }

    /// Changes what belongs to the account.
    /// - Throws: ``Unauthenticated`` when the session is not live, or a `PostgresError`.
    func write<Write: AccountWrite>(_ write: Write) async throws -> [Write.Row] {
        try await confirm(try await send(write))
    }

    /// Changes what belongs to the account when it is the case that `write` is for.
    /// - Returns: No rows when nothing was changed, whatever the reason, be it the session. Then the full statement is to be
    ///   asked.
    func writeOnShortPath<Write: ShortPath>(_ write: Write) async throws -> [Write.Row] {
        try await requireKnown()
        let write = Guarded(caller: caller, write: write)
        let rows =
            write.write.isLong
            ? try await database.withTransaction(key: key) { try await $0.execute(write) }
            : try await database.execute(write, key: key)
        return try accept(rows)
    }

    /// The same, and in the same transaction what belongs to the change.
    /// - Parameters:
    ///   - next: Must change nothing unless `write` has.
    ///   - byteCount: The sealed bytes that `next` carries.
    func writeOnShortPath<Write: ShortPath, Next: Statement>(
        _ write: Write, followedBy next: Next, of byteCount: Int
    ) async throws -> [Write.Row] {
        let (rows, _) = try await send(
            Guarded(caller: caller, write: write), next, alone: byteCount > Self.sharedByteLimit)
        return try accept(rows)
    }

    /// The same with two statements behind the change, and what the last one returns.
    func writeOnShortPath<Write: ShortPath, Next: Statement, Last: Statement>(
        _ write: Write, followedBy next: Next, _ last: Last
    ) async throws -> (first: [Write.Row], last: [Last.Row]) {
        let (rows, _, lastRows) = try await send(
            Guarded(caller: caller, write: write), next, last, alone: false)
        return (try accept(rows), lastRows)
    }

    /// Takes the session with which a short path has changed something.
    private func accept<Row: ShortPathRow>(_ rows: [Row]) throws(Unauthenticated) -> [Row] {
        if let row = rows.first { try accept([LiveSession(isTouchDue: row.isTouchDue)]) }
        return rows
    }

    /// Ends sessions of the account.
    /// - Throws: ``Unauthenticated`` when the caller's is not live, or a `PostgresError`.
    func end<Removal: CallersSessionRemoval>(_ removal: Removal) async throws -> [Removal.Row] {
        try await write(RecordCallersSessionEnds(removal: removal), then: removal)
    }

    /// Changes what belongs to the account by two statements of one transaction, of which the second one answers.
    /// - Throws: ``Unauthenticated`` when the session is not live, or a `PostgresError`.
    func write<First: AccountWrite, Second: AccountWrite>(
        _ first: First, then second: Second
    ) async throws -> [Second.Row] {
        let (sessions, _, rows) = try await send(
            AuthenticateForWrite(caller: caller), Guarded(caller: caller, write: first),
            Guarded(caller: caller, write: second), alone: First.needsLease)
        try accept(sessions)
        return try await confirm(rows)
    }

    /// The session may have ended while the first statement waited for the lock; the ones behind it have changed nothing
    /// then.
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

    /// - Parameter alone: Whether the statements have a connection for themselves.
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

    /// Changes what belongs to the account, and in the same transaction something else that belongs to the change.
    /// - Parameters:
    ///   - next: Must change nothing unless `write` has.
    ///   - byteCount: The sealed bytes that `next` carries.
    func write<Write: AccountWrite, Next: Statement>(
        _ write: Write, followedBy next: Next, of byteCount: Int = 0
    ) async throws -> [Write.Row] {
        let (sessions, rows, _) = try await send(
            AuthenticateForWrite(caller: caller), Guarded(caller: caller, write: write),
            next, alone: Write.needsLease || byteCount > Self.sharedByteLimit)
        try accept(sessions)
        return rows
    }

    /// The same with two statements behind the change, and what the last one returns.
    func write<Write: AccountWrite, Next: Statement, Last: Statement>(
        _ write: Write, followedBy next: Next, _ last: Last, of byteCount: Int = 0
    ) async throws -> (first: [Write.Row], last: [Last.Row]) {
        let (sessions, rows, _, lastRows) = try await send(
            AuthenticateForWrite(caller: caller), Guarded(caller: caller, write: write),
            next, last, alone: Write.needsLease || byteCount > Self.sharedByteLimit)
        try accept(sessions)
        return (rows, lastRows)
    }

    /// The same with three.
    func write<Write: AccountWrite, Next: Statement, Third: Statement, Last: Statement>(
        _ write: Write, followedBy next: Next, _ third: Third, _ last: Last
    ) async throws -> (first: [Write.Row], last: [Last.Row]) {
        let (sessions, rows, _, _, lastRows) = try await send(
            AuthenticateForWrite(caller: caller), Guarded(caller: caller, write: write),
            next, third, last, alone: Write.needsLease)
        try accept(sessions)
        return (rows, lastRows)
    }

    /// Runs `body` in a transaction that has found the session to be live and holds the lock of the account's row.
    /// - Throws: ``Unauthenticated`` when the session is not live, a `PostgresError`, or what `body` throws.
    func transaction<Result>(_ body: (Transaction) async throws -> Result) async throws -> Result {
        try await requireKnown()
        let (session, result) = try await database.withTransaction(key: key) { transaction in
            // The session may have ended while the first statement waited for the lock; the second one sees it. The
            // first one finds nothing when the account is locked by an admin, and then has locked nothing.
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

    /// Runs `body` in a transaction that has found the session to be live and holds the lock of the account's row, with
    /// what a first statement has found, in the same round trip as the lock.
    /// - Parameter first: Must have no row when the session has ended.
    /// - Throws: ``Unauthenticated`` when the session is not live, a `PostgresError`, or what `body` throws.
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

    /// Changes what belongs to the account in a transaction of ``transaction(_:)``.
    func execute<Write: AccountWrite>(
        _ write: Write, in transaction: Transaction
    ) async throws(PostgresError) -> [Write.Row] {
        try await transaction.execute(Guarded(caller: caller, write: write))
    }

    /// Takes the session that was looked up; one that is not there is known no more.
    @discardableResult
    private func find(_ sessions: [LiveSession]) throws(Unauthenticated) -> LiveSession {
        guard let session = sessions.first else {
            known.remove(tokenHash)
            throw Unauthenticated()
        }
        authenticatedAccount = caller.accountID
        return session
    }

    private func accept(_ sessions: [LiveSession]) throws(Unauthenticated) {
        let session = try find(sessions)
        guard session.isTouchDue else { return }
        // Nobody waits for it: a session whose use is not recorded is only a little older.
        database.executeInBackground(TouchSession(caller: caller), about: .session(caller.tokenHash))
    }
}

extension Authorization {
    /// An attempt to show a secret of the account within the session. It counts for the session's own slot, so that a
    /// stolen token keeps no other device out, and serves no better to guess than the token of a device.
    /// - Parameter userid: The account's.
    func attempt(_ userid: Userid) async throws(PostgresError) -> ThrottledCheck {
        let login = try await database.execute(FindLogin(userid: userid)).first
        let device = KnownDevice.ofSession(accountID, tokenHash, generation: login?.deviceGeneration ?? 0)
        return ThrottledCheck(attempts: attempts, userid: userid, device: device, client: client)
    }
}
