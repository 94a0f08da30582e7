import CommandLineKit
import SalternClient

/// A shared vault in the form for scripts.
struct VaultRecord: Encodable {
    let id: SharedVaultID
    let name: String
    /// Nil when the membership has ended.
    let role: String?
    let owner: Bool
    let members: Int
    /// The member to whom the owner offers the vault.
    let offeredTo: MemberID?
    /// False until the inviter has seen the join.
    let confirmed: Bool
    let rotationDue: Bool
    let problems: [VaultProblemRecord]
    /// Only in the status of the account.
    let notices: [NoticeRecord]?
    /// The deletions that wait for approval. Only in the status of the account.
    let heldItems: [HeldItem]?

    init(_ vault: SharedVault, notices: [Notice]? = nil, held: [HeldDeletion]? = nil) {
        id = vault.id
        name = vault.name
        role = vault.role?.rawValue
        owner = vault.isOwner
        members = vault.members.count
        offeredTo = vault.offeredTo
        confirmed = vault.isConfirmed
        rotationDue = vault.isRotationDue
        problems = vault.problems.map(VaultProblemRecord.init)
        self.notices = notices?.map(NoticeRecord.init)
        heldItems = held?.map(HeldItem.init)
    }
}

extension SharedVault {
    /// The role as a word for the user.
    var roleText: String { isOwner ? "owner" : role?.rawValue ?? "ended" }

    /// True when the user should check the vault.
    var wantsAttention: Bool { problems.contains(where: \.wantsAttention) || isOfferedToThisMember }

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
            "the server says that the account of \(VisibleText.visible($0.distinctName)) no longer exists: "
                + "see saltern-client vault remove"
        }
        return lines.map { "\(VisibleText.visible(name)): \($0)" }
    }
}
