internal import Postgres

/// Something that happened to an account and that its owner may want to know.
enum SecurityEvent {
    /// What happened. The raw value is what clients see.
    enum Kind: String, Sendable, CaseIterable {
        /// A session was ended, by its owner, by another device or by the plan's limit.
        case sessionEnded = "session_ended"
        /// Several sessions were ended at once.
        case sessionsEnded = "sessions_ended"
        case credentialChanged = "credential_changed"
        case useridChanged = "userid_changed"
        case rotationCommitted = "rotation_committed"
        case recoverySet = "recovery_set"
        case recoveryRemoved = "recovery_removed"
        case recoveryUsed = "recovery_used"
        case totpEnabled = "totp_enabled"
        case totpDisabled = "totp_disabled"
        /// One of the second factor's recovery codes was used up.
        case totpCodeUsed = "totp_code_used"
        case totpCodesRenewed = "totp_codes_renewed"
        /// Log-ins with the right password key and a wrong code, counted.
        case secondFactorFailed = "second_factor_failed"
        /// Log-ins with a wrong key, counted.
        case failedLogins = "failed_logins"
        /// Recoveries with a wrong key, counted.
        case failedRecoveries = "failed_recoveries"
        /// Dangerous calls within a session that carried a wrong present key, counted.
        case failedCurrentKeys = "failed_current_keys"
        /// Wrong codes for a second factor that waited to be confirmed, counted.
        case failedConfirmations = "failed_confirmations"
        case exported
        case locked
        case unlocked
        case planChanged = "plan_changed"
        case receiptChanged = "receipt_changed"
    }
}

/// Names an event.
typealias SecurityEventID = Identifier<SecurityEvent>

/// Writes one event, and drops the oldest of its kind beyond ``SecurityEventLimit``. Sent in the transaction of what it
/// tells of, so that both happen or neither.
///
/// It waits for whoever is deleting the account, and then writes nothing: an event outlives no account.
struct RecordSecurityEvent: Statement {
    /// How many were written: none when there is no such account.
    typealias Row = Int64

    let accountID: AccountID
    let kind: SecurityEvent.Kind
    let now: Timestamp
    let id = SecurityEventID.random()
    /// The session that did it, or that it was done to.
    var sessionID: SessionID?
    var deviceName: DeviceName?
    /// How many there were, for what is counted.
    var count: Int64?
    /// Since when they are counted.
    var since: Timestamp?

    static let sql: SQL<Self> = """
        WITH account AS (
            SELECT a.account_id FROM saltern.accounts a WHERE a.account_id = \(\.accountID) FOR KEY SHARE OF a
        ), noted AS (
            INSERT INTO saltern.security_events
                (account_id, occurred_at, event_id, kind, session_id, device_name, count, since)
            SELECT a.account_id, \(\.now), \(\.id), \(\.kind.rawValue), \(\.sessionID), \(\.deviceName?.string),
                \(\.count), \(\.since) FROM account a
            RETURNING account_id
        ), \(SecurityEventLimit.flushing("\(\.kind.rawValue)", of: "\(\.accountID)", after: "noted"))
        SELECT count(*) FROM noted
        """
}
