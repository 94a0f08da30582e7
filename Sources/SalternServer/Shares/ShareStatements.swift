internal import Postgres

/// The condition that a share can be opened, of the alias `s` at the moment $2.
private let isOpen = """
    NOT s.suspended AND (s.expires_at IS NULL OR s.expires_at > $2) \
    AND (s.max_views IS NULL OR s.views < s.max_views)
    """

/// Counts a view and returns what is viewed; no row when there is no such share, or not any more.
///
/// The last view ends the share. Nobody can bring back one that has ended, so what follows from that may come later.
struct TakeView: Statement {
    let id: ShareID
    let now: Timestamp

    struct Row: Sendable {
        let format: String
        let salt: [UInt8]
        let iterations: Int32
        let sealed: [UInt8]
        let expiresAt: Timestamp?
        /// How many views are left after this one; nil when they are not limited.
        let viewsLeft: Int64?
        let owner: AccountID?
    }

    static let sql = """
        UPDATE saltern.shares s
        SET views = s.views + 1, expires_at = CASE WHEN s.views + 1 = s.max_views THEN $2 ELSE s.expires_at END
        WHERE s.share_id = $1 AND \(isOpen)
        RETURNING s.format, s.salt, s.iterations, s.sealed, s.expires_at, s.max_views - s.views, s.owner_account
        """

    func bind(to parameters: inout Parameters) {
        parameters.append(id)
        parameters.append(now)
    }

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row {
        Row(
            format: try row.next(), salt: try row.next(), iterations: try row.next(), sealed: try row.next(),
            expiresAt: try row.next(), viewsLeft: try row.next(), owner: try row.next())
    }
}

/// Looks whether a share can be opened, without counting a view: how many are left, if they are limited.
struct CountViewsLeft: Statement {
    let id: ShareID
    let now: Timestamp

    static let isReadOnly = true
    static let sql = "SELECT s.max_views - s.views FROM saltern.shares s WHERE s.share_id = $1 AND \(isOpen)"

    func bind(to parameters: inout Parameters) {
        parameters.append(id)
        parameters.append(now)
    }

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Int64? { try row.next() }
}

/// Finds an open share by its manage token: whose it is, or nobody's.
struct FindManagedShare: Statement {
    let id: ShareID
    let now: Timestamp
    let manageHash: TokenHash

    static let isReadOnly = true
    static let sql = """
        SELECT s.owner_account FROM saltern.shares s WHERE s.share_id = $1 AND s.manage_hash = $3 AND \(isOpen)
        """

    func bind(to parameters: inout Parameters) {
        parameters.append(id)
        parameters.append(now)
        parameters.append(manageHash)
    }

    static func decode(_ row: inout RowReader) throws(PostgresError) -> AccountID? { try row.next() }
}

/// Replaces an open share's content, for whoever may; no row when there is no such share, or not any more.
///
/// The count of views begins again, unless everything is as it was: then this is the retry of a request whose reply was
/// lost, and nothing changes.
struct UpdateShare: Statement {
    let id: ShareID
    let now: Timestamp
    let manager: ShareManager
    let content: ShareContent

    private static let isUnchanged = """
        s.format = $5 AND s.salt = $6 AND s.iterations = $7 AND s.sealed = $8
            AND s.expires_at IS NOT DISTINCT FROM $9 AND s.max_views IS NOT DISTINCT FROM $10
        """

    static let sql = """
        UPDATE saltern.shares s
        SET views = CASE WHEN \(isUnchanged) THEN s.views ELSE 0 END,
            updated_at = CASE WHEN \(isUnchanged) THEN s.updated_at ELSE $2 END,
            format = $5, salt = $6, iterations = $7, sealed = $8, expires_at = $9, max_views = $10
        WHERE s.share_id = $1 AND (s.manage_hash = $3 OR s.owner_account = $4) AND \(isOpen)
        RETURNING \(ShareHeader.columns)
        """

    func bind(to parameters: inout Parameters) {
        parameters.append(id)
        parameters.append(now)
        manager.bind(to: &parameters)
        parameters.append(content.format.rawValue)
        parameters.append(content.salt)
        parameters.append(content.iterations)
        parameters.append(content.sealed.bytes)
        parameters.append(content.expiresAt)
        parameters.append(content.maxViews)
    }

    static func decode(_ row: inout RowReader) throws(PostgresError) -> ShareHeader { try ShareHeader(row: &row) }
}

/// Removes a share, for whoever may: whose it was, and whether it was still open. What has ended is removed too.
struct RemoveShare: Statement {
    let id: ShareID
    let now: Timestamp
    let manager: ShareManager

    struct Row: Sendable {
        let owner: AccountID?
        let wasOpen: Bool
    }

    static let sql = """
        DELETE FROM saltern.shares s
        WHERE s.share_id = $1 AND (s.manage_hash = $3 OR s.owner_account = $4)
        RETURNING s.owner_account, \(isOpen)
        """

    func bind(to parameters: inout Parameters) {
        parameters.append(id)
        parameters.append(now)
        manager.bind(to: &parameters)
    }

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row {
        Row(owner: try row.next(), wasOpen: try row.next())
    }
}

/// Who asks to change a share.
enum ShareManager: Sendable {
    /// Whoever has its manage token.
    case token(TokenHash)
    /// The account that owns it.
    case owner(AccountID)

    /// Appends the hash and the account: one of them is NULL and equal to nothing.
    func bind(to parameters: inout Parameters) {
        switch self {
        case .token(let hash):
            parameters.append(hash)
            parameters.append(nil as AccountID?)
        case .owner(let account):
            parameters.append(nil as TokenHash?)
            parameters.append(account)
        }
    }
}
