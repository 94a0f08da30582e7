internal import Postgres

/// Finds the KDF iterations of a userid and those of its decoy, in one row for known and unknown userids.
struct FindKDFParameters: Statement {
    let userid: Userid
    /// The userid's position among the decoys, from 1.
    let slot: Int32

    struct Row: Sendable {
        let iterations: Int32?
        let decoyIterations: Int32
    }

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT l.kdf_iterations, i.decoy_iterations[\(\.slot)]
        FROM saltern.installation i LEFT JOIN saltern.logins l ON l.userid = \(\.userid.string)
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row { try row.read(Row.init) }
}

/// Finds the row that a log-in is checked against.
///
/// Costs 23 thousand instructions (see `Statement`): one row by its key. It does not read the account's row;
/// ``OpenSession`` does so under its lock.
struct FindLogin: Statement {
    let userid: Userid

    struct Row: Sendable {
        let accountID: AccountID
        let verifier: Verifier
        let kdfIterations: Int32
        /// Increases with every change of the credential.
        let credentialRevision: Int64
        /// The present generation of device tokens. It increases with every change of the credential, and when all
        /// other sessions end.
        let deviceGeneration: Int64
        /// The previous generation.
        let deviceGenerationBefore: Int64?
        let deviceGenerationMovedAt: Timestamp?
        /// The mark of the previous verifier.
        let previousKey: PreviousKeyMark?
    }

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT account_id, verifier, kdf_iterations, credential_revision, device_generation,
            device_generation_before, device_generation_moved_at, previous_key
        FROM saltern.logins WHERE userid = \(\.userid.string)
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row { try row.read(Row.init) }
}
