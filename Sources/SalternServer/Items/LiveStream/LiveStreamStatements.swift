internal import Cryptography
internal import Postgres

/// Finds the account's revision, or the base if that is higher, and the revision of its list of vaults.
struct FindRevision: AccountRead {
    struct Row: Sendable {
        let revision: Int64
        /// The revision of the latest change of the list of vaults. 0 for an account that never had a vault.
        let listRevision: Int64
    }

    static let sql: AccountSQL<Self> = """
        SELECT \(AccountCounter.head("a.revision")), coalesce(a.vaults_revision, 0)
        FROM saltern.accounts a WHERE a.account_id = \(.account)
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row { try row.read(Row.init) }
}

/// Checks all sessions with streams on a node: returns the number of live ones, and those whose account's revision
/// differs from the node's (see ``FindRevision``). If fewer sessions are live than were sent, ``FindLiveSessions``
/// identifies them.
///
/// It is the only statement about many accounts, because one is sent for all of them at each tick. It reads two rows by
/// primary key for each session. A cluster sends it once to each shard with one of the accounts, and adds the results.
struct FindMovedRevisions: Statement {
    /// The sessions in the query, in order.
    let query: Query
    let now: Timestamp
    let idleSince: Timestamp

    /// Sessions with the last revision of each one's account, as columns for the statement.
    struct Query: Sendable {
        var sessions: [SessionKey] = []
        var accounts: [UUID] = []
        var tokenHashes: [[UInt8]] = []
        var revisions: [Int64] = []

        mutating func append(_ session: SessionKey, revision: Int64) {
            sessions.append(session)
            accounts.append(session.accountID.uuid)
            tokenHashes.append(session.tokenHash.digest.withUnsafeBytes { [UInt8]($0) })
            revisions.append(revision)
        }

        /// Splits the question by parts, given one part for each session in order.
        func split(by parts: [Int32]) -> [Query] {
            var pieces: [Int32: Query] = [:]
            for (position, part) in parts.enumerated() {
                pieces[part, default: Query()].append(sessions[position], revision: revisions[position])
            }
            return Array(pieces.values)
        }
    }

    struct Row: Sendable {
        /// The number of live sessions.
        let liveCount: Int64
        /// The positions of sessions whose account has changed, counted from 1, and the accounts' revisions.
        let positions: [Int64]
        let revisions: [Int64]
        /// The revisions of the accounts' lists of vaults (see ``FindRevision``).
        let listRevisions: [Int64]
    }

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT count(s.account_id), coalesce(array_agg(w.position) FILTER (WHERE \(hasMoved)), '{}'),
            coalesce(array_agg(\(head)) FILTER (WHERE \(hasMoved)), '{}'),
            coalesce(array_agg(coalesce(a.vaults_revision, 0)) FILTER (WHERE \(hasMoved)), '{}')
        \(sessions)
        """
    /// Equals ``AccountCounter/head(_:)``; a cluster aggregates nothing over a nested query.
    private static let head: SQLFragment = "greatest(a.revision, b.revision_base)"
    private static let hasMoved: SQLFragment = "s.account_id IS NOT NULL AND \(head) <> w.revision"

    /// Returns a row for each session whose account exists; `s` is null unless the session is live. With an outer join
    /// a cluster sends it only to the shards of the accounts.
    ///
    /// The planner expects 1,000 numbers of `generate_series`, but ten elements of arrays. For so few it could compare
    /// each session with each account.
    static let sessions: SQL<Self> = """
        FROM ROWS FROM (unnest(\(\.query.accounts)::uuid[]), unnest(\(\.query.tokenHashes)::bytea[]),
            unnest(\(\.query.revisions)::bigint[]),
            generate_series(1::bigint, cardinality(\(\.query.accounts)::uuid[])))
            AS w (account_id, token_hash, revision, position)
        JOIN saltern.accounts a ON a.account_id = w.account_id AND a.account_id = ANY(\(\.query.accounts)::uuid[])
            AND a.locked_at IS NULL
        LEFT JOIN saltern.sessions s ON s.account_id = a.account_id AND s.token_hash = w.token_hash
            AND \(SessionLiveness.hasNotEnded("s", at: "\(\.now)", idleSince: "\(\.idleSince)"))
        JOIN saltern.installation b ON b.singleton
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row { try row.read(Row.init) }
}

/// Finds the live sessions of a question, counted from 1. Sessions of missing or locked accounts have no row.
struct FindLiveSessions: Statement {
    let find: FindMovedRevisions

    struct Row: Sendable {
        let position: Int64
        let isLive: Bool
    }

    static let isReadOnly = true
    static let sql: SQL<Self> =
        "SELECT w.position, s.account_id IS NOT NULL \(FindMovedRevisions.sessions, of: \.find)"

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row { try row.read(Row.init) }
}

/// Finds the part of the hash range, of 32 equal parts, for each account in order.
///
/// A cluster distributes accounts by this hash, over 32 shards by default, so the accounts of one part are on one node.
/// The statement reads no table, and therefore needs no other node.
struct FindHashParts: Statement {
    let accounts: [UUID]

    struct Row: Sendable {
        let part: Int32
    }

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT ((uuid_hash(w.account_id)::bigint + 2147483648) / 134217728)::integer
        FROM unnest(\(\.accounts)::uuid[]) WITH ORDINALITY AS w (account_id, position) ORDER BY w.position
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row { try row.read(Row.init) }
}

/// The statements of the live stream.
extension StatementList {
    static var liveStream: [any Statement.Type] {
        [
            Owned<FindRevision>.self, FindMovedRevisions.self, FindLiveSessions.self, FindHashParts.self,
            FindListedVaults.self, FindMovedVaults.self, FindLiveMemberships.self,
        ]
    }
}
