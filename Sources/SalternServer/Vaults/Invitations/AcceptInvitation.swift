internal import HTTPCore
internal import Postgres
internal import VaultLog

/// `POST /v1/invitations/{id}/acceptance`: makes the caller a member of the vault by a `join` entry, and returns the
/// sealed key of the present generation. A repeated request returns the same result.
struct AcceptInvitation: AccountEndpoint {
    private let search: InvitationSearch

    init(_ parts: Dependencies) { search = InvitationSearch(parts) }

    func respond(to request: Request, authorization: Authorization) async throws -> Response {
        _ = try await authorization.identify()
        let (entry, token) = try JSONBody.read(request) { members in
            (try members.entry(), try members.required("token", InvitationToken.hash))
        }
        guard case .join(let join) = entry.payload else { throw VaultProblem.otherRoute }
        let account = authorization.accountID
        let (id, invitation, _) = try await search.find(request, token, now: authorization.now, mustBeOpen: false)
        guard InvitationID(join.invitation.bytes) == id else { throw VaultProblem.refused(.closedInvitation) }
        let vaultID = invitation.vaultID
        let revision = try await authorization.transaction { transaction -> Int64? in
            _ = try await Memberships.admit(account, owning: false, in: transaction, again: vaultID)
            guard let limits = try await transaction.execute(LockVaultForJoin(vaultID: vaultID)).first else {
                throw Problem.notFound
            }
            var stored = try await StoredLog(of: vaultID, in: transaction)
            let seats = try await transaction.execute(FindSeat(vaultID: vaultID, accountID: account))
            if stored.contains(entry), seats.first?.memberID == MemberID(entry.author.bytes) { return nil }
            if !seats.isEmpty { throw VaultProblem.alreadyMember }
            let members = Int64(stored.log.presentMembers.count)
            if members >= limits { throw ItemProblem.quotaExceeded(limit: "members", allowed: limits, used: members) }
            let revision = try await stored.append(entry, holder: account, now: authorization.now)
            transaction.enqueue(
                InsertMembership(
                    accountID: account, vaultID: vaultID, memberID: MemberID(entry.author.bytes), owns: false,
                    now: authorization.now))
            try await transaction.note(
                RecordSecurityEvent(accountID: account, kind: .vaultJoined, now: authorization.now))
            return revision
        }
        return .json(revision == nil ? .ok : .created) { writer in
            writer.object { writer in
                writer.member("vault", vaultID)
                writer.member("number", Int64(entry.number.value))
                writer.member("hash", base64: entry.hash.bytes)
                writer.member("keyBox", base64: invitation.keyBox)
            }
        }
    }
}

/// Locks a vault's row for a join. Returns the maximum number of its members.
struct LockVaultForJoin: Statement {
    typealias Row = Int64

    let vaultID: VaultID

    static let sql: SQL<Self> = """
        SELECT p.max_vault_members FROM saltern.vaults a JOIN saltern.plans p ON p.plan = a.plan
        WHERE a.vault_id = \(\.vaultID) FOR NO KEY UPDATE OF a
        """
}
