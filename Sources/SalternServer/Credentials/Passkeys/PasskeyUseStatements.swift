internal import Postgres
internal import WebAuthn

/// The stored state of a passkey, for the comparison with an assertion.
struct UsablePasskey: Sendable, DecodableRow {
    let id: PasskeyID
    let algorithm: Int32
    let publicKey: [UInt8]
    let signCount: Int64
    let isBackupEligible: Bool
    let logsIn: Bool

    static let columns: SQLFragment =
        "k.credential_id, k.algorithm, k.public_key, k.sign_count, k.backup_eligible, k.logs_in"

    init(row: inout RowReader) throws(PostgresError) {
        id = try row.next()
        algorithm = try row.next()
        publicKey = try row.next()
        signCount = try row.next()
        isBackupEligible = try row.next()
        logsIn = try row.next()
    }
}

/// Finds a passkey of an account, for a caller with the right password key or a session.
struct FindUsablePasskey: AccountRead {
    typealias Row = UsablePasskey

    let id: PasskeyID

    static let sql: AccountSQL<Self> = """
        SELECT \(UsablePasskey.columns) FROM saltern.passkeys k
        WHERE k.account_id = \(.account) AND k.credential_id = \(\.id)
        """
}

/// Finds a passkey that logs in, of an account that is not locked.
struct FindPasskeyLogIn: Statement {
    let accountID: AccountID
    let id: PasskeyID

    struct Row: Sendable {
        let passkey: UsablePasskey
        let credentialRevision: Int64
        let sealedPrivateKey: [UInt8]?
        let unlockBox: [UInt8]?
    }

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT \(UsablePasskey.columns), a.credential_revision, k.unlock_key, k.unlock_box
        FROM saltern.passkeys k JOIN saltern.accounts a ON a.account_id = \(\.accountID)
        WHERE k.account_id = \(\.accountID) AND k.credential_id = \(\.id) AND k.logs_in AND a.locked_at IS NULL
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row {
        Row(
            passkey: try UsablePasskey(row: &row), credentialRevision: try row.next(),
            sealedPrivateKey: try row.next(), unlockBox: try row.next())
    }
}

/// Records the use of a passkey for the session of ``OpenSession``. Returns no row if the sign count has changed since
/// it was read. If it and ``UseChallenge`` return rows, ``InsertSession`` stores the session in the same transaction.
struct OpenSessionWithPasskey: Statement {
    let opening: OpenSession
    let id: PasskeyID
    /// The sign count that was read.
    let signCount: Int64
    let verified: Assertion.Verified

    private var newSignCount: Int64 { Int64(verified.signCount) }

    static let sql: SQL<Self> = """
        WITH \(OpenSession.account, of: \.opening), used AS (
            UPDATE saltern.passkeys k
            SET sign_count = \(\.newSignCount), backed_up = \(\.verified.isBackedUp), last_used_at = \(\.opening.now)
            FROM account a
            WHERE k.account_id = \(\.opening.accountID) AND k.credential_id = \(\.id) AND k.sign_count = \(\.signCount)
            RETURNING k.account_id
        )
        SELECT \(OpenSession.columns) FROM account a JOIN used u ON u.account_id = a.account_id
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> OpenSession.Row {
        try OpenSession.decode(&row)
    }
}

/// Records the use of a passkey without a new session. Returns no row if the passkey does not log in, or its sign count
/// has changed since it was read.
struct RecordPasskeyUse: Statement {
    typealias Row = AccountID

    let accountID: AccountID
    let use: PasskeyUse
    let now: Timestamp

    private var newSignCount: Int64 { Int64(use.verified.signCount) }

    static let sql: SQL<Self> = """
        UPDATE saltern.passkeys k
        SET sign_count = \(\.newSignCount), backed_up = \(\.use.verified.isBackedUp), last_used_at = \(\.now)
        WHERE k.account_id = \(\.accountID) AND k.credential_id = \(\.use.passkey.id) AND k.logs_in
            AND k.sign_count = \(\.use.passkey.signCount)
        RETURNING k.account_id
        """
}
