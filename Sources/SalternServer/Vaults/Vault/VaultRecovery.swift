internal import HTTPCore
internal import Postgres
internal import VaultLog

/// The recovery of a vault after a restore of the database: its log can lack entries that members have.
///
/// Until the owner's device reports the end, members put entries back, and no new ones are appended. Entries that are
/// put back are provisional: the owner replaces them, and until the end they take rights and give none. A member that
/// was removed after the backup therefore cannot continue the log on its own.
enum VaultRecovery {
    /// The longest recovery, which ends without a report.
    static let period = Duration.seconds(7 * 86_400)

    /// The time of the restore, or null if the vault `a` was founded or has recovered since then.
    static let began: SQLFragment = """
        (SELECT b.base_moved_at FROM saltern.installation b WHERE b.singleton AND b.revision_base > a.recovered_base)
        """

    /// Returns the end of a recovery that is under way.
    static func end(began: Timestamp?, now: Timestamp) -> Timestamp? {
        guard let began, began + period > now else { return nil }
        return began + period
    }
}

/// The end of a vault's log, and its recovery.
struct VaultState: DecodableRow {
    let head: StoredHead
    /// The member that owns the vault, without provisional entries.
    private(set) var owner: MemberID
    /// The time at which the vault's recovery began, if the database was restored since then.
    private(set) var recoveryBegan: Timestamp?
    /// The number above which entries are provisional. Nil if none were put back.
    private(set) var settled: Int64?

    init(row: inout RowReader) throws(PostgresError) {
        head = StoredHead(number: try row.next(), hash: try row.next())
        owner = try row.next()
        recoveryBegan = try row.next()
        settled = try row.next()
    }

    mutating func hasRecovered(owner: MemberID) {
        self.owner = owner
        recoveryBegan = nil
        settled = nil
    }
}

struct FindVaultState: Statement {
    typealias Row = VaultState

