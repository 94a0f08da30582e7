internal import Postgres

/// Has the planner join whole sets until the transaction ends. It knows nothing of rows that were written a moment ago,
/// takes them for a handful, and would look them up one by one, or worse, each beside each.
struct JoinWholeSets: Statement {
    static let sql = "SELECT set_config('enable_nestloop', 'off', true)"

    static func decode(_ row: inout RowReader) throws(PostgresError) -> String { try row.next() }
}

/// Live items that stand in the way of a commit: not staged, or staged from another revision than the present one.
/// The account's row was locked before, so the answer stays true.
struct FindUnready: Statement {
    let accountID: AccountID
    let rotationID: RotationID

    struct Row: Sendable {
        let id: ItemID
        let isStaged: Bool
    }

    static let isReadOnly = true
    static let sql = """
        SELECT i.item_id, s.item_id IS NOT NULL
        FROM saltern.items i LEFT JOIN saltern.rotation_items s
            ON s.account_id = $1 AND s.rotation_id = $2 AND s.item_id = i.item_id
        WHERE i.account_id = $1 AND NOT i.deleted AND s.base_revision IS DISTINCT FROM i.revision
        ORDER BY i.item_id
        """

    func bind(to parameters: inout Parameters) {
        parameters.append(accountID)
        parameters.append(rotationID)
    }

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row {
        Row(id: try row.next(), isStaged: try row.next())
    }
}

/// Takes a revision of the account for each item that will be swapped, and sets what its items have in sealed bytes
/// then. The number of items stays.
struct TakeRevisions: Statement {
    let accountID: AccountID
    let rotationID: RotationID

    struct Row: Sendable {
        /// The last of them: what the account's revision is now.
        let revision: Int64
        let items: Int64
    }

    static let sql = """
        WITH staged AS (
            SELECT count(*) AS items,
                coalesce(sum(octet_length(s.body) + coalesce(octet_length(s.title), 0)), 0)::bigint AS bytes
            FROM saltern.rotation_items s JOIN saltern.items i ON i.account_id = s.account_id AND i.item_id = s.item_id
            WHERE s.account_id = $1 AND s.rotation_id = $2 AND i.account_id = $1 AND NOT i.deleted
        )
        UPDATE saltern.accounts a SET revision = a.revision + n.items, item_bytes = n.bytes
        FROM staged n WHERE a.account_id = $1
        RETURNING a.revision, n.items
        """

    func bind(to parameters: inout Parameters) {
        parameters.append(accountID)
        parameters.append(rotationID)
    }

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row {
        Row(revision: try row.next(), items: try row.next())
    }
}

/// Moves a slice of what is staged into the items, each with the next revision. What is staged of items that were
/// deleted meanwhile is dropped.
struct SwapItems: Statement {
    let accountID: AccountID
    let rotationID: RotationID
    /// The revision before that of the slice's first item.
    let revision: Int64
    let now: Timestamp

    struct Row: Sendable {
        /// How many staged items were taken.
        let taken: Int64
        /// How many of them were swapped.
        let swapped: Int64
    }

    static let sql = """
        WITH \(StagedItems.bound(of: "$2")), taken AS (
            DELETE FROM saltern.rotation_items s
            WHERE s.account_id = $1 AND s.rotation_id = $2 AND s.item_id <= (SELECT b.item_id FROM bound b)
            RETURNING s.item_id, s.format, s.iterations, s.title, s.body
        ), numbered AS (
            SELECT t.*, row_number() OVER (ORDER BY t.item_id) AS position
            FROM taken t
            WHERE EXISTS (
                SELECT FROM saltern.items l WHERE l.account_id = $1 AND l.item_id = t.item_id AND NOT l.deleted)
        ), swapped AS (
            UPDATE saltern.items i
            SET revision = $3 + n.position, format = n.format, iterations = n.iterations, title = n.title,
                body = n.body, updated_at = $4
            FROM numbered n
            WHERE i.account_id = $1 AND i.item_id = n.item_id
            RETURNING i.item_id
        )
        SELECT (SELECT count(*) FROM taken), (SELECT count(*) FROM swapped)
        """

    func bind(to parameters: inout Parameters) {
        parameters.append(accountID)
        parameters.append(rotationID)
        parameters.append(revision)
        parameters.append(now)
    }

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row {
        Row(taken: try row.next(), swapped: try row.next())
    }
}

/// Makes what the account's deleted items held expire: it is sealed under the old password. Far in the past, so that it
/// has expired by every node's clock; the purge removes it.
struct ExpireContents: Statement {
    let accountID: AccountID

    static let sql = """
        UPDATE saltern.deleted_contents k SET expires_at = 'epoch' WHERE k.account_id = $1 AND k.expires_at > 'epoch'
        """

    func bind(to parameters: inout Parameters) { parameters.append(accountID) }
}

/// Notes that a rotation was committed. It stays until `expiresAt`, so that the reply can be asked for again.
struct CloseRotation: Statement {
    let accountID: AccountID
    let id: RotationID
    let now: Timestamp
    let expiresAt: Timestamp
    /// How many items were swapped.
    let items: Int64

    static let sql = """
        UPDATE saltern.rotations r SET committed_at = $3, expires_at = $4, item_count = $5, item_bytes = 0
        WHERE r.account_id = $1 AND r.rotation_id = $2
        """

    func bind(to parameters: inout Parameters) {
        parameters.append(accountID)
        parameters.append(id)
        parameters.append(now)
        parameters.append(expiresAt)
        parameters.append(items)
    }
}
