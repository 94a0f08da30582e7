public import Postgres
internal import Synchronization

/// What a node does on each new connection to its database, before anybody uses it, and every few seconds: it sets its clock
/// by the database's, and finds out whether time went back in the database. Then it moves the revision base first.
///
/// A promoted standby cannot be reached by a connection from before, and a restored database not without a new one, unless
/// its tables are replaced under the server's hands; that is what the looks are for. A new connection that leads to another
/// primary, and one in use that leads to a restore that is not finished, begin an epoch: those from before are given up, on
/// all loops. A new one that is not welcome says nothing of the others: behind one name there may be several servers. One for
/// all loops.
public final class DatabaseWatch: Sendable {
    private let clock: DatabaseClock?
    private let failover: FailoverKind
    private let epoch: ConnectionGeneration
    private let log: Log
    private let told = Mutex(Reported())

    /// What is known, and what the log was told.
    private struct Reported {
        var agreement: ClockAgreement?
        var detectsFailovers = true
        var knowledge = DatabaseKnowledge()
    }

    /// How often somebody may be faster in noting a change before it is given up.
    private static let attemptLimit = 5

    /// - Parameters:
    ///   - clock: The clock to set; nil to set none.
    ///   - failover: What a new timeline means.
    ///   - epoch: That of the clients whose connections it looks at.
    ///   - log: Where it says what it has found.
    public init(
        clock: DatabaseClock?, failover: FailoverKind, epoch: ConnectionGeneration = ConnectionGeneration(), log: Log
    ) {
        self.clock = clock
        self.failover = failover
        self.epoch = epoch
        self.log = log
    }

    /// Looks, on a connection that nobody else uses yet; for ``PostgresConfiguration/onConnected``.
    /// - Throws: ``DatabaseIsStandby``, ``DatabaseIsSuperseded``, ``UnfinishedRestore``, ``InstallationError/missing`` while
    ///   tables are exchanged by other means, or a `PostgresError`, also when the schema is not this program's: the
    ///   connection is not to be used.
    public func welcome(_ connection: PostgresLease) async throws {
        for _ in 0..<Self.attemptLimit where try await isSettled(on: connection) { return }
        throw PostgresError.unavailable(retryAfter: .seconds(1))
    }

    /// Looks at a database that is in use. When a new connection would not be welcome, all are given up.
    /// - Throws: As ``welcome(_:)`` does.
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

    /// What came of asking.
    private enum Observation {
        /// What was found, and the epoch that the connection is of.
        case settled(ReadDatabase.Row, in: Int)
        /// Another epoch has begun since: it has to be asked once more.
        case overtaken
        case refused(any Error, isOfOthers: Bool)
    }

    /// - Parameters:
    ///   - present: The epoch in which it is asked.
    ///   - connection: A new one, which is asked.
    ///   - isMarked: Asks for the mark of a restore, where what is asked for is not there.
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

    /// - Returns: Whether the connection may be used; false when somebody else has just noted something.
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
        // A scout is to be quick: what is to be written can wait for those that follow.
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

/// The server is a standby: what it has may be old, and when it is promoted, time may have gone back.
public struct DatabaseIsStandby: Error, CustomStringConvertible {
    public var description: String { "the PostgreSQL server is a standby" }
}
