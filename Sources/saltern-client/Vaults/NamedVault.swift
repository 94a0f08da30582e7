import CommandLineKit
import SalternClient

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
