internal import Postgres

/// Deletes an account: all its rows in all tables. A row in the audit log remains.
///
/// One transaction of statements that each remove a limited slice.
struct AccountDeletion: Sendable {
    let accountID: AccountID
    private let signature: AuditSignature
    /// Further text for the audit log. It must contain nothing that is deleted with the account.
    private let detail: String?

    init(accountID: AccountID, by signature: AuditSignature, detail: String? = nil) {
        self.accountID = accountID
        self.signature = signature
        self.detail = detail
    }

    /// Deletes the account. After an error the transaction must be rolled back.
    ///
    /// - Returns: False if there is no such account.
    /// - Throws: ``AuditLogUnusable``, or a `PostgresError`.
    func run(_ transaction: Transaction) async throws -> Bool {
        guard try await remove(transaction) else { return false }
        try await record(transaction)
        return true
    }

    /// Removes all rows without recording it. Returns false if there is no such account.
    ///
    /// The account's row is locked first: log-ins and writes wait, and then find no account. Slow removals precede the
    /// rows that strangers request (``LockOrder``).
    func remove(_ transaction: Transaction) async throws -> Bool {
        guard try await transaction.execute(LockAccountWholly(accountID: accountID)).first != nil,
            let userid = try await transaction.execute(Owned(accountID: accountID, read: FindUserid())).first
        else { return false }
        let subject = try await subject(userid, transaction)
        try await removeItems(transaction)
        _ = try await transaction.execute(RemoveSessionsAltogether(accountID: accountID))
        try await removeEvents(transaction)
        // Their locks keep other members waiting until the commit.
        let invitations = try await removeVaults(transaction)
        _ = try await transaction.execute(
            RemoveAccountContents(accountID: accountID), ForgetFailedAttempts(subject: subject),
            RemoveLogin(userid: userid, accountID: accountID))
        try await removeShares(transaction)
        for removal in invitations { transaction.enqueue(removal) }
        let event = ReportedEvent(accountID: accountID, kind: .accountDeleted, now: signature.now)
        _ = try await transaction.execute(
            QueueAccountEvent(event: event), StoreAccountEvent(event: event), EndQueues(accountID: accountID),
            RemoveIdleQueues(accountID: accountID), RemoveAccount(accountID: accountID))
        return true
    }

    /// Records the deletion in the audit log, as the transaction's last step.
    func record(_ transaction: Transaction) async throws {
        try await transaction.record(AppendAudit(signature, .accountDeleted, accountID, detail: detail))
    }

    /// Deletes the vaults that the account owns, and leaves the others without its account. A request of the account
    /// has deleted its own vaults before.
    ///
    /// - Returns: The removals of the invitations to deleted vaults.
    private func removeVaults(_ transaction: Transaction) async throws -> [RemoveInvitations] {
        var invitations: [RemoveInvitations] = []
        for membership in try await transaction.execute(Owned(accountID: accountID, read: FindMemberships())) {
            let vaultID = membership.vaultID
            guard try await transaction.execute(LockVaultForJoin(vaultID: vaultID)).first != nil else { continue }
            if try await transaction.execute(IsOwner(vaultID: vaultID, accountID: accountID)).isEmpty {
                transaction.enqueue(ForgetHolder(vaultID: vaultID, accountID: accountID))
            } else {
                invitations.append(try await VaultDeletion(vaultID: vaultID).run(transaction))
            }
        }
        return invitations
    }

    private func removeItems(_ transaction: Transaction) async throws(PostgresError) {
        try await ItemTransaction(transaction, of: accountID).removeItems()
        var staged: RemoveSomeStagedItems.Key? = RemoveSomeStagedItems.Key(
            rotationID: UUID.zero, itemID: ItemPage.lowest)
        while let from = staged {
            staged = try await transaction.execute(RemoveSomeStagedItems(accountID: accountID, from: from)).first
        }
    }

    private func removeEvents(_ transaction: Transaction) async throws(PostgresError) {
        var event: RemoveSomeSecurityEvents.Key? = RemoveSomeSecurityEvents.Key(
            occurredAt: .distantPast, eventID: SecurityEventID(UUID.zero))
        while let from = event {
            event = try await transaction.execute(RemoveSomeSecurityEvents(accountID: accountID, from: from)).first
        }
    }

    /// Returns the userid's hash, by which its failures are stored.
    private func subject(_ userid: Userid, _ transaction: Transaction) async throws -> AttemptSubject {
        guard let installation = try await transaction.execute(ReadInstallation()).first else {
            throw InstallationError.missing
        }
        return AttemptSubjects(secret: installation.decoySecret).userid(userid)
    }

