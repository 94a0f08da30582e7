public import Postgres
internal import Synchronization

/// What a node does on each new connection to its database, before anybody uses it, and once a minute: it sets its clock
/// by the database's, and finds out whether time went back in the database. Then it moves the revision base first.
///
/// A promoted standby cannot be reached by a connection from before, and a restored database not without a new one, unless
/// its tables are replaced under the server's hands; that is what the look once a minute is for. One for all loops.
public final class DatabaseWatch: Sendable {
    private let clock: DatabaseClock?
    private let failover: FailoverKind
    private let log: Log
    private let told = Mutex(Told())

    /// What is known, and what the log was told.
    private struct Told {
        var agreement: ClockAgreement?
        var tellsFailovers = true
        /// Whether the database had an installation: one that has none any more is being restored just now.
        var hasInstallation = false
    }

    /// How often somebody may be faster in noting a change before it is given up.
    private static let attemptLimit = 5

    /// - Parameters:
    ///   - clock: The clock to set; nil to set none.
    ///   - failover: What a new timeline means.
    ///   - log: Where it says what it has found.
    public init(clock: DatabaseClock?, failover: FailoverKind, log: Log) {
        self.clock = clock
        self.failover = failover
        self.log = log
    }

    /// Looks, on a connection that nobody else uses yet; for ``PostgresConfiguration/onConnected``.
    /// - Throws: ``DatabaseIsStandby``, ``InstallationError/missing`` while a restore is under way, or a `PostgresError`,
    ///   also when the schema is not this program's: the connection is not to be used.
    public func welcome(_ connection: PostgresLease) async throws {
        for _ in 0..<Self.attemptLimit where try await isSettled(on: connection) { return }
        throw PostgresError.unavailable(retryAfter: .seconds(1))
    }

    /// Looks at a database that is in use.
    public func look(_ database: PostgresClient) async throws {
        let asked = clock?.reading
        guard let found = try await database.execute(ReadDatabase()).first else { return }
        guard found.known == nil || found.known == found.fingerprint else {
            return try await database.withConnection { try await welcome($0) }
        }
        note(found, askedAt: asked)
    }

    /// - Returns: Whether the connection may be used; false when somebody else has just noted something.
    private func isSettled(on connection: PostgresLease) async throws -> Bool {
        let asked = clock?.reading
        guard let found = try await connection.execute(ReadDatabase()).first,
            let fingerprint = found.fingerprint
        else { throw DatabaseIsStandby() }
        let isComplete = told.withLock { told in
            told.hasInstallation = told.hasInstallation || found.known != nil
            return found.known != nil || !told.hasInstallation
        }
        guard isComplete else { throw InstallationError.missing }
        note(found, askedAt: asked)
        guard let known = found.known, known != fingerprint else { return true }
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
                defer { told.tellsFailovers = fingerprint.tellsFailovers }
                return told.tellsFailovers != fingerprint.tellsFailovers
            }
            if isNews, !fingerprint.tellsFailovers { log.write(.warning, "failovers_not_noticed") }
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
