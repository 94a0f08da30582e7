internal import HTTPCore
internal import Postgres

/// Identifies a row that is due and its owner.
struct DueRow<ID: Sendable>: Sendable {
    let owner: AccountID
    let id: ID
    /// The row's sealed bytes, 0 for short rows.
    var bytes: Int64 = 0
}

extension DueRow: DecodableRow where ID: PostgresValue {
    init(row: inout RowReader) throws(PostgresError) {
        owner = try row.next()
        id = try row.next()
    }
}

extension DueRow {
    /// Divides rows into slices of at most `limit` sealed bytes, except for a single longer row. Returns their ids.
    static func slices(of rows: [Self], _ limit: Int64) -> [[ID]] {
        var slices: [[ID]] = []
        var left: Int64 = 0
        for row in rows {
            if row.bytes > left || slices.isEmpty {
                slices.append([])
                left = limit
            }
            slices[slices.count - 1].append(row.id)
            left -= row.bytes
        }
        return slices
    }
}

/// Takes the lock of the purging node until the connection ends. Returns false if another node has it.
struct TakePurgeLock: Statement {
    typealias Row = Bool

    /// `saltpurg` in ASCII, because advisory locks are numbers.
    static let sql: SQL<Self> = "SELECT pg_try_advisory_lock(x'73616c7470757267'::bigint)"
}

/// Takes the same lock until the transaction ends, and removes the transaction's idle limit.
struct HoldPurgeLock: Statement {
    static let sql: SQL<Self> = """
        SELECT pg_try_advisory_xact_lock(x'73616c7470757267'::bigint),
            set_config('idle_in_transaction_session_timeout', '0', true)
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Bool { try row.next() }
}

/// Releases the lock of the purging node.
struct ReleasePurgeLock: Statement {
    typealias Row = Bool

    static let sql: SQL<Self> = "SELECT pg_advisory_unlock(x'73616c7470757267'::bigint)"
}

/// Limits the wait of a transaction's statements for locks.
struct LimitLockWait: Statement {
    typealias Row = String

    let milliseconds: Int64

    static let sql: SQL<Self> = "SELECT set_config('lock_timeout', \(\.milliseconds)::bigint::text, true)"
}

/// Begins a slice: limits its wait for locks, and disables its wait for the disk. The next purge removes rows that a
/// crash brings back.
struct BeginPurgeSlice: Statement {
    let milliseconds: Int64

    static let sql: SQL<Self> = """
        SELECT set_config('lock_timeout', \(\.milliseconds)::bigint::text, true),
            set_config('synchronous_commit', 'off', true)
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) {}
}

/// Finds the oldest tombstones older than `before` in all accounts, by the index `tombstones_by_age`.
struct FindOldTombstones: Statement {
    typealias Row = DueRow<ItemID>

    let before: Timestamp
    /// Accounts to leave out.
    var except: [AccountID] = []
    let limit: Int64

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT i.account_id, i.item_id FROM saltern.items i
        WHERE i.deleted AND i.updated_at <= \(\.before) AND i.updated_at > '-infinity'
            AND i.account_id <> ALL(\(\.except)::uuid[])
        ORDER BY i.updated_at LIMIT \(\.limit)
        """
}

/// Finds expired kept contents of all accounts, earliest expiry first, by the index `deleted_contents_by_expiry`.
struct FindExpiredContents: Statement {
    /// The row with its sealed bytes.
    typealias Row = DueRow<ItemID>

    let now: Timestamp
    /// Accounts to leave out.
    let except: [AccountID]
    let limit: Int64

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT k.account_id, k.item_id, \(SealedSize.bytes(of: "k")) FROM saltern.deleted_contents k
        WHERE k.expires_at <= \(\.now) AND k.created_at > '-infinity' AND k.account_id <> ALL(\(\.except)::uuid[])
        ORDER BY k.expires_at LIMIT \(\.limit)
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row {
        Row(owner: try row.next(), id: try row.next(), bytes: try row.next())
    }
}

/// Finds expired older versions of all accounts, earliest expiry first, by the index `replaced_contents_by_expiry`.
struct FindExpiredVersions: Statement {
    /// The row with its sealed bytes.
    typealias Row = DueRow<VersionKey>

    let now: Timestamp
    /// Accounts to leave out.
    let except: [AccountID]
    let limit: Int64

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT v.account_id, v.item_id, v.revision, \(SealedSize.bytes(of: "v")) FROM saltern.replaced_contents v
        WHERE v.expires_at <= \(\.now) AND v.replaced_at > '-infinity' AND v.account_id <> ALL(\(\.except)::uuid[])
        ORDER BY v.expires_at LIMIT \(\.limit)
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row {
        Row(
            owner: try row.next(), id: VersionKey(item: try row.next(), revision: try row.next()),
            bytes: try row.next())
    }
}

/// Finds a slice of all sessions in key order behind `after`, each with a flag for ended ones.
///
/// An index on the last use would avoid the scan, but cost each request that records a use.
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

    private var lowest: AccountID { after?.accountID ?? AccountID(.zero) }
    private var lowestHash: [UInt8] { after?.tokenHash ?? [] }

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT s.account_id, s.token_hash, s.expires_at <= \(\.now) OR s.last_used_at <= \(\.idleSince)
        FROM saltern.sessions s
        WHERE (s.account_id, s.token_hash) > (\(\.lowest), \(\.lowestHash))
        ORDER BY s.account_id, s.token_hash LIMIT \(\.limit)
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row { try row.read(Row.init) }
}

/// Finds expired rotations of all accounts, earliest expiry first, by the index `rotations_by_expiry`.
struct FindExpiredRotations: Statement {
    typealias Row = DueRow<RotationID>

    let now: Timestamp
    /// Accounts to leave out.
    let except: [AccountID]
    let limit: Int64

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT r.account_id, r.rotation_id FROM saltern.rotations r
        WHERE r.expires_at <= \(\.now) AND r.account_id <> ALL(\(\.except)::uuid[])
        ORDER BY r.expires_at LIMIT \(\.limit)
        """
}

