import CommandLineKit
import SalternClient

struct ListVaults: Command {
    static let words = ["vault", "list"]
    static let summary = "list the shared vaults"
    static let example = "saltern-client vault list"
    static let help = """
        \(AccountOption.help)
          --json                one object, for scripts

        Works without network, with the state of the last sync. Problems are below the
        list, with exit status 2.
        """

    private let account: AccountOption
    private let asJSON: Bool

    init(_ arguments: inout Arguments) throws(UsageError) {
        asJSON = arguments.flag("--json")
        account = try AccountOption(&arguments)
    }

    func run(_ console: Console) async throws {
        let vaults = try await account.open(console).vault.shared.all()
        try console.show(["vaults": vaults.map { VaultRecord($0) }], asJSON: asJSON) {
            var table = Table([.text("id"), .text("role"), .number("members"), .text("name")])
            for vault in vaults {
                table.append([vault.id.description, vault.roleText, String(vault.members.count), vault.name])
            }
            return table.takeText() + vaults.flatMap(\.lines).map { $0 + "\n" }.joined()
        }
        if vaults.contains(where: \.wantsAttention) {
            throw CommandFailure([], status: ExitStatus.attention, code: "attention")
        }
    }
}

/// A shared vault in the form for scripts.
struct VaultRecord: Encodable {
    let id: SharedVaultID
    let name: String
    /// Nil when the membership has ended.
    let role: String?
    let owner: Bool
    let members: Int
    /// The receiver of the owner's offer.
    let offeredTo: MemberID?
    /// False until the inviter has seen the join.
    let confirmed: Bool
    let rotationDue: Bool
    let problems: [VaultProblemRecord]
    /// True when this account has left the vault.
    let left: Bool
    /// The number of changes that the server does not have. Only in the status of the account.
    let unsent: Int?
    /// Only in the status of the account.
    let notices: [NoticeRecord]?
    /// The deletions that wait for approval. Only in the status of the account.
    let heldItems: [HeldItem]?

    init(_ vault: SharedVault, unsent: Int? = nil, notices: [Notice]? = nil, held: [HeldDeletion]? = nil) {
        id = vault.id
        name = vault.name
        role = vault.role?.rawValue
        owner = vault.isOwner
        members = vault.members.count
        offeredTo = vault.offeredTo
        confirmed = vault.isConfirmed
        rotationDue = vault.isRotationDue
        problems = vault.problems.map(VaultProblemRecord.init)
        left = vault.hasLeft
        self.unsent = unsent
        self.notices = notices?.map(NoticeRecord.init)
        heldItems = held?.map(HeldItem.init)
    }
}

extension SharedVault {
    /// The role as a word for the user.
    var roleText: String { role.map { isOwner ? "owner" : $0.rawValue } ?? "ended" }

    /// True when the user should check the vault.
    var wantsAttention: Bool {
        // Users expect the end of a membership that they have ended.
        problems.contains { $0.wantsAttention && !(hasLeft && $0 == .ended) } || isOfferedToThisMember
    }

    /// True when the owner offers the vault to this member.
    var isOfferedToThisMember: Bool { offeredTo.map { id in members.contains { $0.isOwn && $0.id == id } } ?? false }

    /// The state that the user should know, one line each, with the name of the vault.
    var lines: [String] {
        var lines = problems.map { $0.text(in: self) }
        if !isConfirmed, role != nil {
            lines.append("not yet confirmed by the inviter: compare `saltern-client vault members --verify`")
        }
        if isOfferedToThisMember { lines.append("its owner offers it to you: see saltern-client vault accept") }
        lines += members.filter(\.isDeparted).map {
            "the server reports that the account of \(VisibleText.visible($0.distinctName)) is deleted or locked: "
                + "see saltern-client vault remove"
        }
        return lines.map { "\(VisibleText.visible(name)): \($0)" }
    }
}
