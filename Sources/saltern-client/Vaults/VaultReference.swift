import CommandLineKit
import SalternClient

/// A user's reference to a shared vault: its id, the first characters of it (at least four), or its name.
struct VaultReference {
    static let help = """
        VAULT is a shared vault's id, its first characters (at least four), or its name.
        """

    private let text: String

    init(_ text: String) { self.text = text }

    func find(in vault: Vault) async throws -> SharedVault {
        try NameMatch.only(
            text, among: await vault.shared.all(), noun: ("shared vault", "shared vaults"),
            id: { $0.id.description }, name: { $0.name }, isNamedByOthers: true)
    }
}

/// A user's reference to a member of a shared vault: its id, the first characters of it (at least four), or its name.
struct MemberReference {
    static let help = """
        MEMBER is a member's id, its first characters (at least four), or its name, from
        `saltern-client vault members VAULT`.
        """

    private let text: String

    init(_ text: String) { self.text = text }

    func find(in vault: SharedVault) throws(CommandFailure) -> SharedMember {
        // Members claim their names. The list shows similar ones with two words each, which are needed here, too.
        let similar = vault.members.filter { $0.name == text && $0.distinctName != text }
        guard similar.isEmpty else {
            throw CommandFailure(
                ["several members have the name \(VisibleText.visible(text)), or a similar one; use the id:"]
                    + similar.map { "\($0.id) \(VisibleText.visible($0.distinctName))" },
                status: ExitStatus.notFound, code: "ambiguous")
        }
        return try NameMatch.only(
            text, among: vault.members, noun: ("member", "members"), id: { $0.id.description },
            name: { $0.distinctName }, isNamedByOthers: true)
    }
}

/// A role as users write it: `reader`, `writer` or `manager`.
enum RoleWord {
    static let help = """
        A reader reads items, a writer also writes them, and a manager also changes
        members and invitations.
        """

    static func role(_ word: String) throws(UsageError) -> SharedRole {
        guard let role = SharedRole(rawValue: word) else {
            throw UsageError(message: "a role is reader, writer or manager")
        }
        return role
    }
}

extension SharedVault {
    /// Returns the items on this device.
    func items(in vault: Vault) -> OwnedItems { OwnedItems(vault, of: .vault(id)) }

    /// Returns the name of a member for output.
    func name(of id: MemberID) -> String {
        members.first { $0.id == id }.map { VisibleText.visible($0.distinctName) } ?? id.description
    }
}
