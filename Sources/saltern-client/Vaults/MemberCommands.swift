import CommandLineKit
import SalternClient

struct RemoveMembers: Command {
    static let words = ["vault", "remove"]
    static let summary = "remove members from a shared vault"
    static let usage = ["VAULT MEMBER… [OPTIONS]"]
    static let example = "saltern-client vault remove household Mallory"
    static let help = """
        \(AccountOption.help)
          --without-key         also if this device lacks the vault's key; new members
                                then wait for a manager who has it
          --json                one object, for scripts

        The vault gets a new key, which removed members do not receive, and all open
        invitations end. They keep what they have read. After an interruption repeat the
        command; the next sync of any manager also completes it.
        \(MemberReference.help)
        \(VaultReference.help)
        """

    private let vault: NamedVault
    private let members: [MemberReference]
    private let replacesKey: Bool

    init(_ arguments: inout Arguments) throws(UsageError) {
        replacesKey = arguments.flag("--without-key")
        vault = try NamedVault(&arguments)
        var members = [MemberReference(try arguments.word("the member"))]
        while let word = try arguments.optionalWord() { members.append(MemberReference(word)) }
        self.members = members
    }

    func run(_ console: Console) async throws {
        let opened = try await vault.fetch(console)
        // All members are found before the first is removed.
        let found = try members.map { member in try member.find(in: opened.shared) }
        try await console.showingProgress(of: opened.account.vault) {
            try await opened.shared.remove(Set(found.map(\.id)), replacingMissingKey: replacesKey)
        }
        try console.show(["removed": found.map(\.id)], asJSON: vault.asJSON) {
            found.map { "\(VisibleText.visible($0.distinctName)) is removed from \(opened.name)\n" }.joined()
        }
    }
}

struct ChangeRole: Command {
    static let words = ["vault", "role"]
    static let summary = "change the role of a member"
    static let usage = ["VAULT MEMBER ROLE [OPTIONS]"]
    static let example = "saltern-client vault role household Carol writer"
    static let help = """
        \(AccountOption.help)
          --json                one object, for scripts

        ROLE is reader, writer or manager. A lower role ends all open invitations, and
        the member's unsent changes go to the trash of its devices.
        \(RoleWord.help)
        \(MemberReference.help)
        \(VaultReference.help)
        """

    private struct Record: Encodable {
        let member: MemberID
        let role: String
    }

    private let vault: NamedVault
    private let member: MemberReference
    private let role: SharedRole

    init(_ arguments: inout Arguments) throws(UsageError) {
        vault = try NamedVault(&arguments)
        member = MemberReference(try arguments.word("the member"))
        role = try RoleWord.role(try arguments.word("the role"))
    }

    func run(_ console: Console) async throws {
        let opened = try await vault.fetch(console)
        let found = try member.find(in: opened.shared)
        if found.role != role { try await opened.shared.setRole(found.id, to: role) }
        try console.show(Record(member: found.id, role: role.rawValue), asJSON: vault.asJSON) {
            "\(VisibleText.visible(found.distinctName)) is \(role.rawValue) of \(opened.name)\n"
        }
    }
}

struct LeaveVault: Command {
    static let words = ["vault", "leave"]
    static let summary = "leave a shared vault"
    static let usage = ["VAULT [OPTIONS]"]
    static let example = "saltern-client vault leave household"
    static let help = """
        \(AccountOption.help)
          --yes                 does not ask, for scripts
          --forget              also removes its items and keys from this device;
                                afterwards alone, if the membership has ended
          --discard-unsent      also with unsent changes, which others do not receive
          --json                one object, for scripts

        Your items stay in the vault. Only a new invitation lets you return. Without
        --forget, fetched items stay readable on this device. The owner cannot leave:
        see `saltern-client vault hand-over` and `delete`.
        \(VaultReference.help)
        """

    private let vault: NamedVault
    private let isConfirmed: Bool
    private let forgets: Bool
    private let discardsUnsent: Bool

    init(_ arguments: inout Arguments) throws(UsageError) {
        isConfirmed = arguments.flag("--yes")
        forgets = arguments.flag("--forget")
        discardsUnsent = arguments.flag("--discard-unsent")
        vault = try NamedVault(&arguments)
    }

    func run(_ console: Console) async throws {
        var opened = try await vault.find(console)
        if opened.shared.role != nil {
            opened = try await opened.refreshed()
            if opened.shared.isOwner { throw VaultError.shared(.ownerProtected) }
            if !isConfirmed { try console.confirm("Leave \(opened.shared.name)?") }
            try await opened.shared.leave(discardingUnsentEdits: discardsUnsent)
        }
        if forgets { try await opened.present().forget(evenAsMember: discardsUnsent) }
        try console.show(["left": opened.shared.id], asJSON: vault.asJSON) { "\(opened.name) is left\n" }
    }
}
