import CommandLineKit
import Foundation
import SalternClient

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

    private struct List: Encodable {
        let vault: SharedVaultID
        let entries: Int
        let words: [String]
        let members: [Record]
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
            members: shared.members.map(Record.init), problems: shared.problems.map(VaultProblemRecord.init))
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
