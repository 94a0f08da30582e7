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
        /// The right password key with a wrong code.
        case secondFactorFailed = "second_factor_failed"
        /// Log-ins with a wrong key, counted.
        case failedLogins = "failed_logins"
        case exported
        case locked
        case unlocked
        case planChanged = "plan_changed"
        case receiptChanged = "receipt_changed"
    }
}

/// Names an event.
typealias SecurityEventID = Identifier<SecurityEvent>

/// Writes one event. Sent in the transaction of what it tells of, so that both happen or neither.
///
/// It waits for whoever is deleting the account, and then writes nothing: an event outlives no account.
struct RecordSecurityEvent: Statement {
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

    static let sql = """
        INSERT INTO saltern.security_events
            (account_id, occurred_at, event_id, kind, session_id, device_name, count, since)
        SELECT a.account_id, $2, $3, $4, $5, $6, $7, $8 FROM saltern.accounts a
        WHERE a.account_id = $1
        FOR KEY SHARE OF a
        """

    func bind(to parameters: inout Parameters) {
        parameters.append(accountID)
        parameters.append(now)
        parameters.append(id)
        parameters.append(kind.rawValue)
        parameters.append(sessionID)
        parameters.append(deviceName?.string)
        parameters.append(count)
        parameters.append(since)
    }
}
