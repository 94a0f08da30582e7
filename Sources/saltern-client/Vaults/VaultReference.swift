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

/// The arguments of a command for one shared vault: the account, the vault as first operand, and the output form.
struct NamedVault {
    let account: AccountOption
    let asJSON: Bool
    private let reference: VaultReference

    init(_ arguments: inout Arguments) throws(UsageError) {
        asJSON = arguments.flag("--json")
        account = try AccountOption(&arguments)
        reference = VaultReference(try arguments.word("the shared vault"))
    }

    /// Opens the account, and finds the shared vault with the state of the last sync.
    func find(_ console: Console) async throws -> OpenVault {
        let account = try await account.open(console)
        return OpenVault(account: account, shared: try await reference.find(in: account.vault))
    }

    /// Opens the account, fetches the members and invitations, and finds the shared vault.
    func fetch(_ console: Console) async throws -> OpenVault {
        let account = try await account.open(console)
        try await account.vault.shared.refresh()
        return OpenVault(account: account, shared: try await reference.find(in: account.vault))
    }
}

/// A shared vault in an open account.
struct OpenVault {
    let account: OpenAccount
    let shared: SharedVault

    /// The name of the vault for output.
    var name: String { VisibleText.visible(shared.name) }

    /// Fetches the members and invitations, and returns the vault with them.
    func refreshed() async throws -> OpenVault {
        try await account.vault.shared.refresh()
        return OpenVault(account: account, shared: try await present())
    }

    /// Returns the present state, after a change.
    func present() async throws -> SharedVault { try await account.vault.shared.vault(shared.id) ?? shared }
}

/// The owner of the items of a command: the account, or a shared vault (`--vault NAME`).
struct OwnerOption {
    static let help = """
        \(AccountOption.help)
          --vault NAME          a shared vault in place of the account: name or id
        """

    let account: AccountOption
    private let vault: VaultReference?

    init(_ arguments: inout Arguments) throws(UsageError) { try self.init(of: AccountOption(&arguments), &arguments) }

    /// Parses the options of a command that sends or fetches files, including a rate limit.
    init(withRate arguments: inout Arguments) throws(UsageError) {
        try self.init(of: AccountOption(withRate: &arguments), &arguments)
    }

    /// Parses `--vault`, after the options of the account.
    init(of account: AccountOption, _ arguments: inout Arguments) throws(UsageError) {
        self.account = account
        vault = try arguments.option("--vault").map(VaultReference.init)
    }

    /// True when the owner is a shared vault.
    var isVault: Bool { vault != nil }

    /// Opens the account's vault, and finds the shared one.
    func open(_ console: Console) async throws -> OpenOwner {
        let account = try await account.open(console)
        return OpenOwner(account: account, shared: try await vault?.find(in: account.vault))
    }
}

/// The owner of items in an open account.
struct OpenOwner {
    let account: OpenAccount
    /// Nil for the account itself.
    let shared: SharedVault?

    var items: OwnedItems { shared.map { $0.items(in: account.vault) } ?? OwnedItems(account.vault) }
}
