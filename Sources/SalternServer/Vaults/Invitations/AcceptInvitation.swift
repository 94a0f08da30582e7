internal import HTTPCore
internal import Postgres
internal import VaultLog

/// `POST /v1/invitations/{id}/acceptance`: makes the caller a member of the vault by a `join` entry, and returns the
/// sealed key of the present generation. A repeated request returns the same result, without the key if the invitation
/// has been closed meanwhile.
struct AcceptInvitation: AccountEndpoint {
    private let search: InvitationSearch

    init(_ parts: Dependencies) { search = InvitationSearch(parts) }

    func respond(to request: Request, authorization: Authorization) async throws -> Response {
        _ = try await authorization.identify()
        try authorization.admitToLogs()
        let (entry, token) = try JSONBody.read(request) { members in
            (try members.entry(), try members.required("token", InvitationToken.hash))
        }
        guard case .join(let join) = entry.payload else { throw VaultProblem.otherRoute }
        let vaultID = VaultID(entry.vault.bytes)
        if try await Self.hasJoined(entry, vaultID, authorization) {
            let id = InvitationID(join.invitation.bytes)
            let find = FindInvitation(id: id, tokenHash: token, now: authorization.now)
            let invitation = try await authorization.database.execute(find).first
            return Self.reply(.ok, entry, vaultID, keyBox: invitation?.keyBox)
        }
        let (id, invitation) = try await search.find(request, token, now: authorization.now)
        try await authorization.countingRefusal {
            guard InvitationID(join.invitation.bytes) == id, invitation.vaultID == vaultID else {
                throw VaultProblem.refused(.closedInvitation)
            }
            // Checked before the vault is locked.
            let log = try await authorization.log(of: vaultID, pace: request.pace)
            guard log.isOpen(join.invitation) else { throw VaultProblem.refused(.closedInvitation) }
            if entry.previous == log.head.hash {
                do throws(EntryRejection) { _ = try log.appending(entry) } catch { throw VaultProblem.refused(error) }
            }
            try await Self.join(entry, join.invitation, vaultID, authorization, request.pace)
        }
        return Self.reply(.created, entry, vaultID, keyBox: invitation.keyBox)
    }

    /// Returns true if the entry has made the caller a member: the request repeats one whose reply was lost.
    private static func hasJoined(
        _ entry: Entry, _ vaultID: VaultID, _ authorization: Authorization
    ) async throws -> Bool {
        let (seats, entries) = try await authorization.database.execute(
            FindSeat(vaultID: vaultID, accountID: authorization.accountID),
            FindEntry(vaultID: vaultID, number: Int64(entry.number.value)))
        return seats.first?.memberID == MemberID(entry.author.bytes) && entries.first == entry.bytes
    }

    private static func join(
        _ entry: Entry, _ invitation: VaultLog.InvitationID, _ vaultID: VaultID, _ authorization: Authorization,
        _ pace: Pace
    ) async throws {
        let (account, now) = (authorization.accountID, authorization.now)
        try await authorization.transaction(joining: vaultID) { transaction in
            _ = try await Memberships.admit(account, owning: false, in: transaction, again: vaultID)
            // Writes of the account's rows precede those of the vault's (``LockOrder``).
            transaction.enqueue(
                listing: InsertMembership(
                    accountID: account, vaultID: vaultID, memberID: MemberID(entry.author.bytes), owns: false, now: now
                ))
            guard let limits = try await transaction.execute(LockVaultForJoin(vaultID: vaultID)).first else {
                throw Problem.notFound
            }
            var stored = try await StoredLog(
                of: vaultID, in: transaction, authorization.door.logs, pace: pace, now: now)
            let seats = try await transaction.execute(FindSeat(vaultID: vaultID, accountID: account))
            if stored.contains(entry), seats.first?.memberID == MemberID(entry.author.bytes) { return }
            if !seats.isEmpty { throw VaultProblem.alreadyMember }
            // Only the holder of an open invitation gets entries.
            guard stored.log.isOpen(invitation) else { throw VaultProblem.refused(.closedInvitation) }
            let members = Int64(stored.log.presentCount)
            if members >= limits { throw ItemProblem.quotaExceeded(limit: "members", allowed: limits, used: members) }
            _ = try await stored.append(entry, holder: account)
            try await transaction.note(RecordSecurityEvent(accountID: account, kind: .vaultJoined, now: now))
        }
    }

    private static func reply(_ status: HTTPStatus, _ entry: Entry, _ vaultID: VaultID, keyBox: [UInt8]?) -> Response {
        .json(status) { writer in
            writer.object { writer in
                writer.member("vault", vaultID)
                writer.member("number", Int64(entry.number.value))
                writer.member("hash", base64: entry.hash.bytes)
                if let keyBox { writer.member("keyBox", base64: keyBox) }
            }
        }
    }
}

extension MembershipLog {
    /// Returns true for an invitation that a join can use.
    fileprivate func isOpen(_ invitation: VaultLog.InvitationID) -> Bool {
        openInvitations.contains { $0.terms.id == invitation }
    }

    /// Returns the log with one more entry.
    fileprivate func appending(_ entry: Entry) throws(EntryRejection) -> MembershipLog {
        var log = self
        try log.append(entry)
        return log
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
