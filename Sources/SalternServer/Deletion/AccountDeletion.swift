internal import Postgres

/// The deletion of an account: every row of every table that is the account's, and a row in the audit log, which is all
/// that remains.
///
/// One transaction, in statements that each remove so much that none takes long.
struct AccountDeletion: Sendable {
    let accountID: AccountID
    /// Who deletes it.
    let actor: AuditActor
    let now: Timestamp
    /// Why, for the audit log. Nothing that ought to go with the account.
    var reason: String?

    /// Deletes the account. After an error the transaction has to be rolled back.
    ///
    /// The account's row is locked first: log-ins and writes that come meanwhile wait, and then find no account.
    /// - Returns: Whether there was such an account.
    /// - Throws: ``AuditLogUnusable``, or a `PostgresError`.
    func run(_ transaction: Transaction) async throws -> Bool {
        guard try await transaction.execute(LockAccountWholly(accountID: accountID)).first != nil,
            let userid = try await transaction.execute(Owned(accountID: accountID, read: FindUserid())).first
        else { return false }
        try await removeItems(transaction)
        try await removeShares(transaction)
        try await removeFailures(userid, transaction)
        // Before the events: who trims sessions has not locked the account, and notes what it ends.
        _ = try await transaction.execute(RemoveSessionsAltogether(accountID: accountID))
        try await removeEvents(transaction)
        _ = try await transaction.execute(
            RemoveLogin(userid: userid, accountID: accountID), RemoveAccount(accountID: accountID))
        try await transaction.record(
            AppendAudit(
                actor: actor, action: .accountDeleted, targetAccount: accountID, detail: reason, now: now))
        return true
    }

    private func removeItems(_ transaction: Transaction) async throws(PostgresError) {
        var item: ItemID? = ItemPage.lowest
        while let from = item {
            item = try await transaction.execute(RemoveSomeItems(accountID: accountID, from: from)).first
        }
        var content: ItemID? = ItemPage.lowest
        while let from = content {
            content = try await transaction.execute(RemoveSomeDeletedContents(accountID: accountID, from: from)).first
        }
        var staged: RemoveSomeStagedItems.Key? = RemoveSomeStagedItems.Key(
            rotationID: ItemPage.lowest.uuid, itemID: ItemPage.lowest)
        while let from = staged {
            staged = try await transaction.execute(RemoveSomeStagedItems(accountID: accountID, from: from)).first
        }
    }

    private func removeEvents(_ transaction: Transaction) async throws(PostgresError) {
        var event: RemoveSomeSecurityEvents.Key? = RemoveSomeSecurityEvents.Key(
            occurredAt: .distantPast, eventID: SecurityEventID(ItemPage.lowest.uuid))
        while let from = event {
            event = try await transaction.execute(RemoveSomeSecurityEvents(accountID: accountID, from: from)).first
        }
    }

    /// Failures are found by hashes of what failed: the userid, and the sessions.
    private func removeFailures(_ userid: Userid, _ transaction: Transaction) async throws {
        let (installations, sessions) = try await transaction.execute(
            ReadInstallation(), FindTokenHashes(accountID: accountID))
        guard let installation = installations.first else { throw InstallationError.missing }
        let subjects = AttemptSubjects(secret: installation.decoySecret)
        _ = try await transaction.execute(
            ForgetFailedAttempts(
                subjects: [subjects.userid(userid), subjects.recovery(userid)]
                    + sessions.map { subjects.session(of: accountID, $0) }))
    }

    private func removeShares(_ transaction: Transaction) async throws(PostgresError) {
        while true {
            let shares = try await transaction.execute(RemoveSomeAccountShares(accountID: accountID))
            if shares.isEmpty { return }
            _ = try await transaction.execute(RemoveShares(shareIDs: shares, accountID: accountID))
        }
    }
}
