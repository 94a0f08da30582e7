internal import Postgres

/// Appends a row to the audit log and moves the head of its chain; the row's place is the answer, and there is none when
/// the head is missing.
///
/// Send it through ``Postgres/Transaction/record(_:)`` as the last statement of the transaction that does the thing: act
/// and record commit together, and the head, which everybody who records waits for, is locked for the shortest time.
/// Whoever waited sees the head that the one before left.
struct AppendAudit: Statement {
    let actor: AuditActor
    let action: AuditAction
    var targetAccount: AccountID?
    /// At most 1,000 characters. Never a userid or anything else that ought to go with the account.
    var detail: String?
    let now: Timestamp

    /// The bytes that ``AuditEntry/computedHash`` describes, of the columns of `h` and the parameters.
    private static let message = """
        h.hash || int8send(h.sequence + 1) || timestamptz_send($1)
        || int4send(octet_length(convert_to($2, 'UTF8'))) || convert_to($2, 'UTF8')
        || int4send(octet_length(convert_to($3, 'UTF8'))) || convert_to($3, 'UTF8')
        || coalesce('\\x01'::bytea || uuid_send($4), '\\x00'::bytea)
        || coalesce(int4send(octet_length(convert_to($5, 'UTF8'))) || convert_to($5, 'UTF8'), int4send(-1))
        """

    static let sql = """
        WITH head AS (
            SELECT h.sequence, h.hash FROM saltern.audit_head h WHERE h.singleton FOR UPDATE
        ), entry AS (
            SELECT h.sequence + 1 AS sequence, h.hash AS previous_hash, sha256(\(message)) AS hash FROM head h
        ), appended AS (
            INSERT INTO saltern.audit_log
                (sequence, occurred_at, actor, action, target_account, detail, previous_hash, hash)
            SELECT e.sequence, $1, $2, $3, $4, $5, e.previous_hash, e.hash FROM entry e
        )
        UPDATE saltern.audit_head h SET sequence = e.sequence, hash = e.hash FROM entry e
        WHERE h.singleton
        RETURNING h.sequence
        """

    func bind(to parameters: inout Parameters) {
        parameters.append(now)
        parameters.append(actor.name)
        parameters.append(action.rawValue)
        parameters.append(targetAccount)
        parameters.append(detail)
    }

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Int64 { try row.next() }
}

extension AuditEntry {
    /// The columns that ``init(row:)`` reads, of the table `audit_log`.
    static let columns = "sequence, occurred_at, actor, action, target_account, detail, previous_hash, hash"

    /// Reads ``columns``.
    init(row: inout RowReader) throws(PostgresError) {
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

/// The end of the chain.
struct FindAuditHead: Statement {
    static let isReadOnly = true
    static let sql = "SELECT sequence, hash FROM saltern.audit_head WHERE singleton"

    static func decode(_ row: inout RowReader) throws(PostgresError) -> AuditPlace {
        AuditPlace(sequence: try row.next(), hash: try row.next())
    }
}

/// Rows behind a place of the chain, in its order.
struct FindAuditEntries: Statement {
    let after: Int64
    let limit: Int64

    static let isReadOnly = true
    static let sql = """
        SELECT \(AuditEntry.columns) FROM saltern.audit_log WHERE sequence > $1 ORDER BY sequence LIMIT $2
        """

    func bind(to parameters: inout Parameters) {
        parameters.append(after)
        parameters.append(limit)
    }

    static func decode(_ row: inout RowReader) throws(PostgresError) -> AuditEntry { try AuditEntry(row: &row) }
}

/// The latest rows before a place of the chain, latest first.
struct FindLatestAuditEntries: Statement {
    let before: Int64
    let limit: Int64

    static let isReadOnly = true
    static let sql = """
        SELECT \(AuditEntry.columns) FROM saltern.audit_log WHERE sequence < $1 ORDER BY sequence DESC LIMIT $2
        """

    func bind(to parameters: inout Parameters) {
        parameters.append(before)
        parameters.append(limit)
    }

    static func decode(_ row: inout RowReader) throws(PostgresError) -> AuditEntry { try AuditEntry(row: &row) }
}