/// Removes an account's tombstones and records their highest revision, so that cursors below it expire. Returns their
/// number.
struct RemoveTombstones: Statement {
    typealias Row = Int64

    let accountID: AccountID
    let before: Timestamp
    let itemIDs: [ItemID]

    static let sql: SQL<Self> = """
        WITH gone AS (
            DELETE FROM saltern.items i
            WHERE i.account_id = \(\.accountID) AND i.item_id = ANY(\(\.itemIDs)::uuid[]) AND i.deleted
                AND i.updated_at <= \(\.before)
            RETURNING i.revision
        ), summary AS (
            SELECT max(g.revision) AS highest, count(*) AS number FROM gone g
        ), marked AS (
            UPDATE saltern.accounts a
            SET purged_revision = greatest(a.purged_revision, s.highest),
                tombstone_count = greatest(a.tombstone_count - s.number, 0)
            FROM summary s WHERE a.account_id = \(\.accountID) AND s.number > 0
        )
        SELECT s.number FROM summary s
        """
}

/// Removes kept contents of an account's deleted items. Returns their number.
struct RemoveContents: Statement {
    typealias Row = Int64

    let accountID: AccountID
    let now: Timestamp
    let itemIDs: [ItemID]

    static let sql: SQL<Self> = """
        WITH gone AS (
            DELETE FROM saltern.deleted_contents k
            WHERE k.account_id = \(\.accountID) AND k.item_id = ANY(\(\.itemIDs)::uuid[]) AND k.expires_at <= \(\.now)
            RETURNING \(SealedSize.bytes(of: "k")) AS bytes
        ), summary AS (
            SELECT count(*) AS number, coalesce(sum(g.bytes), 0)::bigint AS bytes FROM gone g
        ), counted AS (
            UPDATE saltern.accounts a
            SET kept_count = greatest(a.kept_count - s.number, 0), kept_bytes = greatest(a.kept_bytes - s.bytes, 0)
            FROM summary s WHERE a.account_id = \(\.accountID) AND s.number > 0
        )
        SELECT s.number FROM summary s
        """
}

/// Removes expired older versions of an account's items. Returns their number.
///
/// It names each version, because an item may have very many.
struct RemoveVersions: Statement {
    typealias Row = Int64

    let accountID: AccountID
    let now: Timestamp
    let keys: [VersionKey]

    private var itemIDs: [ItemID] { keys.map(\.item) }
    private var revisions: [Int64] { keys.map(\.revision) }

    static let sql: SQL<Self> = """
        WITH gone AS (
            DELETE FROM saltern.replaced_contents v
            USING unnest(\(\.itemIDs)::uuid[], \(\.revisions)::bigint[]) AS d(item_id, revision)
            WHERE v.account_id = \(\.accountID) AND v.item_id = d.item_id AND v.revision = d.revision
                AND v.expires_at <= \(\.now)
            RETURNING \(SealedSize.bytes(of: "v")) AS bytes
        ), summary AS (
            SELECT count(*) AS number, coalesce(sum(g.bytes), 0)::bigint AS bytes FROM gone g
        ), counted AS (
            UPDATE saltern.accounts a
            SET version_count = greatest(a.version_count - s.number, 0),
                version_bytes = greatest(a.version_bytes - s.bytes, 0)
            FROM summary s WHERE a.account_id = \(\.accountID) AND s.number > 0
        )
        SELECT s.number FROM summary s
        """
}

/// Removes an account's ended sessions. The account's row must be locked. Sessions whose use is being recorded are left
/// to the next purge.
struct RemoveSessions: SessionRemoval {
    typealias Row = ChangedRows

    let accountID: AccountID
    let now: Timestamp
    let idleSince: Timestamp

    static let noting: SQL<Self> = SessionEnd.noting(
        isDue, of: "\(\.accountID)", at: SessionEnd.moment(now: "\(\.now)", idleSince: "\(\.idleSince)"))
    static let sql: SQL<Self> = SessionEnd.removing(isDue, of: "\(\.accountID)", at: nil)
    private static let isDue: SQL<Self> = """
        s.token_hash IN (
            SELECT o.token_hash FROM saltern.sessions o
            WHERE o.account_id = \(\.accountID) AND (o.expires_at <= \(\.now) OR o.last_used_at <= \(\.idleSince))
            FOR UPDATE SKIP LOCKED)
        """
}

/// The statements of the purge.
extension StatementList {
    static var purge: [any Statement.Type] {
        [
            TakePurgeLock.self, ReleasePurgeLock.self, HoldPurgeLock.self, BeginPurgeSlice.self, LimitLockWait.self,
            FindEndedSessions.self, RecordSessionEnds<RemoveSessions>.self, RemoveSessions.self,
            FindExpiredContents.self, RemoveContents.self, FindExpiredKeyrings.self, RemoveExpiredKeyrings.self,
            FindExpiredVersions.self, RemoveVersions.self, FindDueVersions.self, FindOldTombstones.self,
            RemoveTombstones.self, FindExpiredRotations.self, FindDueTombstones.self, FindDueContents.self,
            FindDueKeyrings.self, FindDueRotations.self, FindDueEvents.self, FindDueAttempts.self, FindDueShares.self,
            FindDueInvitations.self,
        ]
    }
}
