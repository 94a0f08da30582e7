import CommandLineKit
import SalternClient

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
