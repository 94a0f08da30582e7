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