    private func removeShares(_ transaction: Transaction) async throws(PostgresError) {
        while true {
            let shares = try await transaction.execute(FindSomeAccountShares(accountID: accountID))
            if shares.isEmpty { return }
            _ = try await transaction.execute(
                RemoveShares(shareIDs: shares, accountID: accountID),
                RemoveAccountShares(accountID: accountID, ids: shares))
        }
    }
}

extension ItemTransaction {
    /// Removes all items of the owner, with their kept contents and versions, in slices.
    func removeItems() async throws(PostgresError) {
        var item: ItemID? = ItemPage.lowest
        while let from = item {
            item = try await execute(RemoveSomeItems(owner: owner, from: from)).first
        }
        var content: ItemID? = ItemPage.lowest
        while let from = content {
            content = try await execute(RemoveSomeDeletedContents(owner: owner, from: from)).first
        }
        var version: VersionKey? = VersionKey(item: ItemPage.lowest, revision: 0)
        while let from = version {
            version = try await execute(
                RemoveSomeReplacedContents(owner: owner, from: from)
            ).first
        }
    }
}

/// Limits of one statement of a deletion, so that each is short even for a large account.
enum DeletionSlice {
    static let rows: Int64 = 1_000
    /// Maximum of sealed bytes. A single row may have more.
    static let bytes: Int64 = 64 * 1_048_576

    /// Removes a slice of an account's rows with sealed bytes, in key order from a key on. Returns the key of the last
    /// removed row, or no row if none is left.
    ///
    /// The next slice begins at that removed key, so the transaction does not scan its own removed rows again.
    static func removing<Root>(
        from table: SQLFragment, of account: SQL<Root>, key: [SQLFragment], at bounds: SQL<Root>
    ) -> SQL<Root> {
        let columns = key.joined(separator: ", ")
        let stored = key.map { "stored.\($0)" as SQLFragment }.joined(separator: ", ")
        let removed = key.map { "d.\($0)" as SQLFragment }.joined(separator: ", ")
        let descending = key.map { "\($0) DESC" as SQLFragment }.joined(separator: ", ")
        return """
            WITH slice AS (
                SELECT counted.* FROM (
                    SELECT \(columns), row_number() OVER by_key AS position,
                        sum(\(SealedSize.bytes(of: "next"))) OVER by_key AS bytes
                    FROM (
                        SELECT \(stored), stored.title, stored.body FROM saltern.\(table) stored
                        WHERE stored.account_id = \(account) AND (\(stored)) >= (\(bounds))
                        ORDER BY \(stored) LIMIT \(rows)
                    ) next
                    WINDOW by_key AS (ORDER BY \(columns) ROWS UNBOUNDED PRECEDING)
                ) counted
                WHERE counted.bytes <= \(bytes) OR counted.position = 1
            ), gone AS (
                DELETE FROM saltern.\(table) d
                WHERE d.account_id = \(account) AND (\(removed)) >= (\(bounds))
                    AND (\(removed)) <= (SELECT \(columns) FROM slice ORDER BY \(descending) LIMIT 1)
                RETURNING \(removed)
            )
            SELECT \(columns) FROM gone ORDER BY \(descending) LIMIT 1
            """
    }
}

struct RemoveSomeItems: ItemStep {
    typealias Row = ItemID

    let owner: OwnerID
    let from: ItemID

    static let sql: SQL<Self> = DeletionSlice.removing(
        from: "items", of: "\(\.owner)", key: ["item_id"], at: "\(\.from)")
}

/// Removes a slice of an account's kept contents of deleted items.
struct RemoveSomeDeletedContents: ItemStep {
    typealias Row = ItemID

    let owner: OwnerID
    let from: ItemID

    static let sql: SQL<Self> = DeletionSlice.removing(
        from: "deleted_contents", of: "\(\.owner)", key: ["item_id"], at: "\(\.from)")
}

/// Removes a slice of the older versions of an account's items.
struct RemoveSomeReplacedContents: ItemStep {
    let owner: OwnerID
    let from: VersionKey

    static let sql: SQL<Self> = DeletionSlice.removing(
        from: "replaced_contents", of: "\(\.owner)", key: ["item_id", "revision"],
        at: "\(\.from.item), \(\.from.revision)")

    static func decode(_ row: inout RowReader) throws(PostgresError) -> VersionKey { try row.read(VersionKey.init) }
}

