internal import Postgres

/// Finds the account's rotations, including committed and expired ones.
struct FindRotations: Statement {
    typealias Row = RotationID

    let accountID: AccountID

    static let isReadOnly = true
    static let sql: SQL<Self> = "SELECT r.rotation_id FROM saltern.rotations r WHERE r.account_id = \(\.accountID)"
}

struct InsertRotation: Statement {
    let accountID: AccountID
    let id: RotationID
    let now: Timestamp
    let expiresAt: Timestamp

    static let sql: SQL<Self> = """
        INSERT INTO saltern.rotations (account_id, rotation_id, opened_at, expires_at)
            VALUES (\(\.accountID), \(\.id), \(\.now), \(\.expiresAt))
        """
}

/// Finds the number of items to rotate and the account's revision.
struct FindExtent: Statement {
    let accountID: AccountID

    struct Row: Sendable {
        let items: Int64
        /// The account's revision.
        let revision: Int64
    }

    static let isReadOnly = true
    static let sql: SQL<Self> =
        "SELECT a.item_count, a.revision FROM saltern.accounts a WHERE a.account_id = \(\.accountID)"

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row { try row.read(Row.init) }
}

/// Finds a rotation that has not expired.
struct FindRotation: AccountRead {
    let id: RotationID
    let now: Timestamp

    struct Row: Sendable {
        let isCommitted: Bool
        /// The number of staged items or, after the commit, of replaced ones.
        let items: Int64
        /// The account's revision.
        let revision: Int64
        /// The revision of the account's keyring. Nil without one.
        let keyringRevision: Int64?
    }

    static let sql: AccountSQL<Self> = """
        SELECT r.committed_at IS NOT NULL, r.item_count, a.revision,
            CASE WHEN a.keyring IS NOT NULL THEN a.keyring_revision END
        FROM saltern.rotations r JOIN saltern.accounts a ON a.account_id = r.account_id
        WHERE r.account_id = \(.account) AND a.account_id = \(.account) AND r.rotation_id = \(\.id)
            AND r.expires_at > \(\.now)
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row { try row.read(Row.init) }
}

/// Removes a rotation without staged items.
struct RemoveRotation: Statement {
    let accountID: AccountID
    let id: RotationID

    static let sql: SQL<Self> =
        "DELETE FROM saltern.rotations r WHERE r.account_id = \(\.accountID) AND r.rotation_id = \(\.id)"
}

/// Removes a slice of a rotation's staged items, or the rotation if none is left. It changes nothing after a commit.
/// From the first slice on the rotation counts as expired, so that no further items are staged.
struct DiscardStaged: AccountWrite {
    let id: RotationID

    struct Row: Sendable {
        let isCommitted: Bool
        /// True if the rotation is removed.
        let isGone: Bool
    }

    static let needsLease = true
    static let sql: CallerSQL<Self> = """
        WITH rotation AS (
            SELECT r.account_id, r.rotation_id, r.committed_at IS NOT NULL AS is_committed
            FROM saltern.rotations r
            WHERE r.account_id = \(.account) AND r.rotation_id = \(\.id) AND \(Caller.hasLiveSession)
        ), \(StagedItems.bound(of: "\(\.id)", "\(.account)")), gone AS (
            DELETE FROM saltern.rotation_items s
            WHERE s.account_id = \(.account) AND s.rotation_id = \(\.id) AND s.item_id <= (SELECT b.item_id
                FROM bound b)
                AND EXISTS (SELECT FROM rotation r WHERE NOT r.is_committed)
        ), expired AS (
            UPDATE saltern.rotations t SET expires_at = least(t.expires_at, \(.now)) FROM rotation r
            WHERE t.account_id = \(.account) AND t.rotation_id = r.rotation_id AND NOT r.is_committed
                AND EXISTS (SELECT FROM bound)
        ), closed AS (
            DELETE FROM saltern.rotations t USING rotation r
            WHERE t.account_id = \(.account) AND t.rotation_id = r.rotation_id AND NOT r.is_committed
                AND NOT EXISTS (SELECT FROM bound)
        )
        SELECT r.is_committed, NOT r.is_committed AND NOT EXISTS (SELECT FROM bound) FROM rotation r
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row { try row.read(Row.init) }
}
