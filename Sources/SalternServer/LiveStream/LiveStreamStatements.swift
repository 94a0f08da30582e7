internal import Cryptography
internal import Postgres

/// The number of the account's latest change.
struct FindRevision: AccountRead {
    static let sql = "SELECT a.revision FROM saltern.accounts a WHERE a.account_id = $1"

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Int64 { try row.next() }
}

/// Of all the sessions that are connected to a node: those whose account has another revision than the node knows,
/// and those that are live no more. No rows when nothing has happened.
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
    static let sql = """
        SELECT w.position, a.revision, a.account_id IS NOT NULL AND s.account_id IS NOT NULL
        FROM unnest($1::uuid[], $2::bytea[], $3::bigint[])
            WITH ORDINALITY AS w (account_id, token_hash, revision, position)
        LEFT JOIN saltern.accounts a ON a.account_id = w.account_id AND a.locked_at IS NULL
        LEFT JOIN saltern.sessions s
            ON s.account_id = w.account_id AND s.token_hash = w.token_hash AND s.expires_at > $4 AND s.last_used_at > $5
        WHERE a.revision IS DISTINCT FROM w.revision OR s.account_id IS NULL
        """

    func bind(to parameters: inout Parameters) {
        parameters.append(question.accounts)
        parameters.append(question.tokenHashes)
        parameters.append(question.revisions)
        parameters.append(now)
        parameters.append(idleSince)
    }

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row {
        Row(position: try row.next(), revision: try row.next(), isLive: try row.next())
    }
}

/// A session as its rows are found.
struct SessionKey: Hashable, Sendable {
    let accountID: AccountID
    let tokenHash: TokenHash
}
