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
            guard let inviter = log.inviter(of: id), try await search.isLive(inviter, in: vaultID) else {
                throw VaultProblem.refused(.closedInvitation)
            }
            if entry.previous == log.head.hash {
                do throws(EntryRejection) { _ = try log.appending(entry) } catch { throw VaultProblem.refused(error) }
            }
            try await Self.join(entry, id, vaultID, authorization, request.pace)
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
        _ entry: Entry, _ invitation: InvitationID, _ vaultID: VaultID, _ authorization: Authorization, _ pace: Pace
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
            guard let inviter = stored.log.inviter(of: invitation) else {
                throw VaultProblem.refused(.closedInvitation)
            }
            // The account may have been locked while the request waited for the vault. Accounts are locked before
            // vaults, so its row is read without a lock: a lock that commits later follows the join.
            let holders = try await transaction.execute(FindHolder(vaultID: vaultID, memberID: inviter))
            guard try await !transaction.execute(FindUnlockedAccounts(ids: holders)).isEmpty else {
                throw VaultProblem.refused(.closedInvitation)
            }
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
    /// Returns the inviter of an invitation that a join can use; nil for others.
    fileprivate func inviter(of invitation: InvitationID) -> SalternServer.MemberID? {
        openInvitations.first { InvitationID($0.terms.id.bytes) == invitation }
            .map { SalternServer.MemberID($0.inviter.bytes) }
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

/// `GET /v1/invitations/{id}`: returns an invitation's preview and the vault's log to the holder of the link's token,
/// without a session. Managers see the number of such requests.
///
/// Unknown, malformed, expired, closed and used-up invitations, those of a locked or deleted account, and wrong tokens,
/// all return 404.
struct OpenInvitation: OpenEndpoint {
    private let search: InvitationSearch

    init(_ parts: Dependencies) { search = InvitationSearch(parts) }

    func respond(to request: Request) async throws -> Response {
        let token = InvitationToken.presented(request.head.fields)
        let (id, invitation) = try await search.find(request, token, now: search.clock.now)
        if let wait = search.door.openings.take(id.uuid) { throw RateLimited(wait: wait) }
        let log = try await search.door.log(of: invitation.vaultID, in: search.database, pace: request.pace)
        guard let inviter = log.inviter(of: id), try await search.isLive(inviter, in: invitation.vaultID) else {
            throw search.miss(request)
        }
        let find = FindEntries(vaultID: invitation.vaultID)
        let (entries, _) = try await search.database.execute(find, CountOpening(id: id))
        return .json(capacity: 2_048 + entries.reduce(0) { $0 + $1.count * 4 / 3 + 8 }) { writer in
            writer.object { writer in
                writer.member("vault", invitation.vaultID)
                writer.member("preview", base64: invitation.preview)
                writer.array("entries") { writer in for entry in entries { writer.string(base64: entry) } }
            }
        }
    }
}

/// Finds invitations by link. Misses are limited as those of shares.
struct InvitationSearch: Sendable {
    let database: PostgresClient
    let clock: any WallClock
    let door: VaultDoor
    private let limiter: RateLimiter

    init(_ parts: Dependencies) {
        database = parts.database
        clock = parts.clock
        door = parts.nodeState.vaults
        limiter = parts.nodeState.addresses
    }

    /// Finds the invitation in a request's path. The vault's log decides if it is open.
    ///
    /// - Throws: ``RateLimited``, 404, or a `PostgresError`.
    func find(
        _ request: Request, _ token: TokenHash?, now: Timestamp
    ) async throws -> (InvitationID, StoredInvitation) {
        if let limited = limiter.refusal(request.client, .shareMiss) { throw limited }
        if let id = Self.id(in: request), let token,
            let found = try await database.execute(FindInvitation(id: id, tokenHash: token, now: now)).first
        {
            return (id, found)
        }
        throw miss(request)
    }

    /// Returns true if the account of a member exists and is not locked. Links of others open nothing.
    func isLive(_ member: MemberID, in vault: VaultID) async throws -> Bool {
        let holders = try await database.execute(FindHolder(vaultID: vault, memberID: member))
        return try await !database.execute(FindUnlockedAccounts(ids: holders)).isEmpty
    }

    /// The id in a request's path. Nil if it is malformed.
    static func id(in request: Request) -> InvitationID? {
        request.parameters["id"].flatMap { InvitationID(pathParameter: $0) }
    }

    /// Counts a request without an open invitation. Returns the error.
    func miss(_ request: Request) -> Problem {
        limiter.take(request.client, .shareMiss)
        return Problem.notFound
    }
}

/// Finds the account of a member.
struct FindHolder: Statement {
    typealias Row = AccountID

    let vaultID: VaultID
    let memberID: MemberID

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT m.holder FROM saltern.vault_members m
        WHERE m.vault_id = \(\.vaultID) AND m.member_id = \(\.memberID) AND m.holder IS NOT NULL
        """
}
