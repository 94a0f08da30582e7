internal import Cryptography
internal import Postgres

/// Where the account is: the number of its latest change, or the base when that is higher.
struct FindRevision: AccountRead {
    typealias Row = Int64

    static let sql: AccountSQL<Self> =
        "SELECT \(AccountCounter.head("a.revision")) FROM saltern.accounts a WHERE a.account_id = \(.account)"
}

/// Of all the sessions that are connected to a node: those whose account is elsewhere than the node knows (see
/// ``FindRevision``), and those that are live no more. No rows when nothing has happened.
///
/// The one statement that names many accounts, because it is sent once a tick for all of them. It reads two rows by
/// primary key for each session; distributed PostgreSQL answers it from every shard that has one of them.
struct FindMovedRevisions: Statement {
    /// What is asked, and in what order.
    let question: Question
    let now: Timestamp
    let idleSince: Timestamp

    /// Sessions, each with the revision that is known of its account, in columns as the statement takes them.
    struct Question: Sendable {
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
    }

    struct Row: Sendable {
        /// Which session, counted from 1.
        let position: Int64
        /// Nil when the account is locked or gone.
        let revision: Int64?
        let isLive: Bool
    }

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT w.position, \(head), a.account_id IS NOT NULL AND s.account_id IS NOT NULL
        FROM unnest(\(\.question.accounts)::uuid[], \(\.question.tokenHashes)::bytea[],
            \(\.question.revisions)::bigint[])
            WITH ORDINALITY AS w (account_id, token_hash, revision, position)
        LEFT JOIN saltern.accounts a ON a.account_id = w.account_id AND a.locked_at IS NULL
        LEFT JOIN saltern.sessions s
            ON s.account_id = w.account_id AND s.token_hash = w.token_hash
                AND \(SessionLiveness.hasNotEnded("s", at: "\(\.now)", idleSince: "\(\.idleSince)"))
        WHERE \(head) IS DISTINCT FROM w.revision OR s.account_id IS NULL
        """
    private static let head: SQLFragment =
        "CASE WHEN a.account_id IS NOT NULL THEN \(AccountCounter.head("a.revision")) END"

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row { try row.read(Row.init) }
}
