internal import Postgres

/// An event in an account's security log, for its owner.
enum SecurityEvent {
    /// The kind of event. Clients receive the raw value.
    enum Kind: String, Sendable, CaseIterable {
        /// A session was ended, by its owner, by another device or by the plan's limit.
        case sessionEnded = "session_ended"
        /// Several sessions were ended at once.
        case sessionsEnded = "sessions_ended"
        case credentialChanged = "credential_changed"
        case useridChanged = "userid_changed"
        case rotationCommitted = "rotation_committed"
        /// The keyring or the recovery keyring was replaced, with the credential unchanged.
        case keyringChanged = "keyring_changed"
        /// An admin replaced the present keyring by a kept one.
        case keyringRestored = "keyring_restored"
        case recoverySet = "recovery_set"
        case recoveryRemoved = "recovery_removed"
        case recoveryUsed = "recovery_used"
        case totpEnabled = "totp_enabled"
        case totpDisabled = "totp_disabled"
        /// One of the second factor's recovery codes was used up.
        case totpCodeUsed = "totp_code_used"
        case totpCodesRenewed = "totp_codes_renewed"
        case passkeyAdded = "passkey_added"
        case passkeyRemoved = "passkey_removed"
        /// A passkey received a new unlock box.
        case passkeyUnlockSet = "passkey_unlock_set"
        /// A passkey lost its unlock box.
        case passkeyUnlockRemoved = "passkey_unlock_removed"
        /// Log-ins with a correct password key and a wrong code, counted.
        case secondFactorFailed = "second_factor_failed"
        /// Log-ins with a wrong key, counted.
        case failedLogins = "failed_logins"
        /// Recoveries with a wrong key, counted.
        case failedRecoveries = "failed_recoveries"
        /// Requests within a session that carried a wrong present key, counted.
        case failedCurrentKeys = "failed_current_keys"
        /// Wrong codes for an unconfirmed second factor, counted.
        case failedConfirmations = "failed_confirmations"
        case exported
        case locked
        case unlocked
        case planChanged = "plan_changed"
        case receiptChanged = "receipt_changed"
        case vaultFounded = "vault_founded"
        case vaultJoined = "vault_joined"
        /// Another account has handed a vault over to this one.
        case vaultTakenOver = "vault_taken_over"
        case vaultDeleted = "vault_deleted"
    }
}

typealias SecurityEventID = Identifier<SecurityEvent>

/// Writes one event. ``DropOldEvents`` follows.
///
/// It is part of the transaction that it reports, so both happen or neither. The account's row is locked, at least by
/// ``KeepAccount``: no event outlives its account.
///
/// `MERGE`, because an INSERT that selects from another table is planned for every shard of a cluster.
struct RecordSecurityEvent: Statement {
    let accountID: AccountID
    let kind: SecurityEvent.Kind
    let now: Timestamp
    var id = SecurityEventID.random()
    /// The session that caused the event or is its object.
    var sessionID: SessionID?
    var deviceName: DeviceName?
    /// The number of occurrences, for counted kinds.
    var count: Int64?
    /// The time of the first counted occurrence.
    var since: Timestamp?
    /// The number that the preceding statement stores in the account's row if the event is due. Nil for an
    /// unconditional event.
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

/// Drops the oldest events of a kind beyond ``SecurityEventLimit``, if the preceding event is one that triggers it.
struct DropOldEvents: Statement {
    let accountID: AccountID
    let kind: SecurityEvent.Kind
    let isDue: Bool

    /// Creates the statement that follows an event.
    init(after event: RecordSecurityEvent) {
        (accountID, kind) = (event.accountID, event.kind)
        isDue = SecurityEventLimit.isDue(after: event.id)
    }

    static let sql: SQL<Self> = """
        \(SecurityEventLimit.dropping("\(\.kind.rawValue)", of: "\(\.accountID)", when: "\(\.isDue)"))
        """
}

extension Transaction {
    /// Writes an event into the account's security log.
    func note(_ event: RecordSecurityEvent) async throws(PostgresError) {
        _ = try await execute(event, DropOldEvents(after: event))
    }
}

/// Limits the entries of each kind in an account's security log; at least the latest hundred stay. A flood of one kind,
/// which a stolen token can cause, removes no entry of another kind.
enum SecurityEventLimit {
    static let perKind = 100
    /// One in this many events, on average, removes those beyond the limit. The removal reads a hundred entries,
    /// several times the cost of an event.
    static let interval: UInt64 = 16
    /// Maximum of entries in one removal, above the number of new entries between two removals.
    private static let slice = 1_000

    /// Returns true if an event removes those beyond the limit. The server draws its random identifier, so clients
    /// cannot choose these events.
    static func isDue(after event: SecurityEventID) -> Bool { event.uuid.low.isMultiple(of: interval) }

    /// Draws the decision for an event whose identifier does not exist yet.
    static func isDue() -> Bool { isDue(after: .random()) }

    /// Removes the oldest events of a kind beyond the limit, as a statement or a part of a `WITH`. It skips events that
    /// another transaction is removing, so two removals never wait for each other.
    ///
    /// - Parameter condition: A condition without columns. If it is false, nothing is read.
    static func dropping<Root, Context>(
        _ kind: SQLTemplate<Root, Context>, of account: SQLTemplate<Root, Context>,
        when condition: SQLTemplate<Root, Context>
    ) -> SQLTemplate<Root, Context> {
        """
        DELETE FROM saltern.security_events f
        WHERE \(condition) AND f.account_id = \(account) AND f.kind = \(kind) AND f.kind > '' AND f.event_id = ANY (ARRAY(
            SELECT o.event_id FROM saltern.security_events o
            WHERE \(condition) AND o.account_id = \(account) AND o.kind = \(kind) AND o.kind > ''
                AND (o.occurred_at, o.event_id) <= (
                SELECT k.occurred_at, k.event_id FROM saltern.security_events k
                WHERE k.account_id = \(account) AND k.kind = \(kind) AND k.kind > ''
                ORDER BY k.occurred_at DESC, k.event_id DESC OFFSET \(perKind) LIMIT 1)
            ORDER BY o.occurred_at, o.event_id LIMIT \(slice)
            FOR UPDATE SKIP LOCKED))
        """
    }
}

/// Finds the oldest events older than `before` in all accounts, by the index `security_events_by_age`.
struct FindOldEvents: Statement {
    typealias Row = DueRow<SecurityEventID>

    let before: Timestamp
    /// Accounts to leave out.
    let except: [AccountID]
    let limit: Int64

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT e.account_id, e.event_id FROM saltern.security_events e
        WHERE e.occurred_at <= \(\.before) AND e.occurred_at > '-infinity' AND e.account_id <> ALL(\(\.except)::uuid[])
        ORDER BY e.occurred_at LIMIT \(\.limit)
        """
}

/// Removes old events of an account and returns their number.
struct RemoveEvents: Statement {
    typealias Row = Int64

    let accountID: AccountID
    let before: Timestamp
    let ids: [SecurityEventID]

    static let sql: SQL<Self> = """
        WITH gone AS (
            DELETE FROM saltern.security_events e
            WHERE e.account_id = \(\.accountID) AND e.occurred_at <= \(\.before) AND e.event_id = ANY(\(\.ids)::uuid[])
            RETURNING e.event_id
        )
        SELECT count(*) FROM gone
        """
}

/// The statements of the security log.
extension StatementList {
    static var securityEvents: [any Statement.Type] {
        [
            RecordSecurityEvent.self, DropOldEvents.self, Owned<FindSecurityLog>.self, FindOldEvents.self,
            RemoveEvents.self,
        ]
    }
}
