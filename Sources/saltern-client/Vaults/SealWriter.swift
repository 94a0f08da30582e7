import CommandLineKit
import SalternClient

struct SealWriter: Command {
    static let words = ["vault", "seal"]
    static let summary = "let the edits of a former writer count"
    static let usage = ["VAULT MEMBER [OPTIONS]"]
    static let example = "saltern-client vault seal household Bob"
    static let help = """
        \(AccountOption.help)
          --yes                 does not ask, for scripts
          --json                one object, for scripts

        The edits of a writer that was removed or lowered, or has left, wait until a
        manager's device that had them syncs. Without such a device, a manager can let
        them count. The command shows their number, and the number of those that this
        device did not have before. Only the server states that these are not later
        edits: together with it, a former writer can add some. Edits that arrive after
        the question do not count.

        MEMBER is a former writer's id, its first characters (at least four), or its
        name, from `saltern-client vault list`.
        \(VaultReference.help)
        """

    private struct Record: Encodable {
        let sealed: MemberID
        let edits: Int
        /// The edits that this device did not have before the writer was cut off.
        let unseen: Int
        /// False when this device lacks keys, and has left out the edits that it cannot open.
        let complete: Bool
    }

    private let vault: NamedVault
    private let member: String
    private let isConfirmed: Bool

    init(_ arguments: inout Arguments) throws(UsageError) {
        isConfirmed = arguments.flag("--yes")
        vault = try NamedVault(&arguments)
        member = try arguments.word("the former writer")
    }

    func run(_ console: Console) async throws {
        let opened = try await vault.fetch(console)
        let writer = try NameMatch.only(
            member, among: opened.shared.unsealed,
            noun: ("former writer with waiting edits", "former writers with waiting edits"),
            id: { $0.id.description }, name: { $0.name }, isNamedByOthers: true)
        let proposal = try await console.showingProgress(of: opened.account.vault) {
            try await opened.shared.proposeSeal(of: writer.id)
        }
        if !isConfirmed {
            try console.confirm(
                "Let \(Self.edits(proposal)) of \(writer.shownName) count in \(opened.shared.name)"
                    + (proposal.isComplete ? "?" : ", without those that this device has no key for?"))
        }
        try await opened.shared.seal(proposal)
        let record = Record(
            sealed: writer.id, edits: proposal.count, unseen: proposal.unseenCount, complete: proposal.isComplete)
        try console.show(record, asJSON: vault.asJSON) {
            "\(Self.edits(proposal)) of \(VisibleText.visible(writer.shownName)) count in \(opened.name) after the "
                + "next sync\n"
        }
    }

    /// The number of edits, for a text.
    private static func edits(_ proposal: SealProposal) -> String {
        counted(proposal.count, "edit")
            + (proposal.unseenCount == 0 ? "" : " (\(proposal.unseenCount) not on this device before)")
    }
}

extension UnsealedWriter {
    /// The name with the beginning of the id: former members can have one name.
    var shownName: String { "\(name ?? "member") (\(id.description.prefix(8)))" }
}