/// Removes a slice of the items that an account has staged for rotations.
struct RemoveSomeStagedItems: Statement {
    let accountID: AccountID
    let from: Key

    struct Key: Sendable {
        let rotationID: UUID
        let itemID: ItemID
    }

    static let sql: SQL<Self> = DeletionSlice.removing(
        from: "rotation_items", of: "\(\.accountID)", key: ["rotation_id", "item_id"],
        at: "\(\.from.rotationID), \(\.from.itemID)")

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Key { try row.read(Key.init) }
}

/// Removes a slice of an account's security events.
struct RemoveSomeSecurityEvents: Statement {
    let accountID: AccountID
    let from: Key

    struct Key: Sendable {
        let occurredAt: Timestamp
        let eventID: SecurityEventID
    }

    static let sql: SQL<Self> = """
        WITH slice AS (
            SELECT e.occurred_at, e.event_id FROM saltern.security_events e
            WHERE e.account_id = \(\.accountID) AND (e.occurred_at, e.event_id) >= (\(\.from.occurredAt),
                \(\.from.eventID))
            ORDER BY e.occurred_at, e.event_id LIMIT \(DeletionSlice.rows)
        ), gone AS (
            DELETE FROM saltern.security_events d
            WHERE d.account_id = \(\.accountID) AND (d.occurred_at, d.event_id) >= (\(\.from.occurredAt),
                \(\.from.eventID)) AND (d.occurred_at, d.event_id) <= (
                SELECT s.occurred_at, s.event_id FROM slice s ORDER BY s.occurred_at DESC, s.event_id DESC LIMIT 1)
            RETURNING d.occurred_at, d.event_id
        )
        SELECT occurred_at, event_id FROM gone ORDER BY occurred_at DESC, event_id DESC LIMIT 1
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Key { try row.read(Key.init) }
}

/// Finds up to 100 shares on an account's list.
struct FindSomeAccountShares: Statement {
    typealias Row = ShareID

    let accountID: AccountID

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT s.share_id FROM saltern.account_shares s WHERE s.account_id = \(\.accountID)
            ORDER BY s.share_id LIMIT 100
        """
}

/// Removes shares of an account.
struct RemoveShares: Statement {
    let shareIDs: [ShareID]
    let accountID: AccountID

    static let sql: SQL<Self> =
        "DELETE FROM saltern.shares WHERE share_id = ANY(\(\.shareIDs)) AND owner_account = \(\.accountID)"
}

/// Removes the failures of a userid.
struct ForgetFailedAttempts: Statement {
    let subject: AttemptSubject

    static let sql: SQL<Self> = "DELETE FROM saltern.failed_attempts f WHERE f.subject = \(\.subject)"
}

/// Removes an account's sessions without events in its security log.
struct RemoveSessionsAltogether: Statement {
    let accountID: AccountID

    static let sql: SQL<Self> = "DELETE FROM saltern.sessions s WHERE s.account_id = \(\.accountID)"
}

/// Removes the account's rows of tables with few rows for each account, and its rotations.
struct RemoveAccountContents: Statement {
    let accountID: AccountID

    private static let tables: [SQLFragment] = [
        "recoveries", "kept_keyrings", "second_factors", "second_factor_codes", "passkeys", "used_challenges",
        "receipts", "memberships",
    ]

    static let sql: SQL<Self> = """
        WITH \(tables.map(removal).joined(separator: ", "))
        DELETE FROM saltern.rotations r WHERE r.account_id = \(\.accountID)
        """

    private static func removal(of table: SQLFragment) -> SQL<Self> {
        "\(table) AS (DELETE FROM saltern.\(table) d WHERE d.account_id = \(\.accountID))"
    }
}

/// Removes the account's row.
struct RemoveAccount: Statement {
    let accountID: AccountID

    static let sql: SQL<Self> = "DELETE FROM saltern.accounts a WHERE a.account_id = \(\.accountID)"
}

/// The statements of the deletion of accounts.
extension StatementList {
    static var deletion: [any Statement.Type] {
        [
            RemoveSomeItems.self, RemoveSomeDeletedContents.self, RemoveSomeReplacedContents.self,
            RemoveSomeStagedItems.self, RemoveSomeSecurityEvents.self, FindSomeAccountShares.self, RemoveShares.self,
            RemoveAccountContents.self, RemoveAccount.self, RemoveSessionsAltogether.self, ForgetFailedAttempts.self,
        ]
    }
}
