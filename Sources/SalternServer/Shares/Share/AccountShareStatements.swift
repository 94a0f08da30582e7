internal import Postgres

extension Identifier where Entity == Account {
    /// Represents the missing owner of shares without an account.
    static var nobody: AccountID { AccountID(.zero) }
}

/// SQL for the number of an account's shares.
enum ShareCount {
    /// The condition that a share of the alias `h` counts at a moment.
    static func condition<Root, Context>(at moment: SQLTemplate<Root, Context>) -> SQLTemplate<Root, Context> {
        "(h.expires_at IS NULL OR h.expires_at > \(moment))"
    }

    /// The number of shares as a subquery.
    static func sql<Root, Context>(
        of account: SQLTemplate<Root, Context>, at moment: SQLTemplate<Root, Context>
    ) -> SQLTemplate<Root, Context> {
        "(SELECT count(*) FROM saltern.account_shares h WHERE h.account_id = \(account) AND \(condition(at: moment)))"
    }
}

/// Checks the plan's limit as the first of three statements of a creation. Ended shares count while they are stored.
///
/// Rows are counted in the order of the index, forced by a limit that the planner cannot estimate. Only an index scan
/// marks dead entries. A bitmap scan would read all rows removed since the last vacuum again at each creation.
struct AdmitShare: AccountWrite {
    let byteCount: Int64
    /// Stored in the account's row if the plan allows the share, as a token for the statements that follow.
    let writer = Int64.random(in: .min ... .max)

    /// The exceeded limit of the plan, if any.
    struct Row: Sendable {
        let exceededLimit: String?
        let allowed: Int64
        let used: Int64
        /// True if ended shares occupy the limit.
        let hasEndedShares: Bool
    }

