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
        /// The account's keyring was replaced, or the one that the recovery code opens, and the credential stays.
        case keyringChanged = "keyring_changed"
        /// An admin has put a kept keyring in the place of the present one.
        case keyringRestored = "keyring_restored"
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

/// Writes one event. ``DropOldEvents`` follows. Sent in the transaction of what it tells of, so that both happen or
/// neither, and with the account's row locked, at least by ``KeepAccount``: an event outlives no account.
///
/// `MERGE`, because an INSERT that selects from another table is planned for every shard of a cluster.
struct RecordSecurityEvent: Statement {
    let accountID: AccountID
    let kind: SecurityEvent.Kind
    let now: Timestamp
    var id = SecurityEventID.random()
    /// The session that did it, or that it was done to.
    var sessionID: SessionID?
    var deviceName: DeviceName?
    /// How many there were, for what is counted.
    var count: Int64?
    /// Since when they are counted.
    var since: Timestamp?
    /// The number that the statement before has noted in the account's row if there is something to tell of; nil when there
    /// is in any case.
    var writer: Int64?

    static let sql: SQL<Self> = """
        MERGE INTO saltern.security_events n USING (
            SELECT a.account_id FROM saltern.accounts a
            WHERE a.account_id = \(\.accountID) AND (\(\.writer)::bigint IS NULL OR a.writer = \(\.writer))
        ) o ON n.account_id = o.account_id AND n.occurred_at = \(\.now) AND n.event_id = \(\.id)
        WHEN NOT MATCHED THEN INSERT
            (account_id, occurred_at, event_id, kind, session_id, device_name, count, since)
            VALUES (o.account_id, \(\.now), \(\.id), \(\.kind.rawValue), \(\.sessionID), \(\.deviceName?.string),
                \(\.count), \(\.since))
        """
}

/// Drops the oldest events of a kind beyond ``SecurityEventLimit``, when the event before is one that does so.
struct DropOldEvents: Statement {
    let accountID: AccountID
    let kind: SecurityEvent.Kind
    let isDue: Bool

    /// What follows an event.
    init(after event: RecordSecurityEvent) {
        (accountID, kind) = (event.accountID, event.kind)
        isDue = SecurityEventLimit.isDue(after: event.id)
    }

    static let sql: SQL<Self> = """
        \(SecurityEventLimit.dropping("\(\.kind.rawValue)", of: "\(\.accountID)", when: "\(\.isDue)"))
        """
}

extension Transaction {
    /// Notes an event in the account's security log.
    func note(_ event: RecordSecurityEvent) async throws(PostgresError) {
        _ = try await execute(event, DropOldEvents(after: event))
    }
}
