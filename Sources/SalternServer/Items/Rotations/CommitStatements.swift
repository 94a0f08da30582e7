internal import Postgres

/// Makes the planner join whole sets until the transaction ends. It has no statistics of rows written a moment ago,
/// assumes a few, and would use nested loops.
struct JoinWholeSets: Statement {
    typealias Row = String

    static let sql: SQL<Self> = "SELECT set_config('enable_nestloop', 'off', true)"
}

/// Finds live items that prevent a commit: not staged, or staged from an earlier revision. The account's row must be
/// locked, so the result stays valid.
struct FindUnready: Statement {
    let accountID: AccountID
    let rotationID: RotationID

    struct Row: Sendable {
        let id: ItemID
        let isStaged: Bool
    }

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT i.item_id, s.item_id IS NOT NULL
        FROM saltern.items i LEFT JOIN saltern.rotation_items s
            ON s.account_id = \(\.accountID) AND s.rotation_id = \(\.rotationID) AND s.item_id = i.item_id
        WHERE i.account_id = \(\.accountID) AND NOT i.deleted AND s.base_revision IS DISTINCT FROM i.revision
        ORDER BY i.item_id
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row { try row.read(Row.init) }
}

/// Takes a revision of the account for each replaced item, and sets the total of sealed bytes. The number of items
/// stays.
struct TakeRevisions: Statement {
    let accountID: AccountID
    let rotationID: RotationID

    struct Row: Sendable {
        /// The last of them, which is the account's new revision.
        let revision: Int64
        let items: Int64
    }

    static let sql: SQL<Self> = """
        WITH staged AS (
            SELECT count(*) AS items,
                coalesce(sum(\(SealedSize.bytes(of: "s"))), 0)::bigint AS bytes
            FROM saltern.rotation_items s JOIN saltern.items i ON i.account_id = s.account_id AND i.item_id = s.item_id
            WHERE s.account_id = \(\.accountID) AND s.rotation_id = \(\.rotationID) AND i.account_id = \(\.accountID)
                AND NOT i.deleted
        )
        UPDATE saltern.accounts a SET revision = \(AccountCounter.next("a.revision", by: "n.items")),
            item_bytes = n.bytes
        FROM staged n WHERE a.account_id = \(\.accountID)
        RETURNING a.revision, n.items
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row { try row.read(Row.init) }
}

/// Moves a slice of staged items into the items, each with the next revision. Staged items that were deleted meanwhile
/// are dropped.
struct SwapItems: Statement {
    let accountID: AccountID
    let rotationID: RotationID
    /// The revision before the slice's first one.
    let revision: Int64
    let now: Timestamp

    struct Row: Sendable {
        /// The number of staged items in the slice.
        let taken: Int64
        /// The number of replaced items.
        let swapped: Int64
    }

    static let sql: SQL<Self> = """
        WITH \(StagedItems.bound(of: "\(\.rotationID)", "\(\.accountID)")), taken AS (
            DELETE FROM saltern.rotation_items s
            WHERE s.account_id = \(\.accountID) AND s.rotation_id = \(\.rotationID) AND s.item_id <= (SELECT b.item_id
                FROM bound b)
            RETURNING s.item_id, s.format, s.iterations, s.title, s.body
        ), numbered AS (
            SELECT t.*, row_number() OVER (ORDER BY t.item_id) AS position
            FROM taken t
            WHERE EXISTS (
                SELECT FROM saltern.items l WHERE l.account_id = \(\.accountID) AND l.item_id = t.item_id
                    AND NOT l.deleted)
        ), swapped AS (
            UPDATE saltern.items i
            SET revision = \(\.revision) + n.position, format = n.format, iterations = n.iterations, title = n.title,
                body = n.body, updated_at = \(\.now), kept_at = NULL
            FROM numbered n
            WHERE i.account_id = \(\.accountID) AND i.item_id = n.item_id
            RETURNING i.item_id
        )
        SELECT (SELECT count(*) FROM taken), (SELECT count(*) FROM swapped)
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row { try row.read(Row.init) }
}

/// Records a commit of a rotation until `expiresAt`, so that the request can be repeated.
struct CloseRotation: Statement {
    let accountID: AccountID
    let id: RotationID
    let now: Timestamp
    let expiresAt: Timestamp
    /// The number of replaced items.
    let items: Int64

    static let sql: SQL<Self> = """
        UPDATE saltern.rotations r SET committed_at = \(\.now), expires_at = \(\.expiresAt), item_count = \(\.items),
            item_bytes = 0
        WHERE r.account_id = \(\.accountID) AND r.rotation_id = \(\.id)
        """
}
