public import Postgres

/// Changes accounts for an operator. Each act is one transaction with its row in the audit log and, if it concerns the
/// account's owner, a security event.
public struct AccountAdministration: Sendable {
    let database: PostgresClient

    /// - Parameter database: Connects as the schema's owner.
    public init(database: PostgresClient) {
        self.database = database
    }

    /// The result of an act.
    public struct Outcome: Sendable, Equatable {
        public let accountID: AccountID
        /// False if the account was already in the requested state; then no row is written.
        public let isChanged: Bool
        public var sessionsEnded = 0
    }

    /// Locks an account: ends its sessions, suspends its links, and rejects log-ins until it is unlocked.
    ///
    /// It also ends sessions of an account that is locked already, because the column may have been set by hand. Ended
    /// sessions make it a lock like any other.
    ///
    /// - Throws: ``AccountRefusal`` or a `PostgresError`, as all other acts.
    public func lock(_ reference: AccountReference, by signature: AuditSignature) async throws -> Outcome {
        try await act(on: reference) { transaction, account in
            let removal = RemoveAllSessions(accountID: account, exception: nil, now: signature.now)
            let ends = QueueEnds(removal: removal)
            let (locked, _, _, _, ended) = try await transaction.execute(
                SetLock(accountID: account, lockedAt: signature.now), RecordSessionEnds(removal: removal), ends,
                StoreEnds(queue: ends), removal)
            guard !(locked.isEmpty && ended.isEmpty) else { return Outcome(accountID: account, isChanged: false) }
            try await transaction.note(
                RecordSecurityEvent(accountID: account, kind: .locked, now: signature.now))
            try await AccountShares.suspend(true, of: account, in: transaction)
            try await transaction.write(ReportedEvent(accountID: account, kind: .accountLocked, now: signature.now))
            try await transaction.record(AppendAudit(signature, .accountLocked, account))
            return Outcome(accountID: account, isChanged: true, sessionsEnded: ended.count)
        }
    }

    /// Unlocks an account, which can then log in again.
    public func unlock(_ reference: AccountReference, by signature: AuditSignature) async throws -> Outcome {
        try await act(on: reference) { transaction, account in
            guard try await transaction.execute(SetLock(accountID: account, lockedAt: nil)).first != nil
            else { return Outcome(accountID: account, isChanged: false) }
            try await transaction.note(
                RecordSecurityEvent(accountID: account, kind: .unlocked, now: signature.now))
            try await AccountShares.suspend(false, of: account, in: transaction)
            try await transaction.write(ReportedEvent(accountID: account, kind: .accountUnlocked, now: signature.now))
            try await transaction.record(AppendAudit(signature, .accountUnlocked, account))
            return Outcome(accountID: account, isChanged: true)
        }
    }

    /// Ends all sessions of an account.
    public func endSessions(_ reference: AccountReference, by signature: AuditSignature) async throws -> Outcome {
        try await act(on: reference) { transaction, account in
            let removal = RemoveAllSessions(accountID: account, exception: nil, now: signature.now)
            let ended = try await transaction.endSessions(removal)
            guard ended > 0 else { return Outcome(accountID: account, isChanged: false) }
            try await transaction.note(
                RecordSecurityEvent(
                    accountID: account, kind: .sessionsEnded, now: signature.now, count: Int64(ended)))
            try await transaction.record(
                AppendAudit(signature, .sessionsEnded, account, detail: "\(ended) sessions"))
            return Outcome(accountID: account, isChanged: true, sessionsEnded: ended)
        }
    }

    /// Assigns another plan to an account.
    public func assign(
        _ plan: String, to reference: AccountReference, by signature: AuditSignature
    ) async throws -> Outcome {
        try await reference.act(in: database, plan: plan) { transaction, account in
            let former = try await transaction.execute(FindPlanOfAccount(accountID: account)).first
            guard try await transaction.execute(AssignPlan(accountID: account, plan: plan)).first != nil else {
                throw AccountRefusal.noSuchPlan
            }
            for vault in try await transaction.execute(Owned(accountID: account, read: FindMemberships())) {
                transaction.enqueue(MoveVaultPlan(vaultID: vault.vaultID, ownerAccount: account, plan: plan))
            }
            guard let former, former != plan else { return Outcome(accountID: account, isChanged: false) }
            try await transaction.note(
                RecordSecurityEvent(accountID: account, kind: .planChanged, now: signature.now))
            try await transaction.write(ReportedEvent(accountID: account, kind: .planChanged, now: signature.now))
            try await transaction.record(
                AppendAudit(signature, .planAssigned, account, detail: "plan \(plan), was \(former)"))
            return Outcome(accountID: account, isChanged: true)
        }
    }

    /// Deletes an account and all its data. A row in the audit log remains.
    public func delete(_ reference: AccountReference, by signature: AuditSignature) async throws -> Outcome {
        try await act(on: reference, use: .long(by: nil)) { transaction, account in
            let deletion = AccountDeletion(accountID: account, by: signature)
            guard try await deletion.run(transaction) else { throw reference.unknown }
            return Outcome(accountID: account, isChanged: true)
        }
    }

    private func act(
        on reference: AccountReference, use: LeaseUse = .short,
        _ body: (Transaction, AccountID) async throws -> Outcome
    ) async throws -> Outcome {
        try await reference.act(in: database, use: use, body)
    }
}

/// Locks an account, or unlocks it if `lockedAt` is nil. Returns no row if it is already so.
struct SetLock: Statement {
    typealias Row = AccountID

    let accountID: AccountID
    let lockedAt: Timestamp?

    static let sql: SQL<Self> = """
        UPDATE saltern.accounts a SET locked_at = \(\.lockedAt)
        WHERE a.account_id = \(\.accountID) AND (a.locked_at IS NULL) <> (\(\.lockedAt)::timestamptz IS NULL)
        RETURNING a.account_id
        """
}

/// Finds the name of an account's plan.
struct FindPlanOfAccount: Statement {
    typealias Row = String

    let accountID: AccountID

    static let isReadOnly = true
    static let sql: SQL<Self> = "SELECT a.plan FROM saltern.accounts a WHERE a.account_id = \(\.accountID)"
}

/// Assigns a plan to an account. Returns no row if either does not exist.
struct AssignPlan: Statement {
    typealias Row = AccountID

    let accountID: AccountID
    let plan: String

    static let sql: SQL<Self> = """
        UPDATE saltern.accounts a SET plan = p.plan FROM saltern.plans p
        WHERE a.account_id = \(\.accountID) AND p.plan = \(\.plan)
        RETURNING a.account_id
        """
}

/// The statements of the administration of accounts.
extension StatementList {
    static var accountAdministration: [any Statement.Type] {
        [
            SetLock.self, FindPlanOfAccount.self, DescribeAccount.self, FindLogins.self, SummarizeAccounts.self,
            FindLockedAccounts.self, FindIterationsOfUserid.self, FindNeverUsedAccounts.self, ConfirmNeverUsed.self,
        ]
    }
}
