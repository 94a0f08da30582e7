public import Postgres
internal import Synchronization

/// Checks each new connection before its first use, and the database every few seconds. It sets the node's clock by the
/// database's and detects database rollbacks. After a rollback it first moves the revision base.
///
/// A promoted standby needs a new connection. A restored database does as well, unless its tables are replaced while
/// the server runs; the periodic checks serve that case.
///
/// A new epoch of connections begins in two cases: a new connection leads to another primary, or one in use leads
/// to an unfinished restore. All loops then close the earlier connections. A rejected new connection does not affect
/// others, because one host name can have several servers. All loops share one watch.
public final class DatabaseWatch: Sendable {
    private let clock: DatabaseClock?
    private let failover: FailoverKind
    private let epoch: ConnectionEpoch
    private let log: Log
    private let told = Mutex(Reported())

    /// The gathered facts and the states that were logged.
    private struct Reported {
        var agreement: ClockAgreement?
        var detectsFailovers = true
        var knowledge = DatabaseKnowledge()
    }

    /// The number of attempts while other nodes record a change first.
    private static let attemptLimit = 5

    /// - Parameters:
    ///   - clock: The clock to set. Nil for none.
    ///   - failover: The consequence of a new timeline.
    ///   - epoch: The epoch of the clients whose connections are checked.
    ///   - log: Receives the findings.
    public init(
        clock: DatabaseClock?, failover: FailoverKind, epoch: ConnectionEpoch = ConnectionEpoch(), log: Log
    ) {
        self.clock = clock
        self.failover = failover
        self.epoch = epoch
        self.log = log
    }

    /// Checks a connection before its first use, for `PostgresConfiguration.onConnected`.
    ///
    /// - Throws: ``DatabaseIsStandby``, ``DatabaseIsSuperseded``, ``UnfinishedRestore``, ``InstallationError/missing``
    ///   while tables are replaced by other means, or a `PostgresError`, also for a foreign schema. The connection must
    ///   then not be used.
    public func welcome(_ connection: PostgresLease) async throws {
        for _ in 0..<Self.attemptLimit where try await isSettled(on: connection) { return }
        throw PostgresError.unavailable(retryAfter: .seconds(1))
    }

    /// Checks a database in use. If a new connection would be rejected, all connections are closed.
    ///
    /// - Throws: The errors of ``welcome(_:)``.
    public func look(_ database: PostgresClient) async throws {
        let asked = clock?.reading
        let present = epoch.current
        let finding = try await ask(in: present) { () async throws(PostgresError) in
            try await database.execute(ReadDatabase()).first
        } isMarked: { () async throws(PostgresError) in
            try await database.execute(FindRestoreMark()).first ?? false
        }
        switch finding {
        case .overtaken: return
        case .refused(let error, let isOfOthers):
            if isOfOthers, epoch.current == present { epoch.begin() }
            throw error
        case .settled(let found, _):
            guard found.known == nil || found.known == found.fingerprint else {
                return try await database.withConnection { try await welcome($0) }
            }
            note(found, askedAt: asked)
        }
    }

    /// The result of a query.
    private enum Observation {
        /// The facts, and the epoch of the connection.
        case settled(ReadDatabase.Row, in: Int)
        /// A new epoch has begun meanwhile, so the query must be repeated.
        case overtaken
        case refused(any Error, isOfOthers: Bool)
    }