    static let sql: CallerSQL<Self> = """
        WITH decision AS (
            SELECT a.account_id, p.max_item_bytes, p.max_shares, c.share_count, c.stored_count
            FROM saltern.accounts a JOIN saltern.plans p ON p.plan = a.plan CROSS JOIN (
                SELECT count(*) AS stored_count,
                    count(*) FILTER (WHERE \(ShareCount.condition(at: "\(.now)"))) AS share_count
                FROM (
                    SELECT s.expires_at FROM saltern.account_shares s WHERE s.account_id = \(.account)
                    ORDER BY s.share_id LIMIT (SELECT 1000000000)
                ) h
            ) c
            WHERE a.account_id = \(.account) AND a.locked_at IS NULL AND \(Caller.hasLiveSession)
        ), told AS (
            UPDATE saltern.accounts a SET writer = \(\.writer) FROM decision d
            WHERE a.account_id = \(.account) AND \(\.byteCount) <= d.max_item_bytes AND d.stored_count < d.max_shares
        )
        SELECT
            CASE WHEN \(\.byteCount) > d.max_item_bytes THEN 'itemBytes' WHEN d.stored_count >= d.max_shares
                THEN 'shares' END,
            CASE WHEN \(\.byteCount) > d.max_item_bytes THEN d.max_item_bytes ELSE d.max_shares END,
            CASE WHEN \(\.byteCount) > d.max_item_bytes THEN \(\.byteCount) ELSE d.share_count END,
            d.stored_count > d.share_count AND d.stored_count >= d.max_shares AND d.share_count < d.max_shares
        FROM decision d
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row { try row.read(Row.init) }
}

/// Adds the share to the account's list as the second of three statements, if ``AdmitShare`` has admitted it.
///
/// `MERGE`, because an INSERT that selects from another table is planned for every shard of a cluster.
struct InsertAccountShare: Statement {
    let admission: AdmitShare
    let accountID: AccountID
    let id: ShareID
    let now: Timestamp
    let expiresAt: Timestamp?

    static let sql: SQL<Self> = """
        MERGE INTO saltern.account_shares n USING (
            SELECT a.account_id FROM saltern.accounts a
            WHERE a.account_id = \(\.accountID) AND a.writer = \(\.admission.writer)
        ) d ON n.account_id = d.account_id AND n.share_id = \(\.id)
        WHEN NOT MATCHED THEN INSERT (account_id, share_id, created_at, expires_at)
            VALUES (d.account_id, \(\.id), \(\.now), \(\.expiresAt))
        """
}

/// Lists a share without an account, as the first of three statements of its creation.
struct InsertAnonymousShare: Statement {
    let id: ShareID
    let now: Timestamp
    let expiresAt: Timestamp?
    /// The maximum number of such shares.
    let limit: Int64

    fileprivate var nobody: AccountID { .nobody }

    static let sql: SQL<Self> = """
        INSERT INTO saltern.account_shares (account_id, share_id, created_at, expires_at)
            VALUES (\(\.nobody), \(\.id), \(\.now), \(\.expiresAt))
        """
}

/// Removes the listed share if the limit is exceeded, as the second of three statements. Returns a row if it did.
struct RefuseAnonymousShare: Statement {
    typealias Row = Bool

    let note: InsertAnonymousShare

    static let sql: SQL<Self> = """
        DELETE FROM saltern.account_shares n
        WHERE n.account_id = \(\.note.nobody) AND n.share_id = \(\.note.id) AND \(\.note.limit) < (
            SELECT count(*) FROM saltern.account_shares h WHERE h.account_id = \(\.note.nobody))
        RETURNING true
        """
}

/// Stores a listed share as the last statement of a creation. The two tables are distributed by different keys, so the
/// list is read in a separate part.
struct InsertShare: Statement {
    /// The account whose list is read.
    let account: AccountID
    let id: ShareID
    let manageHash: TokenHash
    let content: ShareContent
    let now: Timestamp

    private var owner: AccountID? { account == .nobody ? nil : account }

    static let sql: SQL<Self> = """
        WITH noted AS MATERIALIZED (
            SELECT h.share_id FROM saltern.account_shares h
            WHERE h.account_id = \(\.account) AND h.share_id = \(\.id)
        )
        INSERT INTO saltern.shares
            (share_id, owner_account, manage_hash, format, salt, iterations, sealed, created_at, updated_at, expires_at,
            max_views)
        SELECT n.share_id, \(\.owner), \(\.manageHash), \(\.content.format.rawValue), \(\.content.salt),
            \(\.content.iterations), \(\.content.sealed.bytes), \(\.now), \(\.now), \(\.content.expiresAt),
            \(\.content.maxViews)
        FROM noted n
        """
}

/// Finds a page of the account's shares, newest first.
struct FindAccountShares: AccountRead {
    let position: SharePosition
    let now: Timestamp
    let limit: Int64

    struct Row: Sendable {
        let id: ShareID
        let createdAt: Timestamp
    }

    static let sql: AccountSQL<Self> = """
        SELECT h.share_id, h.created_at FROM saltern.account_shares h
        WHERE h.account_id = \(.account) AND \(ShareCount.condition(at: "\(\.now)"))
            AND (h.created_at, h.share_id) < (\(\.position.createdAt), \(\.position.id))
        ORDER BY h.created_at DESC, h.share_id DESC LIMIT \(\.limit)
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row { try row.read(Row.init) }
}

/// Finds the headers of open shares of an account, newest first.
struct FindShareHeaders: Statement {
    typealias Row = ShareHeader

    let ids: [ShareID]
    let now: Timestamp
    let owner: AccountID

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT \(ShareHeader.columns) FROM saltern.shares s
        WHERE s.share_id = ANY(\(\.ids)::bytea[]) AND s.owner_account = \(\.owner) AND (s.expires_at IS NULL
            OR s.expires_at > \(\.now))
        ORDER BY s.created_at DESC, s.share_id DESC
        """
}

/// Updates the end of a share in the account's list.
struct UpdateAccountShare: Statement {
    let accountID: AccountID
    let id: ShareID
    let expiresAt: Timestamp?

    static let sql: SQL<Self> = """
        UPDATE saltern.account_shares h SET expires_at = \(\.expiresAt)
            WHERE h.account_id = \(\.accountID) AND h.share_id = \(\.id)
        """
}

/// Removes shares from an account's list.
struct RemoveAccountShares: Statement {
    let accountID: AccountID
    let ids: [ShareID]

    static let sql: SQL<Self> = """
        DELETE FROM saltern.account_shares h WHERE h.account_id = \(\.accountID) AND h.share_id = ANY(\(\.ids)::bytea[])
        """
}
