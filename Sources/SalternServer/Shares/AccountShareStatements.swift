internal import Postgres

extension Identifier where Entity == Account {
    /// Stands for the owner of what has none.
    static var nobody: AccountID { AccountID(UUID(high: 0, low: 0)) }
}

/// The condition that a share counts, of the alias `h`, at the moment that `moment` names.
private func counts(at moment: String) -> String { "(h.expires_at IS NULL OR h.expires_at > \(moment))" }

/// How many shares an account has, as a subquery: the account is $1.
enum ShareCount {
    static func sql(at moment: String) -> String {
        "(SELECT count(*) FROM saltern.account_shares h WHERE h.account_id = $1 AND \(counts(at: moment)))"
    }
}

/// Creation, first of two: notes the share as the account's, if its plan allows one more.
struct InsertAccountShare: AccountWrite {
    let id: ShareID
    let expiresAt: Timestamp?
    let byteCount: Int64

    /// Whether the share was noted, or which limit of the plan does not allow it.
    struct Row: Sendable {
        let exceededLimit: String?
        let allowed: Int64
        let used: Int64
    }

    static let locksAccount = true
    static let sql = """
        WITH decision AS (
            SELECT a.account_id, p.max_item_bytes, p.max_shares, \(ShareCount.sql(at: "$3")) AS share_count
            FROM saltern.accounts a JOIN saltern.plans p ON p.plan = a.plan
            WHERE a.account_id = $1 AND a.locked_at IS NULL AND \(Caller.hasLiveSession)
        ), written AS (
            INSERT INTO saltern.account_shares (account_id, share_id, created_at, expires_at)
            SELECT d.account_id, $5, $3, $6 FROM decision d
            WHERE $7 <= d.max_item_bytes AND d.share_count < d.max_shares
        )
        SELECT
            CASE WHEN $7 > d.max_item_bytes THEN 'itemBytes' WHEN d.share_count >= d.max_shares THEN 'shares' END,
            CASE WHEN $7 > d.max_item_bytes THEN d.max_item_bytes ELSE d.max_shares END,
            CASE WHEN $7 > d.max_item_bytes THEN $7 ELSE d.share_count END
        FROM decision d
        """

    func bind(to parameters: inout Parameters) {
        parameters.append(id)
        parameters.append(expiresAt)
        parameters.append(byteCount)
    }

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row {
        Row(exceededLimit: try row.next(), allowed: try row.next(), used: try row.next())
    }
}

/// Creation without an account, first of two: notes the share as nobody's, if there are not too many. One row when it
/// did.
struct InsertAnonymousShare: Statement {
    let id: ShareID
    let now: Timestamp
    let expiresAt: Timestamp?
    /// How many there may be.
    let limit: Int64

    static let sql = """
        INSERT INTO saltern.account_shares (account_id, share_id, created_at, expires_at)
        SELECT $1::uuid, $2, $3, $4
        WHERE (
            SELECT count(*) FROM saltern.account_shares h WHERE h.account_id = $1 AND \(counts(at: "$3"))
        ) < $5
        RETURNING true
        """

    func bind(to parameters: inout Parameters) {
        parameters.append(AccountID.nobody)
        parameters.append(id)
        parameters.append(now)
        parameters.append(expiresAt)
        parameters.append(limit)
    }

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Bool { try row.next() }
}

/// Creation, second of two: writes the share, if the first statement has noted it.
struct InsertShare: Statement {
    /// Whose note is looked for.
    let account: AccountID
    let id: ShareID
    let manageHash: TokenHash
    let content: ShareContent
    let now: Timestamp

    static let sql = """
        INSERT INTO saltern.shares
            (share_id, owner_account, manage_hash, format, salt, iterations, sealed, created_at, updated_at, expires_at,
            max_views)
        SELECT h.share_id, $3, $4, $5, $6, $7, $8, $9, $9, $10, $11
        FROM saltern.account_shares h WHERE h.account_id = $1 AND h.share_id = $2
        """

    func bind(to parameters: inout Parameters) {
        parameters.append(account)
        parameters.append(id)
        parameters.append(account == .nobody ? nil : account)
        parameters.append(manageHash)
        parameters.append(content.format.rawValue)
        parameters.append(content.salt)
        parameters.append(content.iterations)
        parameters.append(content.sealed.bytes)
        parameters.append(now)
        parameters.append(content.expiresAt)
        parameters.append(content.maxViews)
    }
}

/// A page of the account's shares, the newest first.
struct FindAccountShares: AccountRead {
    let page: SharePage
    let now: Timestamp
    let limit: Int64

    struct Row: Sendable {
        let id: ShareID
        let createdAt: Timestamp
    }

    static let sql = """
        SELECT h.share_id, h.created_at FROM saltern.account_shares h
        WHERE h.account_id = $1 AND \(counts(at: "$2")) AND (h.created_at, h.share_id) < ($3, $4)
        ORDER BY h.created_at DESC, h.share_id DESC LIMIT $5
        """

    func bind(to parameters: inout Parameters) {
        parameters.append(now)
        parameters.append(page.createdAt)
        parameters.append(page.id)
        parameters.append(limit)
    }

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row {
        Row(id: try row.next(), createdAt: try row.next())
    }
}

/// What an account sees of its shares that are open, the newest first.
struct FindShareHeaders: Statement {
    let ids: [ShareID]
    let now: Timestamp
    let owner: AccountID

    static let isReadOnly = true
    static let sql = """
        SELECT \(ShareHeader.columns) FROM saltern.shares s
        WHERE s.share_id = ANY($1::bytea[]) AND s.owner_account = $3 AND (s.expires_at IS NULL OR s.expires_at > $2)
        ORDER BY s.created_at DESC, s.share_id DESC
        """

    func bind(to parameters: inout Parameters) {
        parameters.append(ids)
        parameters.append(now)
        parameters.append(owner)
    }

    static func decode(_ row: inout RowReader) throws(PostgresError) -> ShareHeader { try ShareHeader(row: &row) }
}

/// Locks the account that owns a share, as everybody does first who changes one in the owner's name; how many sealed
/// bytes its plan allows. No row when the account is locked or gone.
struct LockShareOwner: Statement {
    let accountID: AccountID

    static let sql = """
        SELECT p.max_item_bytes FROM saltern.accounts a JOIN saltern.plans p ON p.plan = a.plan
        WHERE a.account_id = $1 AND a.locked_at IS NULL
        FOR NO KEY UPDATE OF a
        """

    func bind(to parameters: inout Parameters) { parameters.append(accountID) }

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Int64 { try row.next() }
}

/// Notes when a share of the account ends.
struct UpdateAccountShare: Statement {
    let accountID: AccountID
    let id: ShareID
    let expiresAt: Timestamp?

    static let sql = """
        UPDATE saltern.account_shares h SET expires_at = $3 WHERE h.account_id = $1 AND h.share_id = $2
        """

    func bind(to parameters: inout Parameters) {
        parameters.append(accountID)
        parameters.append(id)
        parameters.append(expiresAt)
    }
}

/// Strikes shares off an account's list.
struct RemoveAccountShares: Statement {
    let accountID: AccountID
    let ids: [ShareID]

    static let sql = """
        DELETE FROM saltern.account_shares h WHERE h.account_id = $1 AND h.share_id = ANY($2::bytea[])
        """

    func bind(to parameters: inout Parameters) {
        parameters.append(accountID)
        parameters.append(ids)
    }
}
