internal import HTTPCore
internal import Postgres
internal import VaultLog

/// `POST /v1/vaults/{vault}/owner`: takes over a vault that its owner has offered to the caller, by an `accept` entry.
/// From then on the vault counts against the caller's plan.
struct AcceptOwnership: AccountEndpoint {
    func respond(to request: Request, authorization: Authorization) async throws -> Response {
        let vaultID: VaultID = try request.parameters.require("vault")
        let seat = try await authorization.seat(in: vaultID, atLeast: .manager)
        let entry = try JSONBody.read(request) { try $0.entry() }
        guard case .accept(let number) = entry.payload else { throw VaultProblem.otherRoute }
        let revision = try await authorization.countingRefusal { () async throws -> Int64? in
            let log = try await authorization.log(of: vaultID, pace: request.pace)
            guard MemberID(entry.author.bytes) == seat.memberID else { throw VaultProblem.refused(.noOffer) }
            // Without a standing offer, no request locks the account of another member.
            if log.hash(at: entry.number) == entry.hash {
                guard log.owner == entry.author, seat.ownerAccount != authorization.accountID else {
                    return nil
                }
            } else if log.offer?.number != number || log.offer?.to != entry.author {
                throw VaultProblem.refused(.noOffer)
            }
            return try await Self.takeOver(entry, vaultID, from: seat.ownerAccount, authorization, request.pace)
        }
        return AppendEntry.reply(.ok, entry, vault: nil, revision: revision)
    }

    private static func takeOver(
        _ entry: Entry, _ vaultID: VaultID, from former: AccountID, _ authorization: Authorization, _ pace: Pace
    ) async throws -> Int64? {
        let (account, now) = (authorization.accountID, authorization.now)
        let find = FindSeat(vaultID: vaultID, accountID: account)
        return try await authorization.transaction(joining: vaultID, lockingWith: former) { transaction -> Int64? in
            let seats = try await transaction.execute(LockVault(find: find))
            guard let present = try await transaction.execute(find).first, !seats.isEmpty else {
                throw Problem.notFound
            }
            // Another account has taken it over meanwhile, or this one.
            guard present.ownerAccount == former || present.ownerAccount == account else {
                throw VaultProblem.refused(.noOffer)
            }
            let log = try await StoredLog(of: vaultID, in: transaction, authorization.door.logs, pace: pace, now: now)
            // An entry that was put back counts after the recovery.
            if log.isRecovering { throw VaultProblem.recovering }
            let revision = try await AppendEntry.append(entry, to: log, present)
            // An entry that was put back after a restore has not moved the vault.
            guard revision != nil || (log.isOwned(by: present) && present.ownerAccount != account) else { return nil }
            let count = try await Memberships.admit(account, owning: true, in: transaction, again: vaultID)
            _ = try await transaction.execute(
                SetOwnership(accountID: former, vaultID: vaultID, owns: false),
                SetOwnership(accountID: account, vaultID: vaultID, owns: true),
                MoveOwner(vaultID: vaultID, ownerAccount: account, plan: count.plan))
            try await transaction.note(RecordSecurityEvent(accountID: account, kind: .vaultTakenOver, now: now))
            return revision
        }
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
