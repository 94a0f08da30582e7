internal import Postgres

/// Queries the revisions of accounts for a ``RevisionWatcher``.
struct RevisionPoller: Sendable {
    let database: PostgresClient
    let now: Timestamp
    let idleSince: Timestamp
    /// Receives the present revision by position. Nil for a session that is no longer live.
    let report: @Sendable ([Int64: Int64?], FindMovedRevisions.Query) -> Void

    /// The number of concurrent queries. One to an unresponsive node occupies a connection for seconds.
    private static let piecesAtOnce = 4

    /// - Returns: The error, if the query failed.
    func poll(_ query: FindMovedRevisions.Query) async -> PostgresError? {
        let find = FindMovedRevisions(query: query, now: now, idleSince: idleSince)
        do throws(PostgresError) {
            guard let found = try await database.execute(find).first else { return nil }
            var moved = Dictionary(uniqueKeysWithValues: zip(found.positions, found.revisions.map { Int64?($0) }))
            if found.liveCount < query.sessions.count {
                let sessions = try await database.execute(FindLiveSessions(find: find))
                let live = Set(sessions.filter(\.isLive).map(\.position))
                for position in 1...Int64(query.sessions.count) where !live.contains(position) {
                    moved.updateValue(nil, forKey: position)
                }
            }
            report(moved, query)
            return nil
        } catch {
            return error
        }
    }

    /// Queries the accounts of each hash part separately. Except at the first time, one part is queried before the
    /// others, which are skipped if it fails.
    ///
    /// - Returns: The error of a part, and true if the database answers no query at all.
    func pollInPieces(
        _ query: FindMovedRevisions.Query, isFirst: Bool
    ) async -> (failure: PostgresError?, isDown: Bool) {
        var pieces: ArraySlice<FindMovedRevisions.Query>
        do throws(PostgresError) {
            let parts = try await database.execute(FindHashParts(accounts: query.accounts))
            pieces = query.split(by: parts.map(\.part)).shuffled()[...]
        } catch {
            return (error, true)
        }
        if !isFirst, let first = pieces.popFirst(), let failure = await poll(first) { return (failure, false) }
        let failure = await withTaskGroup(of: PostgresError?.self) { group in
            var failure: PostgresError?
            for piece in pieces.prefix(Self.piecesAtOnce) { group.addTask { await poll(piece) } }
            pieces = pieces.dropFirst(Self.piecesAtOnce)
            for await result in group {
                failure = result ?? failure
                if let piece = pieces.popFirst() { group.addTask { await poll(piece) } }
            }
            return failure
        }
        return (failure, false)
    }
}
