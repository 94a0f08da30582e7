internal import Postgres

/// The account that an operator means.
public enum AccountReference: Sendable, Equatable {
    case userid(String)
    case id(AccountID)
}

/// Why nothing was done with an account.
public enum AccountRefusal: Error, Equatable, CustomStringConvertible {
    /// Nobody has the userid; perhaps somebody has its canonical form.
    case noSuchUserid(canonical: String?)
    case noSuchAccount
    case noSuchPlan

    public var description: String {
        switch self {
        case .noSuchUserid(nil): "nobody has this userid"
        case .noSuchUserid(let canonical?): "nobody has this userid; its canonical form is \(canonical)"
        case .noSuchAccount: "there is no such account"
        case .noSuchPlan: "there is no such plan; see saltern plan list"
        }
    }
}

extension AccountReference {
    /// The account's identifier; an account that is named by it need not exist.
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

    /// Runs `body` in a transaction that keeps log-ins, writes and other admins away from the account. Every act that an
    /// admin names a userid for goes through here.
    /// - Throws: ``AccountRefusal``, what `body` throws, or a `PostgresError`.
    func act<Result>(
        in database: PostgresClient, use: LeaseUse = .short,
        _ body: (Transaction, AccountID) async throws -> Result
    ) async throws -> Result {
        let account = try await accountID(in: database)
        return try await database.withTransaction(key: .account(account), use: use) { transaction in
            // In statements of their own: what follows the lock sees what was there when it was granted.
            guard try await transaction.execute(LockAccountWholly(accountID: account)).first != nil,
                let userid = try await transaction.execute(Owned(accountID: account, read: FindUserid())).first
            else { throw unknown }
            // Its owner may have taken another userid in between.
            if case .userid(let meant) = self, userid.string != meant { throw unknown }
            return try await body(transaction, account)
        }
    }

    /// The refusal that says that there is no such account.
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
