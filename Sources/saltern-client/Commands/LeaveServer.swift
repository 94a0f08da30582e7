import CommandLineKit
import SalternClient

struct LeaveServer: Command {
    static let words = ["leave"]
    static let summary = "delete the account, on the server and here"
    static let example = "saltern-client leave"
    static let help = """
        \(AccountOption.help)
        \(PasswordOption.help)
          --yes                 does not ask, for scripts
          --discard-unsent      also with unsent changes, which are lost
          --delete-vaults       also deletes the account's own shared vaults, for all
                                members; others stay
          --json                one object, for scripts

        This cannot be undone. Run `saltern-client export` first. An account that owns
        shared vaults hands them over first, or deletes them.
        """

    private let proof: ProvenCommand
    private let isConfirmed: Bool
    private let discardsUnsent: Bool
    private let deletesVaults: Bool

    init(_ arguments: inout Arguments) throws(UsageError) {
        isConfirmed = arguments.flag("--yes")
        discardsUnsent = arguments.flag("--discard-unsent")
        deletesVaults = arguments.flag("--delete-vaults")
        proof = try ProvenCommand(&arguments)
    }

    func run(_ console: Console) async throws {
        let name = try await proof.withAccount(console) { account, password in
            if !isConfirmed {
                let count = try await account.vault.collectionCounts().values.reduce(0, +)
                let owned = deletesVaults ? try await account.vault.shared.all().filter(\.isOwner) : []
                try console.confirm(
                    "Delete \(account.profile.userid) with \(counted(count, "item"))"
                        + (owned.isEmpty ? "" : " and the shared vaults \(owned.map(\.name).joined(separator: ", "))")
                        + " for good?")
            }
            try await account.vault.leave(
                password: password, discardingUnsentEdits: discardsUnsent, deletingVaults: deletesVaults)
            await account.removeFiles()
            return account.name.description
        }
        try console.show(["left": name], asJSON: proof.asJSON) {
            VisibleText.visible(name) + " is deleted, on the server and here\n"
        }
    }
}