    /// Sends the query and evaluates its result.
    ///
    /// - Parameters:
    ///   - present: The epoch in which it is sent.
    ///   - connection: The new connection to check, if any.
    ///   - isMarked: Checks for the mark of a restore if the tables are missing.
    private func ask(
        in present: Int, at connection: PostgresLease? = nil,
        _ body: () async throws(PostgresError) -> ReadDatabase.Row?,
        isMarked: () async throws(PostgresError) -> Bool
    ) async throws -> Observation {
        let found: ReadDatabase.Row?
        var failed: DatabaseKnowledge.Verdict?
        do throws(PostgresError) { found = try await body() } catch {
            found = nil
            failed = DatabaseKnowledge.judge(error)
            if case .isBad? = failed, (try? await isMarked()) ?? false { failed = .isBad(UnfinishedRestore()) }
        }
        return told.withLock { told in
            let verdict = failed ?? found.map { told.knowledge.judge($0) }
            switch (verdict, found) {
            case (.isNew, let found?): return .settled(found, in: epoch.begin(at: connection))
            case (.isGood, let found?): return epoch.current == present ? .settled(found, in: present) : .overtaken
            case (.isBad(let error), _): return .refused(error, isOfOthers: true)
            case (.isOfNoUse(let error), _): return .refused(error, isOfOthers: false)
            default: return .refused(InstallationError.missing, isOfOthers: false)
            }
        }
    }

    /// - Returns: True if the connection may be used. False if another node has just recorded a change.
    private func isSettled(on connection: PostgresLease) async throws -> Bool {
        let asked = clock?.reading
        let finding = try await ask(in: epoch.current, at: connection) { () async throws(PostgresError) in
            try await connection.execute(ReadDatabase()).first
        } isMarked: { () async throws(PostgresError) in
            try await connection.execute(FindRestoreMark()).first ?? false
        }
        guard case .settled(let found, let present) = finding else {
            if case .refused(let error, _) = finding { throw error }
            return false
        }
        connection.epoch = present
        note(found, askedAt: asked)
        // A probe must be quick: later connections write the changes.
        guard !connection.isProbe, let fingerprint = found.fingerprint, let known = found.known, known != fingerprint
        else { return true }
        if failover == .synchronous, fingerprint.isLaterTimeline(of: known) {
            let note = NoteFingerprint(known: known, fingerprint: fingerprint)
            guard try await connection.execute(note).first != nil else { return false }
            log.write(.warning, "failover_without_loss")
            return true
        }
        let base = try await RevisionBase.move(from: known, to: fingerprint, at: found.time, on: connection)
        guard let base else { return false }
        log.write(.warning, "time_went_back", ["revisionBase": Int(base)])
        return true
    }

    private func note(_ found: ReadDatabase.Row, askedAt asked: DatabaseClock.Reading?) {
        if let fingerprint = found.fingerprint {
            let isNews = told.withLock { told in
                defer { told.detectsFailovers = fingerprint.detectsFailovers }
                return told.detectsFailovers != fingerprint.detectsFailovers
            }
            if isNews, !fingerprint.detectsFailovers { log.write(.warning, "failovers_not_noticed") }
        }
        guard let clock, let asked else { return }
        clock.set(to: found.time, askedAt: asked)
        guard let difference = clock.difference else { return }
        let agreement = ClockAgreement(difference: difference)
        let isNews = told.withLock { told in
            defer { told.agreement = agreement }
            return told.agreement != agreement
        }
        guard isNews else { return }
        switch agreement {
        case .agrees: log.write(.info, "clock_agrees", ["differenceMicroseconds": difference])
        case .differs: log.write(.warning, "clock_differs", ["differenceMicroseconds": difference])
        case .isFarOff: log.write(.error, "clock_far_off", ["differenceMicroseconds": difference])
        }
    }
}

/// The error of a standby. Its data may be old, and its promotion may be a database rollback.
public struct DatabaseIsStandby: Error, CustomStringConvertible {
    public var description: String { "the PostgreSQL server is a standby" }
}

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

/// The error of a database during an unfinished restore, in which sessions may still be live. Its mark is the schema
/// `saltern_restoring`, which `saltern restore` creates first and removes last.
public struct UnfinishedRestore: Error, CustomStringConvertible {
    /// The condition that the mark of a restore exists.
    public static let isMarked: SQLFragment = "pg_catalog.to_regnamespace('saltern_restoring') IS NOT NULL"

    public init() {}

    public var description: String {
        "a restore of the database is not finished; if none is running: without a schema saltern, restore again, "
            + "otherwise finish it with `saltern migrate up` and `saltern restored --end-sessions`, or remove that schema and "
            + "restore again"
    }
}
