internal import Postgres

/// Sets or replaces the recovery key; no row when it is set already, with the same keyring. The account's row was locked
/// before.
struct WriteRecovery: Statement {
    let accountID: AccountID
    let verifier: Verifier
    let keyring: Keyring?
    let now: Timestamp

    static let sql = """
        INSERT INTO saltern.recoveries AS r (account_id, verifier, keyring, created_at) VALUES ($1, $2, $3, $4)
        ON CONFLICT (account_id) DO UPDATE
        SET verifier = excluded.verifier, keyring = excluded.keyring, created_at = excluded.created_at,
            last_used_at = NULL
        WHERE r.verifier <> excluded.verifier OR r.keyring IS DISTINCT FROM excluded.keyring
        RETURNING r.account_id
        """

    func bind(to parameters: inout Parameters) {
        parameters.append(accountID)
        parameters.append(verifier)
        parameters.append(keyring?.bytes)
        parameters.append(now)
    }

    static func decode(_ row: inout RowReader) throws(PostgresError) -> AccountID { try row.next() }
}

/// Removes the recovery key; no row when there was none.
struct DeleteRecovery: Statement {
    let accountID: AccountID

    static let sql = "DELETE FROM saltern.recoveries r WHERE r.account_id = $1 RETURNING r.account_id"

    func bind(to parameters: inout Parameters) { parameters.append(accountID) }

    static func decode(_ row: inout RowReader) throws(PostgresError) -> AccountID { try row.next() }
}

/// Ends what recoveries have opened.
struct RemoveRestrictedSessions: Statement {
    let accountID: AccountID

    static let sql = "DELETE FROM saltern.sessions s WHERE s.account_id = $1 AND s.restricted"

    func bind(to parameters: inout Parameters) { parameters.append(accountID) }
}

/// What a recovery key is compared with.
struct FindRecovery: Statement {
    let accountID: AccountID

    static let isReadOnly = true
    static let sql = "SELECT r.verifier FROM saltern.recoveries r WHERE r.account_id = $1"

    func bind(to parameters: inout Parameters) { parameters.append(accountID) }

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Verifier { try row.next() }
}

/// Locks the account of a recovery until the transaction ends, when its key was right: a removal of the key and a change
/// of the credential come wholly before it or wholly after it. Whoever has a wrong key holds up nobody.
struct LockRecoveringAccount: Statement {
    let accountID: AccountID
    let isPermitted: Bool

    static let sql = """
        SELECT a.account_id FROM saltern.accounts a WHERE a.account_id = $1 AND $2 FOR NO KEY UPDATE
        """

    func bind(to parameters: inout Parameters) {
        parameters.append(accountID)
        parameters.append(isPermitted)
    }

    static func decode(_ row: inout RowReader) throws(PostgresError) -> AccountID { try row.next() }
}

/// Opens the restricted session of a recovery in place of an earlier one, and tells the account's owner; no row when the
/// key was wrong or is not the account's any more, or the account is locked. Sent after ``LockRecoveringAccount``, so
/// that its snapshot shows what the change before it left.
struct OpenRecoverySession: Statement {
    let accountID: AccountID
    let tokenHash: TokenHash
    let sessionID: SessionID
    let deviceName: DeviceName?
    let now: Timestamp
    let expiresAt: Timestamp
    /// Whether the caller has shown the right key.
    let isPermitted: Bool
    /// What it was compared with.
    let verifier: Verifier
    let eventID = SecurityEventID.random()

    struct Row: Sendable {
        /// Sealed under the recovery key.
        let keyring: [UInt8]?
    }

    static let sql = """
        WITH recovery AS (
            SELECT r.account_id, r.keyring
            FROM saltern.recoveries r JOIN saltern.accounts a ON a.account_id = r.account_id
            WHERE r.account_id = $1 AND a.account_id = $1 AND $7 AND r.verifier = $8 AND a.locked_at IS NULL
        ), replaced AS (
            DELETE FROM saltern.sessions s USING recovery r WHERE s.account_id = $1 AND s.restricted
        ), opened AS (
            INSERT INTO saltern.sessions
                (account_id, token_hash, session_id, device_name, created_at, last_used_at, expires_at, restricted)
            SELECT r.account_id, $2, $3, $4, $5, $5, $6, true FROM recovery r
        ), used AS (
            UPDATE saltern.recoveries u SET last_used_at = $5 FROM recovery r WHERE u.account_id = $1
        ), told AS (
            INSERT INTO saltern.security_events (account_id, occurred_at, event_id, kind, session_id, device_name)
            SELECT r.account_id, $5, $9, '\(SecurityEvent.Kind.recoveryUsed.rawValue)', $3, $4 FROM recovery r
        )
        SELECT r.keyring FROM recovery r
        """

    func bind(to parameters: inout Parameters) {
        parameters.append(accountID)
        parameters.append(tokenHash)
        parameters.append(sessionID)
        parameters.append(deviceName?.string)
        parameters.append(now)
        parameters.append(expiresAt)
        parameters.append(isPermitted)
        parameters.append(verifier)
        parameters.append(eventID)
    }

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row { Row(keyring: try row.next()) }
}
