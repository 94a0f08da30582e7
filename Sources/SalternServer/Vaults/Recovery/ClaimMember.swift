internal import HTTPCore
internal import Postgres
internal import VaultLog

/// `POST /v1/vaults/{vault}/claim`: binds a member of the log to the caller's account. The log has no accounts, so a
/// join that was put back after a restore has none.
struct ClaimMember: AccountEndpoint {
    func respond(to request: Request, authorization: Authorization) async throws -> Response {
        _ = try await authorization.identify()
        let vaultID: VaultID = try request.parameters.require("vault")
        let claim = try await JSONBody.readLarge(request) { try Claim(&$0) }
        let account = authorization.accountID
        try await authorization.transaction { transaction in
            _ = try await Memberships.admit(account, owning: false, in: transaction, again: vaultID)
            guard try await transaction.execute(LockVaultForJoin(vaultID: vaultID)).first != nil else {
                throw Problem.notFound
            }
            var stored = try await StoredLog(of: vaultID, in: transaction)
            if !claim.entries.isEmpty, stored.isRecovering(at: authorization.now) {
                _ = try await stored.putBack(claim.entries, now: authorization.now)
            }
            try await Self.bind(claim, account, stored, in: transaction, now: authorization.now)
        }
        return .json { writer in
            writer.object { writer in
                writer.member("id", vaultID)
                writer.member("memberId", MemberID(claim.member.bytes))
            }
        }
    }

    private static func bind(
        _ claim: Claim, _ account: AccountID, _ stored: StoredLog, in transaction: Transaction, now: Timestamp
    ) async throws {
        let (vaultID, memberID) = (stored.vaultID, MemberID(claim.member.bytes))
        guard stored.log.members[claim.member]?.role != nil, let claimant = MemberAccountID(account.uuid.bytes) else {
            throw Problem.notFound
        }
        guard let head = claim.head, let signature = claim.signature, stored.log.place(of: head) == .known,
            MemberStatement(.claim(claimant), claim.member, head, signature).isValid(in: stored.log)
        else { throw VaultProblem.claimRefused }
        let (seats, holders) = try await transaction.execute(
            FindSeat(vaultID: vaultID, accountID: account), FindHolder(vaultID: vaultID, memberID: memberID))
        // A repeated request.
        if seats.first?.memberID == memberID { return }
        guard seats.isEmpty, holders.isEmpty else { throw VaultProblem.alreadyMember }
        transaction.enqueue(
            InsertMembership(accountID: account, vaultID: vaultID, memberID: memberID, owns: false, now: now))
        transaction.enqueue(BindMember(vaultID: vaultID, memberID: memberID, holder: account))
    }
}

/// The request of a ``ClaimMember``.
private struct Claim {
    let member: VaultLog.MemberID
    let head: Head?
    let signature: VaultSignature?
    let entries: [Entry]

    init(_ members: inout JSONMembers) throws {
        member = try members.required("member") { json in
            guard let member = VaultLog.MemberID(text: try json.string()) else { throw BatchProblem.invalidIdentifier }
            return member
        }
        head = try members.required("head") { json in try JSONMembers.read(json) { try $0.head() } }
        signature = try members.required("signature", VaultSignature.read)
        entries = try members.entries() ?? []
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

/// Gives a member without account to an account.
struct BindMember: Statement {
    let vaultID: VaultID
    let memberID: MemberID
    let holder: AccountID

    static let sql: SQL<Self> = """
        UPDATE saltern.vault_members m SET holder = \(\.holder)
        WHERE m.vault_id = \(\.vaultID) AND m.member_id = \(\.memberID) AND m.holder IS NULL
        """
}
