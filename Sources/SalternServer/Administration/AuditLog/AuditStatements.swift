public import Postgres

/// Appends a row to the audit log and moves the head of its chain. Returns the row's number, or no row if the head is
/// missing.
///
/// `Transaction.record(_:)` sends it as the last statement of the recorded act's transaction. Act and record then
/// commit together, and the head, for which all records wait, is locked only briefly. A waiting record sees the
/// previous one's head. The time is the database's when the head is locked, so times follow the order of numbers.
struct AppendAudit: Statement {
    typealias Row = Int64

    let actor: AuditActor
    let action: AuditAction
    var targetAccount: AccountID?
    /// At most 1,000 characters. It must contain no userid, and nothing else that is deleted with the account.
    var detail: String?

    /// The bytes of ``AuditEntry/computedHash``, from the columns of `h` and the parameters.
    private static let message: SQL<Self> = """
        h.hash || int8send(h.sequence + 1) || timestamptz_send(h.occurred_at)
        || int4send(octet_length(convert_to(\(\.actor.name), 'UTF8'))) || convert_to(\(\.actor.name), 'UTF8')
        || int4send(octet_length(convert_to(\(\.action.rawValue), 'UTF8'))) || convert_to(\(\.action.rawValue), 'UTF8')
        || coalesce('\\x01'::bytea || uuid_send(\(\.targetAccount)), '\\x00'::bytea)
        || coalesce(int4send(octet_length(convert_to(\(\.detail), 'UTF8'))) || convert_to(\(\.detail), 'UTF8'),
            int4send(-1))
        """

    static let sql: SQL<Self> = """
        WITH locked AS MATERIALIZED (
            SELECT h.sequence, h.hash FROM saltern.audit_head h WHERE h.singleton FOR UPDATE
        ), head AS MATERIALIZED (
            SELECT l.sequence, l.hash, clock_timestamp() AS occurred_at FROM locked l
        ), entry AS (
            SELECT h.sequence + 1 AS sequence, h.occurred_at, h.hash AS previous_hash, sha256(\(message)) AS hash
            FROM head h
        ), appended AS (
            INSERT INTO saltern.audit_log
                (sequence, occurred_at, actor, action, target_account, detail, previous_hash, hash)
            SELECT e.sequence, e.occurred_at, \(\.actor.name), \(\.action.rawValue), \(\.targetAccount), \(\.detail),
                e.previous_hash, e.hash FROM entry e
        )
        UPDATE saltern.audit_head h SET sequence = e.sequence, hash = e.hash FROM entry e
        WHERE h.singleton
        RETURNING h.sequence
        """
}

extension AuditEntry: DecodableRow {
    /// The columns that ``init(row:)`` reads, of the table `audit_log`.
    static let columns: SQLFragment =
        "sequence, occurred_at, actor, action, target_account, detail, previous_hash, hash"

    /// Reads the columns of ``columns``.
    public init(row: inout RowReader) throws(PostgresError) {
        sequence = try row.next()
        occurredAt = try row.next()
        actor = try row.next()
        action = try row.next()
        targetAccount = try row.next()
        detail = try row.next()
        previousHash = try row.next()
        hash = try row.next()
    }
}

/// Finds the end of the chain.
struct FindAuditHead: Statement {
    static let isReadOnly = true
    static let sql: SQL<Self> = "SELECT sequence, hash FROM saltern.audit_head WHERE singleton"

    static func decode(_ row: inout RowReader) throws(PostgresError) -> AuditPlace { try row.read(AuditPlace.init) }
}

/// Finds rows behind a position, in the order of the chain.
struct FindAuditEntries: Statement {
    typealias Row = AuditEntry

    let after: Int64
    let limit: Int64

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT \(AuditEntry.columns) FROM saltern.audit_log WHERE sequence > \(\.after)
            ORDER BY sequence LIMIT \(\.limit)
        """
}

/// Finds the latest rows before a position, latest first.
struct FindLatestAuditEntries: Statement {
    typealias Row = AuditEntry

    let before: Int64
    let limit: Int64

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT \(AuditEntry.columns) FROM saltern.audit_log WHERE sequence < \(\.before)
            ORDER BY sequence DESC LIMIT \(\.limit)
        """
}
