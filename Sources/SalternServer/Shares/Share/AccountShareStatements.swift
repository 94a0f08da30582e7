internal import Postgres

extension Identifier where Entity == Account {
    /// Stands for the owner of what has none.
    static var nobody: AccountID { AccountID(.zero) }
}

/// Which shares of an account count.
enum ShareCount {
    /// The condition that a share counts, of the alias `h`, at a moment.
    static func condition<Root, Context>(at moment: SQLTemplate<Root, Context>) -> SQLTemplate<Root, Context> {
        "(h.expires_at IS NULL OR h.expires_at > \(moment))"
    }

    /// How many they are, as a subquery.
    static func sql<Root, Context>(
        of account: SQLTemplate<Root, Context>, at moment: SQLTemplate<Root, Context>
    ) -> SQLTemplate<Root, Context> {
        "(SELECT count(*) FROM saltern.account_shares h WHERE h.account_id = \(account) AND \(condition(at: moment)))"
    }
}

/// Creation, first of three: decides whether the account's plan allows one more. What has ended counts as long as it is
/// stored.
///
/// It counts in the order of the index, for which the limit that the planner does not know makes it decide. Only a scan of the
/// index marks what it leads to and was removed. A bitmap scan would read all rows again that were removed since the last
/// vacuum, at each creation.
struct AdmitShare: AccountWrite {
    let byteCount: Int64
    /// Noted in the account's row when the plan allows it, so that what follows knows.
    let writer = Int64.random(in: .min ... .max)

    /// Which limit of the plan does not allow it.
    struct Row: Sendable {
        let exceededLimit: String?
        let allowed: Int64
        let used: Int64
        /// Whether shares are in the way that have ended.
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

/// Creation, second of three: notes the share as the account's, if ``AdmitShare`` has admitted it.
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

/// Creation without an account, first of three: notes the share as nobody's.
struct InsertAnonymousShare: Statement {
    let id: ShareID
    let now: Timestamp
    let expiresAt: Timestamp?
    /// How many there may be.
    let limit: Int64

    fileprivate var nobody: AccountID { .nobody }

    static let sql: SQL<Self> = """
        INSERT INTO saltern.account_shares (account_id, share_id, created_at, expires_at)
            VALUES (\(\.nobody), \(\.id), \(\.now), \(\.expiresAt))
        """
}

/// Creation without an account, second of three: strikes the share off again if there are too many. A row when it did.
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

/// Creation, last: writes the share, if it is noted. The two tables are spread by different
/// keys, so what one says is a part of its own.
struct InsertShare: Statement {
    /// Whose note is looked for.
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

/// A page of the account's shares, the newest first.
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

/// What an account sees of its shares that are open, the newest first.
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

/// Notes when a share of the account ends.
struct UpdateAccountShare: Statement {
    let accountID: AccountID
    let id: ShareID
    let expiresAt: Timestamp?

    static let sql: SQL<Self> = """
        UPDATE saltern.account_shares h SET expires_at = \(\.expiresAt)
            WHERE h.account_id = \(\.accountID) AND h.share_id = \(\.id)
        """
}

/// Strikes shares off an account's list.
struct RemoveAccountShares: Statement {
    let accountID: AccountID
    let ids: [ShareID]

    static let sql: SQL<Self> = """
        DELETE FROM saltern.account_shares h WHERE h.account_id = \(\.accountID) AND h.share_id = ANY(\(\.ids)::bytea[])
        """
}
