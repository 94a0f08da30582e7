internal import Postgres

/// An operator's reference to an account.
public enum AccountReference: Sendable, Equatable {
    case userid(String)
    case id(AccountID)
}

/// Reasons to reject an act on an account.
public enum AccountRefusal: Error, Equatable, CustomStringConvertible {
    /// The userid is not registered. `canonical` is its canonical form, if that differs.
    case noSuchUserid(canonical: String?)
    case noSuchAccount
    case noSuchPlan

    public var description: String {
        switch self {
        case .noSuchUserid(nil): "no account has this userid"
        case .noSuchUserid(let canonical?): "no account has this userid; its canonical form is \(canonical)"
        case .noSuchAccount: "there is no such account"
        case .noSuchPlan: "there is no such plan; see saltern plan list"
        }
    }
}

extension AccountReference {
    /// Returns the account's id. The account of a reference by id need not exist.
    ///
    /// - Throws: ``AccountRefusal/noSuchUserid(canonical:)`` or a `PostgresError`.
    func accountID(in database: PostgresClient) async throws -> AccountID {
        switch self {
        case .id(let id): return id
        case .userid(let userid):
            guard let id = try await database.execute(FindAccountOfUserid(userid: userid)).first else {
                throw unknown
            }
            return id
        }
    }

    /// Runs `body` in a transaction that excludes log-ins, writes and other admins from the account. All acts on a
    /// userid use it.
    ///
    /// - Parameter plan: The plan that the account receives. It stays until the transaction ends, and its lock comes
    ///   first (``LockOrder``).
    /// - Throws: ``AccountRefusal``, an error of `body`, or a `PostgresError`.
    func act<Result>(
        in database: PostgresClient, use: LeaseUse = .short, plan: String? = nil,
        _ body: (Transaction, AccountID) async throws -> Result
    ) async throws -> Result {
        let account = try await accountID(in: database)
        return try await database.withTransaction(key: .account(account), use: use) { transaction in
            if let plan, try await transaction.execute(KeepPlan(name: plan)).isEmpty { throw AccountRefusal.noSuchPlan }
            // Separate statements: those behind the lock see the state at the time when it was granted.
            guard try await transaction.execute(LockAccountWholly(accountID: account)).first != nil,
                let userid = try await transaction.execute(Owned(accountID: account, read: FindUserid())).first
            else { throw unknown }
            // The owner may have changed the userid in between.
            if case .userid(let meant) = self, userid.string != meant { throw unknown }
            return try await body(transaction, account)
        }
    }

    /// The error for an account that does not exist.
    var unknown: AccountRefusal {
        guard case .userid(let text) = self else { return .noSuchAccount }
        do throws(Userid.Refusal) {
            _ = try Userid(text)
        } catch {
            if case .notCanonical(let canonical) = error { return .noSuchUserid(canonical: canonical) }
        }
        return .noSuchUserid(canonical: nil)
    }
}

/// Finds the account of a userid.
struct FindAccountOfUserid: Statement {
    typealias Row = AccountID

    let userid: String

    static let isReadOnly = true
    static let sql: SQL<Self> = "SELECT account_id FROM saltern.logins WHERE userid = \(\.userid)"
}
