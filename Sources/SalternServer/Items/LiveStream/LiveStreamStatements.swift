internal import Cryptography
internal import Postgres

/// Where the account is: the number of its latest change, or the base when that is higher.
struct FindRevision: AccountRead {
    typealias Row = Int64

    static let sql: AccountSQL<Self> =
        "SELECT \(AccountCounter.head("a.revision")) FROM saltern.accounts a WHERE a.account_id = \(.account)"
}

/// Of all the sessions that are connected to a node: how many are live, and those whose account is elsewhere than the node
/// knows (see ``FindRevision``). When fewer are live than are asked about, ``FindLiveSessions`` says which.
///
/// The one statement that names many accounts, because it is sent once a tick for all of them. It reads two rows by
/// primary key for each session; a cluster asks each shard that has one of them once, and adds the answers up.
struct FindMovedRevisions: Statement {
    /// What is asked, and in what order.
    let query: Query
    let now: Timestamp
    let idleSince: Timestamp

    /// Sessions, each with the revision that is known of its account, in columns as the statement takes them.
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

        /// A question for each of the parts, which are told for each session in order.
        func split(by parts: [Int32]) -> [Query] {
            var pieces: [Int32: Query] = [:]
            for (position, part) in parts.enumerated() {
                pieces[part, default: Query()].append(sessions[position], revision: revisions[position])
            }
            return Array(pieces.values)
        }
    }

    struct Row: Sendable {
        /// How many sessions are live.
        let liveCount: Int64
        /// Which of them have moved, counted from 1, and where their accounts are.
        let positions: [Int64]
        let revisions: [Int64]
    }

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT count(s.account_id), coalesce(array_agg(w.position) FILTER (WHERE \(hasMoved)), '{}'),
            coalesce(array_agg(\(head)) FILTER (WHERE \(hasMoved)), '{}')
        \(sessions)
        """
    /// As ``AccountCounter/head(_:)``; a cluster adds nothing up over a query within a query.
    private static let head: SQLFragment = "greatest(a.revision, b.revision_base)"
    private static let hasMoved: SQLFragment = "s.account_id IS NOT NULL AND \(head) <> w.revision"

    /// A row for each session that is asked about and whose account is there; `s` is there when it is live. (With an outer
    /// join a cluster asks only the shards that have one of the accounts.)
    static let sessions: SQL<Self> = """
        FROM unnest(\(\.query.accounts)::uuid[], \(\.query.tokenHashes)::bytea[],
            \(\.query.revisions)::bigint[])
            WITH ORDINALITY AS w (account_id, token_hash, revision, position)
        JOIN saltern.accounts a ON a.account_id = w.account_id AND a.account_id = ANY(\(\.query.accounts)::uuid[])
            AND a.locked_at IS NULL
        LEFT JOIN saltern.sessions s ON s.account_id = a.account_id AND s.token_hash = w.token_hash
            AND \(SessionLiveness.hasNotEnded("s", at: "\(\.now)", idleSince: "\(\.idleSince)"))
        JOIN saltern.installation b ON b.singleton
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row { try row.read(Row.init) }
}

/// Which sessions of a question, counted from 1, are live; those whose account is gone or locked are not there.
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

/// In which of 32 equal parts of the hashes accounts are, in the order of the question.
///
/// A cluster spreads accounts by this hash, over 32 shards unless told otherwise: what is in one part is on one node. It
/// asks no table, and so no other node.
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
