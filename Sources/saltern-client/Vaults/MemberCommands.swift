import CommandLineKit
import Foundation
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
          --forget              also removes its items and keys from your devices
                                without unsent changes; afterwards alone, if the
                                membership has ended
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

struct ListMembers: Command {
    static let words = ["vault", "members"]
    static let summary = "list the members of a shared vault"
    static let usage = ["VAULT [OPTIONS]"]
    static let example = "saltern-client vault members household --verify"
    static let help = """
        \(AccountOption.help)
          --verify              words to compare by voice, and the last state that each
                                member's device has confirmed
          --json                one object, for scripts

        Members choose their names. The label is the note of the invitation by which
        they joined. A server can show different members to different people, who notice
        it when they compare words. The four words of a member are those that it read
        out after joining. The twelve words of the vault are equal on all devices that
        have synced since the last change.
        \(VaultReference.help)
        """

    private struct Record: Encodable {
        struct Seen: Encodable {
            let entry: Int
            let known: Bool
        }

        let id: MemberID
        /// The name that the member claims.
        let name: String?
        let role: String
        let owner: Bool
        /// True for the member of this account.
        let own: Bool
        let since: Date
        let label: String?
        /// True when the server reports that the account no longer exists.
        let departed: Bool
        let words: [String]
        let seen: Seen?

        init(_ member: SharedMember) {
            id = member.id
            name = member.name
            role = member.role.rawValue
            owner = member.isOwner
            own = member.isOwn
            since = member.since
            label = member.label
            departed = member.isDeparted
            words = member.words
            seen = member.seen.map { Seen(entry: $0.number, known: $0.isKnown) }
        }
    }

    private struct Unsealed: Encodable {
        let id: MemberID
        let name: String?
    }

    private struct List: Encodable {
        let vault: SharedVaultID
        let entries: Int
        let words: [String]
        let members: [Record]
        /// The former writers whose edits wait for a seal.
        let unsealed: [Unsealed]
        let problems: [VaultProblemRecord]
    }

    private let vault: NamedVault
    private let verifies: Bool

    init(_ arguments: inout Arguments) throws(UsageError) {
        verifies = arguments.flag("--verify")
        vault = try NamedVault(&arguments)
    }

    func run(_ console: Console) async throws {
        let shared = try await vault.fetch(console).shared
        let list = List(
            vault: shared.id, entries: shared.entryCount, words: shared.verificationWords,
            members: shared.members.map(Record.init),
            unsealed: shared.unsealed.map { Unsealed(id: $0.id, name: $0.name) },
            problems: shared.problems.map(VaultProblemRecord.init))
        try console.show(list, asJSON: vault.asJSON) {
            (verifies ? Self.verification(shared) : Self.members(shared)) + shared.lines.map { $0 + "\n" }.joined()
        }
        if shared.wantsAttention { throw CommandFailure([], status: ExitStatus.attention, code: "attention") }
    }

    private static func members(_ vault: SharedVault) -> String {
        var table = Table([.text("id"), .text("role"), .text("since"), .text("label"), .text("name")])
        for member in vault.members {
            table.append([
                member.id.description, member.isOwner ? "owner" : member.role.rawValue, member.since.shown,
                member.isOwn ? "this account" : member.label, member.distinctName,
            ])
        }
        return table.takeText()
    }

    private static func verification(_ vault: SharedVault) -> String {
        var table = Table([.text("words"), .text("confirmed"), .text("name")])
        for member in vault.members {
            table.append([member.words.joined(separator: " "), member.confirmation(of: vault), member.distinctName])
        }
        return "entry \(vault.entryCount): \(vault.verificationWords.joined(separator: " "))\n" + table.takeText()
    }
}

extension SharedMember {
    /// The last state that the member's device has confirmed, for a table.
    fileprivate func confirmation(of vault: SharedVault) -> String? {
        guard let seen else { return nil }
        if !seen.isKnown { return "entry \(seen.number) of another history" }
        return seen.number >= vault.entryCount ? "this entry" : "entry \(seen.number)"
    }
}
