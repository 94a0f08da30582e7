internal import Postgres

/// The account's keyring with its revision; no keyring when there is none.
struct FindKeyring: AccountRead {
    struct Row: Sendable {
        let keyring: [UInt8]?
        /// 0 when there never was one.
        let revision: Int64
    }

    static let sql = "SELECT a.keyring, a.keyring_revision FROM saltern.accounts a WHERE a.account_id = $1"

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row {
        Row(keyring: try row.next(), revision: try row.next())
    }
}

/// Creates or replaces the account's keyring, and takes its next revision.
///
/// Equal content is `unchanged` whatever the precondition says: then this is the retry of a request whose reply was
/// lost.
struct WriteKeyring: AccountWrite {
    let precondition: Precondition
    let keyring: Keyring

    struct Row: Sendable {
        let outcome: Outcome
        /// After the write, or as it is when the precondition does not hold.
        let revision: Int64
        /// What is there when the precondition does not hold.
        let current: [UInt8]?
    }

    enum Outcome: String, Sendable {
        case created
        case updated
        case unchanged
        case preconditionFailed = "precondition_failed"
    }

    static let locksAccount = true
    static let sql = """
        WITH decision AS (
            SELECT a.account_id, a.keyring, a.keyring_revision,
                CASE
                    WHEN a.keyring = $6 THEN 'unchanged'
                    WHEN ($5 = 0 AND a.keyring IS NOT NULL)
                        OR ($5 = -1 AND a.keyring IS NULL)
                        OR ($5 > 0 AND (a.keyring IS NULL OR a.keyring_revision <> $5))
                    THEN 'precondition_failed'
                    WHEN a.keyring IS NULL THEN 'created'
                    ELSE 'updated'
                END AS outcome
            FROM saltern.accounts a
            WHERE a.account_id = $1 AND a.locked_at IS NULL AND \(Caller.hasLiveSession)
        ), written AS (
            UPDATE saltern.accounts a SET keyring = $6, keyring_revision = a.keyring_revision + 1
            FROM decision d
            WHERE a.account_id = $1 AND a.account_id = d.account_id AND d.outcome IN ('created', 'updated')
            RETURNING a.account_id, a.keyring_revision
        )
        SELECT d.outcome, coalesce(w.keyring_revision, d.keyring_revision),
            CASE WHEN d.outcome = 'precondition_failed' THEN d.keyring END
        FROM decision d LEFT JOIN written w ON w.account_id = d.account_id
        """

    func bind(to parameters: inout Parameters) {
        parameters.append(precondition.parameter)
        parameters.append(keyring.bytes)
    }

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row {
        Row(outcome: try row.next(), revision: try row.next(), current: try row.next())
    }
}

extension WriteKeyring.Outcome: PostgresValue {
    static var postgresType: PostgresType { .text }

    func encode(to writer: inout ByteWriter) { rawValue.encode(to: &writer) }

    static func decode(_ bytes: UnsafeRawBufferPointer?) -> WriteKeyring.Outcome? {
        String.decode(bytes).flatMap(WriteKeyring.Outcome.init(rawValue:))
    }
}
