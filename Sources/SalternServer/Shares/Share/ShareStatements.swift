internal import Postgres

/// The condition that a share of the alias `s` can be opened at a moment.
private func isOpen<Root>(at moment: SQL<Root>) -> SQL<Root> {
    """
    NOT s.suspended AND (s.expires_at IS NULL OR s.expires_at > \(moment)) \
    AND (s.max_views IS NULL OR s.views < s.max_views)
    """
}

/// Counts a view and returns the share. Returns no row if the share does not exist or has ended.
///
/// The last view ends the share. An ended share cannot be reopened, so its removal may follow later.
///
/// Costs 111 thousand instructions for 1 KiB. Count and read are one statement, so that each view is counted.
struct TakeView: Statement {
    let id: ShareID
    let now: Timestamp

    struct Row: Sendable {
        let format: String
        let salt: [UInt8]
        let iterations: Int32
        let sealed: [UInt8]
        let expiresAt: Timestamp?
        /// Views left after this one. Nil without a limit.
        let viewsLeft: Int64?
        let owner: AccountID?
    }

    static let sql: SQL<Self> = """
        UPDATE saltern.shares s
        SET views = s.views + 1, expires_at = CASE WHEN s.views + 1 = s.max_views THEN \(\.now) ELSE s.expires_at END
        WHERE s.share_id = \(\.id) AND \(isOpen(at: "\(\.now)"))
        RETURNING s.format, s.salt, s.iterations, s.sealed, s.expires_at, s.max_views - s.views, s.owner_account
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row { try row.read(Row.init) }
}

/// Checks if a share can be opened, without counting a view. Returns the views left, if they are limited.
struct CountViewsLeft: Statement {
    typealias Row = Int64?

    let id: ShareID
    let now: Timestamp

    static let isReadOnly = true
    static let sql: SQL<Self> =
        "SELECT s.max_views - s.views FROM saltern.shares s WHERE s.share_id = \(\.id) AND \(isOpen(at: "\(\.now)"))"
}

/// Finds an open share by its manage token, and returns its owner, if any.
struct FindManagedShare: Statement {
    typealias Row = AccountID?

    let id: ShareID
    let now: Timestamp
    let manageHash: TokenHash

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT s.owner_account FROM saltern.shares s WHERE s.share_id = \(\.id) AND s.manage_hash = \(\.manageHash)
            AND \(isOpen(at: "\(\.now)"))
        """
}

/// Replaces an open share's content for its manager. Returns no row if the share does not exist or has ended.
///
/// Views count from 0 again, unless the content is unchanged. The request then repeats one whose reply was lost, and
/// nothing changes.
struct UpdateShare: Statement {
    typealias Row = ShareHeader

    let id: ShareID
    let now: Timestamp
    let manager: ShareManager
    let content: ShareContent

    private static let isUnchanged: SQL<Self> = """
        s.format = \(\.content.format.rawValue) AND s.salt = \(\.content.salt)
            AND s.iterations = \(\.content.iterations) AND s.sealed = \(\.content.sealed.bytes)
            AND s.expires_at IS NOT DISTINCT FROM \(\.content.expiresAt)
            AND s.max_views IS NOT DISTINCT FROM \(\.content.maxViews)
        """

    static let sql: SQL<Self> = """
        UPDATE saltern.shares s
        SET views = CASE WHEN \(isUnchanged) THEN s.views ELSE 0 END,
            updated_at = CASE WHEN \(isUnchanged) THEN s.updated_at ELSE \(\.now) END,
            format = \(\.content.format.rawValue), salt = \(\.content.salt), iterations = \(\.content.iterations),
            sealed = \(\.content.sealed.bytes), expires_at = \(\.content.expiresAt), max_views = \(\.content.maxViews)
        WHERE s.share_id = \(\.id) AND (s.manage_hash = \(\.manager.tokenHash)
            OR s.owner_account = \(\.manager.accountID))
            AND \(isOpen(at: "\(\.now)"))
        RETURNING \(ShareHeader.columns)
        """
}

/// Removes a share for its manager, and returns its owner and a flag for open shares. Ended shares are removed too.
struct RemoveShare: Statement {
    let id: ShareID
    let now: Timestamp
    let manager: ShareManager

    struct Row: Sendable {
        let owner: AccountID?
        let wasOpen: Bool
    }

    static let sql: SQL<Self> = """
        DELETE FROM saltern.shares s
        WHERE s.share_id = \(\.id) AND (s.manage_hash = \(\.manager.tokenHash)
            OR s.owner_account = \(\.manager.accountID))
        RETURNING s.owner_account, \(isOpen(at: "\(\.now)"))
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row { try row.read(Row.init) }
}

/// The authorisation of a change of a share.
enum ShareManager: Sendable {
    /// The holder of its manage token.
    case token(TokenHash)
    /// The account that owns it.
    case owner(AccountID)

    /// NULL, which equals nothing, for the account.
    var tokenHash: TokenHash? {
        if case .token(let hash) = self { hash } else { nil }
    }

    /// NULL, which equals nothing, for the holder of the token.
    var accountID: AccountID? {
        if case .owner(let account) = self { account } else { nil }
    }
}

/// The statements of shares.
extension StatementList {
    static var shares: [any Statement.Type] {
        [
            TakeView.self, CountViewsLeft.self, FindManagedShare.self, UpdateShare.self, RemoveShare.self,
            Guarded<AdmitShare>.self, InsertAccountShare.self, InsertAnonymousShare.self, RefuseAnonymousShare.self,
            InsertShare.self, Owned<FindAccountShares>.self, FindShareHeaders.self, UpdateAccountShare.self,
            RemoveAccountShares.self, FindShareIDs.self, SuspendShares.self, FindEndedShares.self,
            FindEndedAccountShares.self, RemoveEndedShares.self, RemoveUsedUpShare.self,
        ]
    }
}
