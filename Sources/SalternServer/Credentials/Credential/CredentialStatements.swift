internal import Postgres

/// The KDF iterations of a userid and those of its decoy, in one row whether the userid is known or not.
struct FindKDFParameters: Statement {
    let userid: Userid
    /// The userid's place among the decoys, from 1.
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

/// What a login is checked against.
///
/// Costs 23 thousand instructions (see `Statement`): one row by its key. It says nothing of the account, whose row is
/// looked at when it is locked, by ``OpenSession``.
struct FindLogin: Statement {
    let userid: Userid

    struct Row: Sendable {
        let accountID: AccountID
        let verifier: Verifier
        let kdfIterations: Int32
        /// Moves with every change of the credential.
        let credentialRevision: Int64
        /// Which tokens of devices are the present ones. Moves with every change of the credential, and with the end of
        /// all other sessions.
        let deviceGeneration: Int64
        /// Those that were the present ones before.
        let deviceGenerationBefore: Int64?
        let deviceGenerationMovedAt: Timestamp?
        /// Of the verifier that was replaced last.
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
