internal import Postgres

/// The account's rotations, also those that were committed or have expired.
struct FindRotations: Statement {
    let accountID: AccountID

    static let isReadOnly = true
    static let sql = "SELECT r.rotation_id FROM saltern.rotations r WHERE r.account_id = $1"

    func bind(to parameters: inout Parameters) { parameters.append(accountID) }

    static func decode(_ row: inout RowReader) throws(PostgresError) -> RotationID { try row.next() }
}

/// Opens a rotation. Returns what there is to rotate.
struct InsertRotation: Statement {
    let accountID: AccountID
    let id: RotationID
    let now: Timestamp
    let expiresAt: Timestamp

    struct Row: Sendable {
        let items: Int64
        /// The account's.
        let revision: Int64
    }

    static let sql = """
        WITH opened AS (
            INSERT INTO saltern.rotations (account_id, rotation_id, opened_at, expires_at) VALUES ($1, $2, $3, $4)
        )
        SELECT a.item_count, a.revision FROM saltern.accounts a WHERE a.account_id = $1
        """

    func bind(to parameters: inout Parameters) {
        parameters.append(accountID)
        parameters.append(id)
        parameters.append(now)
        parameters.append(expiresAt)
    }

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row {
        Row(items: try row.next(), revision: try row.next())
    }
}

/// One rotation that has not expired.
struct FindRotation: AccountRead {
    let id: RotationID
    let now: Timestamp

    struct Row: Sendable {
        let isCommitted: Bool
        /// How many items are staged, or were swapped.
        let items: Int64
        /// The account's.
        let revision: Int64
        /// The account's; nil when it has no keyring.
        let keyringRevision: Int64?
    }

    static let sql = """
        SELECT r.committed_at IS NOT NULL, r.item_count, a.revision,
            CASE WHEN a.keyring IS NOT NULL THEN a.keyring_revision END
        FROM saltern.rotations r JOIN saltern.accounts a ON a.account_id = r.account_id
        WHERE r.account_id = $1 AND a.account_id = $1 AND r.rotation_id = $2 AND r.expires_at > $3
        """

    func bind(to parameters: inout Parameters) {
        parameters.append(id)
        parameters.append(now)
    }

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row {
        Row(
            isCommitted: try row.next(), items: try row.next(), revision: try row.next(),
            keyringRevision: try row.next())
    }
}

/// Removes a rotation of which nothing is staged any more.
struct RemoveRotation: Statement {
    let accountID: AccountID
    let id: RotationID

    static let sql = "DELETE FROM saltern.rotations r WHERE r.account_id = $1 AND r.rotation_id = $2"

    func bind(to parameters: inout Parameters) {
        parameters.append(accountID)
        parameters.append(id)
    }
}

/// Removes a slice of what a rotation has staged, or the rotation when nothing is staged any more; changes nothing when
/// it was committed. From the first slice on it counts as expired, so that nothing is staged in between.
struct DiscardStaged: AccountWrite {
    let id: RotationID

    struct Row: Sendable {
        let isCommitted: Bool
        /// Whether the rotation is removed.
        let isGone: Bool
    }

    static let locksAccount = true
    static let sql = """
        WITH rotation AS (
            SELECT r.account_id, r.rotation_id, r.committed_at IS NOT NULL AS is_committed
            FROM saltern.rotations r
            WHERE r.account_id = $1 AND r.rotation_id = $5 AND \(Caller.hasLiveSession)
        ), \(StagedItems.bound(of: "$5")), gone AS (
            DELETE FROM saltern.rotation_items s
            WHERE s.account_id = $1 AND s.rotation_id = $5 AND s.item_id <= (SELECT b.item_id FROM bound b)
                AND EXISTS (SELECT FROM rotation r WHERE NOT r.is_committed)
        ), expired AS (
            UPDATE saltern.rotations t SET expires_at = least(t.expires_at, $3) FROM rotation r
            WHERE t.account_id = $1 AND t.rotation_id = r.rotation_id AND NOT r.is_committed
                AND EXISTS (SELECT FROM bound)
        ), closed AS (
            DELETE FROM saltern.rotations t USING rotation r
            WHERE t.account_id = $1 AND t.rotation_id = r.rotation_id AND NOT r.is_committed
                AND NOT EXISTS (SELECT FROM bound)
        )
        SELECT r.is_committed, NOT r.is_committed AND NOT EXISTS (SELECT FROM bound) FROM rotation r
        """

    func bind(to parameters: inout Parameters) { parameters.append(id) }

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row {
        Row(isCommitted: try row.next(), isGone: try row.next())
    }
}