    let vaultID: VaultID

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT a.head_number, a.head_hash, a.owner_member, \(VaultRecovery.began), a.settled_number
        FROM saltern.vaults a WHERE a.vault_id = \(\.vaultID)
        """
}

/// Records that a vault has recovered.
struct EndRecovery: Statement {
    let vaultID: VaultID
    /// The member that owns the vault.
    let owner: MemberID

    static let sql: SQL<Self> = """
        UPDATE saltern.vaults a
        SET recovered_base = \(AccountCounter.base), settled_number = NULL, owner_member = \(\.owner)
        WHERE a.vault_id = \(\.vaultID)
        """
}

/// `PUT /v1/vaults/{vault}/log`: puts entries back that a restored database lacks. The reply has the log's end: others
/// than the owner put back no entries of their own, nor those behind them.
struct PutBackEntries: AccountEndpoint {
    func respond(to request: Request, authorization: Authorization) async throws -> Response {
        let vaultID: VaultID = try request.parameters.require("vault")
        try await authorization.seat(in: vaultID, atLeast: .reader)
        let entries = try await authorization.countingRefusal {
            let entries = try await JSONBody.readLarge(request) { try await $0.entries(request.pace) }
            guard let entries else { throw VaultProblem.malformedEntry }
            return entries
        }
        let (head, revision) = try await authorization.transaction(
            onLogOf: vaultID, atLeast: .reader, pace: request.pace
        ) { transaction, seat, stored in
            var stored = stored
            let revision = try await stored.putBack(entries, by: seat.memberID)
            return (stored.log.head, revision)
        }
        return .json { writer in
            writer.object { writer in
                writer.member("number", Int64(head.number.value))
                writer.member("hash", base64: head.hash.bytes)
                if let revision { writer.member("revision", revision) }
            }
        }
    }
}

/// `POST /v1/vaults/{vault}/recovered`: the owner's device reports that the log is complete again.
struct ReportRecovery: AccountEndpoint {
    func respond(to request: Request, authorization: Authorization) async throws -> Response {
        let vaultID: VaultID = try request.parameters.require("vault")
        try await authorization.seat(in: vaultID, atLeast: .reader)
        let head = try JSONBody.read(request) { members in
            try members.required("head") { json in try JSONMembers.read(json) { try $0.head() } }
        }
        try await authorization.transaction(
            onLogOf: vaultID, atLeast: .reader, pace: request.pace
        ) { transaction, seat, stored in
            var stored = stored
            guard stored.isOwned(by: seat) else { throw VaultProblem.roleTooLow }
            guard let head, head == stored.log.head else {
                let known = head.map { stored.log.place(of: $0) == .known ? $0.number.value : 0 }
                throw try await stored.moved(since: known ?? 0)
            }
            stored.settle()
        }
        return .noContent
    }
}

/// `POST /v1/vaults/{vault}/claim`: binds a member that was put back to the caller's account. The log has no accounts,
/// so a join that was put back after a restore has none.
///
/// Until the join is put back, the result is 404. No reply contains entries: the caller is no member.
struct ClaimMember: AccountEndpoint {
    func respond(to request: Request, authorization: Authorization) async throws -> Response {
        _ = try await authorization.identify()
        try authorization.admitToLogs()
        let vaultID: VaultID = try request.parameters.require("vault")
        let claim = try JSONBody.read(request) { members in try Claim(&members) }
        try await authorization.countingRefusal {
            guard let claimant = MemberAccountID(authorization.accountID.uuid.bytes) else { throw Problem.notFound }
            // Checked before the vault is locked.
            try claim.check(of: claimant, in: try await authorization.log(of: vaultID, pace: request.pace))
            if try await Self.isBound(claim, vaultID, authorization) { return }
            authorization.door.refusals.take(authorization.accountID.uuid)
            try await Self.bind(claim, claimant, vaultID, authorization, request.pace)
        }
        return .json { writer in
            writer.object { writer in
                writer.member("id", vaultID)
                writer.member("memberId", claim.memberID)
            }
        }
    }

    /// Returns true if the account has the member, and the vault is on its list.
    private static func isBound(
        _ claim: Claim, _ vaultID: VaultID, _ authorization: Authorization
    ) async throws -> Bool {
        let account = authorization.accountID
        let (seats, memberships) = try await authorization.database.execute(
            FindSeat(vaultID: vaultID, accountID: account), Owned(accountID: account, read: FindMemberships()))
        return seats.first?.memberID == claim.memberID && memberships.contains { $0.vaultID == vaultID }
    }

    private static func bind(
        _ claim: Claim, _ claimant: MemberAccountID, _ vaultID: VaultID, _ authorization: Authorization, _ pace: Pace
    ) async throws {
        let (account, now) = (authorization.accountID, authorization.now)
        try await authorization.transaction(joining: vaultID) { transaction in
            _ = try await Memberships.admit(account, owning: false, in: transaction, again: vaultID)
            transaction.enqueue(
                listing: InsertMembership(
                    accountID: account, vaultID: vaultID, memberID: claim.memberID, owns: false, now: now))
            guard try await transaction.execute(LockVaultForJoin(vaultID: vaultID)).first != nil else {
                throw Problem.notFound
            }
            let stored = try await StoredLog(
                of: vaultID, in: transaction, authorization.door.logs, pace: pace, now: now)
            try claim.check(of: claimant, in: stored.log)
            let (others, bound) = try await transaction.execute(
                FindOtherMember(
                    vaultID: vaultID, memberID: claim.memberID, holder: account, ended: stored.isRecovering),
                BindMember(vaultID: vaultID, memberID: claim.memberID, holder: account))
            guard others.isEmpty, !bound.isEmpty else { throw VaultProblem.alreadyMember }
        }
    }
}

/// The request of a ``ClaimMember``.
private struct Claim {
    private let member: VaultLog.MemberID
    private let head: Head?
    private let signature: VaultSignature?

    var memberID: MemberID { MemberID(member.bytes) }

    init(_ members: inout JSONMembers) throws {
        member = try members.required("member") { json in
            guard let id = MemberID(pathParameter: try json.string()), let member = VaultLog.MemberID(id.uuid.bytes)
            else { throw BatchProblem.invalidIdentifier }
            return member
        }
        head = try members.required("head") { json in try JSONMembers.read(json) { try $0.head() } }
        signature = try members.required("signature", VaultSignature.read)
    }

    /// Checks that the member is present, and that it has signed the claim.
    func check(of claimant: MemberAccountID, in log: MembershipLog) throws {
        guard log.members[member]?.role != nil else { throw Problem.notFound }
        guard let head, let signature, log.place(of: head) == .known,
            MemberStatement(.claim(claimant), member, head, signature).isValid(in: log)
        else { throw VaultProblem.claimRefused }
    }
}

/// Finds a row if an account has another member of a vault.
struct FindOtherMember: Statement {
    typealias Row = MemberID

    let vaultID: VaultID
    let memberID: MemberID
    let holder: AccountID
    /// True if members without a role count: the end of a recovery can give them one.
    let ended: Bool

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT m.member_id FROM saltern.vault_members m
        WHERE m.vault_id = \(\.vaultID) AND m.holder = \(\.holder) AND m.member_id <> \(\.memberID)
            AND (m.role > 0 OR \(\.ended))
        LIMIT 1
        """
}

/// Gives a member that was put back to an account. Returns a row if the account has the member.
struct BindMember: Statement {
    typealias Row = MemberID

    let vaultID: VaultID
    let memberID: MemberID
    let holder: AccountID

    static let sql: SQL<Self> = """
        UPDATE saltern.vault_members m SET holder = \(\.holder), is_unclaimed = false
        WHERE m.vault_id = \(\.vaultID) AND m.member_id = \(\.memberID)
            AND ((m.holder IS NULL AND m.is_unclaimed) OR m.holder = \(\.holder))
        RETURNING m.member_id
        """
}
