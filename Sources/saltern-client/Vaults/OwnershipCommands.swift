import CommandLineKit
import SalternClient

struct HandOverVault: Command {
    static let words = ["vault", "hand-over"]
    static let summary = "offer a shared vault to another manager"
    static let usage = ["VAULT MEMBER [OPTIONS]", "VAULT --withdraw [OPTIONS]"]
    static let example = "saltern-client vault hand-over household Carol"
    static let help = """
        \(AccountOption.help)
          --withdraw            ends the offer
          --json                one object, for scripts

        The vault counts against your plan until the manager accepts the offer with
        `saltern-client vault accept`. You stay a manager.
        \(MemberReference.help)
        \(VaultReference.help)
        """

    private let vault: NamedVault
    private let member: MemberReference?

    init(_ arguments: inout Arguments) throws(UsageError) {
        let withdraws = arguments.flag("--withdraw")
        vault = try NamedVault(&arguments)
        member = withdraws ? nil : MemberReference(try arguments.word("the member, or --withdraw"))
    }

    func run(_ console: Console) async throws {
        let opened = try await vault.fetch(console)
        let found = try member?.find(in: opened.shared)
        try await opened.shared.handOver(to: found?.id)
        try console.show(["offeredTo": found?.id], asJSON: vault.asJSON) {
            found.map { "\(opened.name) is offered to \(VisibleText.visible($0.distinctName))\n" }
                ?? "the offer of \(opened.name) is withdrawn\n"
        }
    }
}

struct AcceptVault: Command {
    static let words = ["vault", "accept"]
    static let summary = "become the owner of an offered shared vault"
    static let usage = ["VAULT [OPTIONS]"]
    static let example = "saltern-client vault accept household"
    static let help = """
        \(AccountOption.help)
          --json                one object, for scripts

        Its items count against your plan from then on.
        \(VaultReference.help)
        """

    private let vault: NamedVault

    init(_ arguments: inout Arguments) throws(UsageError) { vault = try NamedVault(&arguments) }

    func run(_ console: Console) async throws {
        let opened = try await vault.fetch(console)
        try await opened.shared.acceptHandOver()
        try console.show(["owner": opened.shared.id], asJSON: vault.asJSON) { "you are the owner of \(opened.name)\n" }
    }
}

struct RotateVault: Command {
    static let words = ["vault", "rotate"]
    static let summary = "give a shared vault a new key"
    static let usage = ["VAULT [OPTIONS]"]
    static let example = "saltern-client vault rotate household"
    static let help = """
        \(AccountOption.help)
          --without-key         also if this device lacks the present key; new members
                                then wait for a manager who has it
          --json                one object, for scripts

        Later items are encrypted with the new key, which all present members receive.
        Open invitations end. The removal of a member does the same.
        \(VaultReference.help)
        """

    private let vault: NamedVault
    private let replacesKey: Bool

    init(_ arguments: inout Arguments) throws(UsageError) {
        replacesKey = arguments.flag("--without-key")
        vault = try NamedVault(&arguments)
    }

    func run(_ console: Console) async throws {
        let opened = try await vault.fetch(console)
        try await opened.shared.rotate(replacingMissingKey: replacesKey)
        try console.show(["rotated": opened.shared.id], asJSON: vault.asJSON) { "\(opened.name) has a new key\n" }
    }
}

struct DeleteVault: Command {
    static let words = ["vault", "delete"]
    static let summary = "delete a shared vault for all members"
    static let usage = ["VAULT [OPTIONS]"]
    static let example = "saltern-client vault delete household"
    static let help = """
        \(AccountOption.help)
          --yes                 does not ask, for scripts
          --json                one object, for scripts

        Only the owner can delete it. This cannot be undone: run `saltern-client export
        FILE --vault VAULT` first. Other members keep the items on their devices.
        \(VaultReference.help)
        """

    private let vault: NamedVault
    private let isConfirmed: Bool

    init(_ arguments: inout Arguments) throws(UsageError) {
        isConfirmed = arguments.flag("--yes")
        vault = try NamedVault(&arguments)
    }

    func run(_ console: Console) async throws {
        let opened = try await vault.find(console).refreshed()
        if !opened.shared.isOwner { throw VaultError.shared(.notPermitted) }
        if !isConfirmed {
            let items = opened.shared.items(in: opened.account.vault)
            let (count, unsent) = (try await items.items().count, try await items.unsentCount())
            try console.confirm(
                "Delete \(opened.shared.name) with \(counted(count, "item"))"
                    + (unsent > 0 ? " (\(counted(unsent, "change")) not sent)" : "")
                    + " for \(counted(opened.shared.members.count, "member")) for good?")
        }
        try await opened.shared.delete()
        try console.show(["deleted": opened.shared.id], asJSON: vault.asJSON) { "\(opened.name) is deleted\n" }
    }
}
