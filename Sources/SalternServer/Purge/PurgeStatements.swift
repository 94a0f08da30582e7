internal import HTTPCore
internal import Postgres

/// Takes the lock of the one node that purges, until the connection is closed; false when another one has it.
struct TakePurgeLock: Statement {
    /// `saltpurg` in ASCII: advisory locks are numbers.
    static let sql = "SELECT pg_try_advisory_lock(x'73616c7470757267'::bigint)"

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Bool { try row.next() }
}

/// Names a row of an account.
struct OwnedRow: Sendable {
    let accountID: AccountID
    let itemID: ItemID
}

/// The oldest tombstones of all accounts that are older than `before`, by the index `tombstones_by_age`.
struct FindOldTombstones: Statement {
    let before: Timestamp
    let limit: Int64

    static let isReadOnly = true
    static let sql = """
        SELECT i.account_id, i.item_id FROM saltern.items i
        WHERE i.deleted AND i.updated_at <= $1
        ORDER BY i.updated_at LIMIT $2
        """

    func bind(to parameters: inout Parameters) {
        parameters.append(before)
        parameters.append(limit)
    }

    static func decode(_ row: inout RowReader) throws(PostgresError) -> OwnedRow {
        OwnedRow(accountID: try row.next(), itemID: try row.next())
    }
}

/// The kept contents of all accounts that expired first, by the index `deleted_contents_by_expiry`.
struct FindExpiredContents: Statement {
    let now: Timestamp
    let limit: Int64

    static let isReadOnly = true
    static let sql = """
        SELECT k.account_id, k.item_id FROM saltern.deleted_contents k
        WHERE k.expires_at <= $1
        ORDER BY k.expires_at LIMIT $2
        """

    func bind(to parameters: inout Parameters) {
        parameters.append(now)
        parameters.append(limit)
    }

    static func decode(_ row: inout RowReader) throws(PostgresError) -> OwnedRow {
        OwnedRow(accountID: try row.next(), itemID: try row.next())
    }
}

/// A slice of all sessions in the order of their keys, behind `after`, with whether each has ended.
///
/// An index on the last use would find those without a walk, and cost every request that records one.
struct FindEndedSessions: Statement {
    let after: Row?
    let now: Timestamp
    let idleSince: Timestamp
    let limit: Int64

    struct Row: Sendable {
        let accountID: AccountID
        let tokenHash: [UInt8]
        let hasEnded: Bool
    }

    static let isReadOnly = true
    static let sql = """
        SELECT s.account_id, s.token_hash, s.expires_at <= $3 OR s.last_used_at <= $4
        FROM saltern.sessions s
        WHERE (s.account_id, s.token_hash) > ($1, $2)
        ORDER BY s.account_id, s.token_hash LIMIT $5
        """

    func bind(to parameters: inout Parameters) {
        parameters.append(after?.accountID ?? AccountID(UUID(high: 0, low: 0)))
        parameters.append(after?.tokenHash ?? [])
        parameters.append(now)
        parameters.append(idleSince)
        parameters.append(limit)
    }

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row {
        Row(accountID: try row.next(), tokenHash: try row.next(), hasEnded: try row.next())
    }
}

/// The rotations of all accounts that expired first, by the index `rotations_by_expiry`.
struct FindExpiredRotations: Statement {
    let now: Timestamp
    let limit: Int64

    struct Row: Sendable {
        let accountID: AccountID
        let id: RotationID
    }

    static let isReadOnly = true
    static let sql = """
        SELECT r.account_id, r.rotation_id FROM saltern.rotations r
        WHERE r.expires_at <= $1
        ORDER BY r.expires_at LIMIT $2
        """

    func bind(to parameters: inout Parameters) {
        parameters.append(now)
        parameters.append(limit)
    }

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row {
        Row(accountID: try row.next(), id: try row.next())
    }
}

/// Locks an account's row until the transaction ends, as every writer of its items does first.
struct LockAccount: Statement {
    let accountID: AccountID

    static let sql = "SELECT a.account_id FROM saltern.accounts a WHERE a.account_id = $1 FOR NO KEY UPDATE"

    func bind(to parameters: inout Parameters) { parameters.append(accountID) }

    static func decode(_ row: inout RowReader) throws(PostgresError) -> AccountID { try row.next() }
}

/// Removes an account's tombstones, and notes the highest revision among them, so that a cursor from before expires.
/// Returns how many there were.
struct RemoveTombstones: Statement {
    let accountID: AccountID
    let before: Timestamp
    let itemIDs: [ItemID]

    static let sql = """
        WITH gone AS (
            DELETE FROM saltern.items i
            WHERE i.account_id = $1 AND i.item_id = ANY($3::uuid[]) AND i.deleted AND i.updated_at <= $2
            RETURNING i.revision
        ), summary AS (
            SELECT max(g.revision) AS highest, count(*) AS number FROM gone g
        ), marked AS (
            UPDATE saltern.accounts a SET purged_revision = greatest(a.purged_revision, s.highest)
            FROM summary s WHERE a.account_id = $1 AND s.number > 0
        )
        SELECT s.number FROM summary s
        """

    func bind(to parameters: inout Parameters) {
        parameters.append(accountID)
        parameters.append(before)
        parameters.append(itemIDs.map(\.uuid))
    }

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Int64 { try row.next() }
}

/// Removes what an account's deleted items held. Returns how many there were.
struct RemoveContents: Statement {
    let accountID: AccountID
    let now: Timestamp
    let itemIDs: [ItemID]

    static let sql = """
        WITH gone AS (
            DELETE FROM saltern.deleted_contents k
            WHERE k.account_id = $1 AND k.item_id = ANY($3::uuid[]) AND k.expires_at <= $2
            RETURNING k.item_id
        )
        SELECT count(*) FROM gone
        """

    func bind(to parameters: inout Parameters) {
        parameters.append(accountID)
        parameters.append(now)
        parameters.append(itemIDs.map(\.uuid))
    }

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Int64 { try row.next() }
}

/// Removes an account's sessions that have ended, and returns how many. Those that a login is removing are left to it,
/// so the two never wait for each other.
struct RemoveSessions: Statement {
    let accountID: AccountID
    let now: Timestamp
    let idleSince: Timestamp

    static let sql = """
        \(SessionEnd.sql(due, at: SessionEnd.moment(now: "$2", idleSince: "$3")))
        SELECT count(*) FROM ended
        """
    private static let due = """
        s.token_hash IN (
            SELECT o.token_hash FROM saltern.sessions o
            WHERE o.account_id = $1 AND (o.expires_at <= $2 OR o.last_used_at <= $3)
            FOR UPDATE SKIP LOCKED)
        """

    func bind(to parameters: inout Parameters) {
        parameters.append(accountID)
        parameters.append(now)
        parameters.append(idleSince)
    }

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Int64 { try row.next() }
}
