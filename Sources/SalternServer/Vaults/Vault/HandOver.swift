internal import HTTPCore
internal import Postgres
internal import VaultLog

/// `POST /v1/vaults/{vault}/owner`: takes over a vault that its owner has offered to the caller, by an `accept` entry.
/// From then on the vault counts against the caller's plan.
struct AcceptOwnership: AccountEndpoint {
    func respond(to request: Request, authorization: Authorization) async throws -> Response {
        _ = try await authorization.identify()
        let vaultID: VaultID = try request.parameters.require("vault")
        let entry = try JSONBody.read(request) { try $0.entry() }
        guard case .accept = entry.payload else { throw VaultProblem.otherRoute }
        let account = authorization.accountID
        let find = FindSeat(vaultID: vaultID, accountID: account)
        guard let seat = try await authorization.read(find, in: vaultID).first else { throw Problem.notFound }
        let former = seat.ownerAccount
        let revision = try await authorization.transaction(lockingWith: former) { transaction -> Int64? in
            let seats = try await transaction.execute(LockVault(find: find))
            guard let present = try await transaction.execute(find).first, !seats.isEmpty else {
                throw Problem.notFound
            }
            // Another account has taken it over meanwhile, or this one.
            guard present.ownerAccount == former || present.ownerAccount == account else {
                throw VaultProblem.refused(.noOffer)
            }
            let log = try await StoredLog(of: vaultID, in: transaction)
            let revision = try await AppendEntry.append(entry, to: log, present, now: authorization.now)
            // An entry that was put back after a restore has not moved the vault.
            guard revision != nil || (log.isOwned(by: present) && present.ownerAccount != account) else { return nil }
            let count = try await Memberships.admit(account, owning: true, in: transaction, again: vaultID)
            _ = try await transaction.execute(
                SetOwnership(accountID: former, vaultID: vaultID, owns: false),
                SetOwnership(accountID: account, vaultID: vaultID, owns: true),
                MoveOwner(vaultID: vaultID, ownerAccount: account, plan: count.plan))
            try await transaction.note(
                RecordSecurityEvent(accountID: account, kind: .vaultTakenOver, now: authorization.now))
            return revision
        }
        return AppendEntry.reply(.ok, entry, vault: nil, revision: revision)
    }
}

/// Records that an account owns a vault on its list, or no longer.
struct SetOwnership: Statement {
    let accountID: AccountID
    let vaultID: VaultID
    let owns: Bool

    static let sql: SQL<Self> = """
        UPDATE saltern.memberships m SET owns = \(\.owns)
        WHERE m.account_id = \(\.accountID) AND m.vault_id = \(\.vaultID)
        """
}
