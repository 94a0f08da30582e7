import CommandLineKit
import Foundation
import SalternClient

struct JoinVault: Command {
    static let words = ["vault", "join"]
    static let summary = "join a shared vault with an invitation"
    static let usage = ["[LINK] --as PERSON [OPTIONS]"]
    static let example = "saltern-client vault join --as Carol --link-file link.txt"
    static let help = """
        \(AccountOption.help)
          --as PERSON           the name that other members see
        \(InvitationInput.help)
          --json                one object, for scripts

        Without LINK the command asks for it, and for the code if the link needs one. A
        link contains a secret: as an argument, other users of this machine can see it,
        and the name after --as. `saltern-client vault preview` shows the invitation.

        Prints the vault's id and four words. Read these words to the inviter: they show
        that the server has not let another person join in your place.
        """

    private struct Record: Encodable {
        let id: SharedVaultID
        let name: String
        let role: String?
        let member: MemberID?
        let words: [String]
    }

    private let account: AccountOption
    private let invitation: InvitationInput
    private let person: String
    private let asJSON: Bool

    init(_ arguments: inout Arguments) throws(UsageError) {
        asJSON = arguments.flag("--json")
        let person = try arguments.option("--as")
        account = try AccountOption(&arguments)
        invitation = try InvitationInput(&arguments)
        guard let person else { throw UsageError(message: "--as is missing: the name that other members see") }
        self.person = person
    }

    func run(_ console: Console) async throws {
        let (link, code) = try invitation.read()
        let shared = try await account.open(console).vault.shared.join(link, code: code, as: person)
        let own = shared.members.first(where: \.isOwn)
        let record = Record(
            id: shared.id, name: shared.name, role: shared.role?.rawValue, member: own?.id, words: own?.words ?? [])
        try console.show(record, asJSON: asJSON) {
            "\(shared.id)\nwords for the inviter: \(record.words.joined(separator: " "))\n"
        }
    }
}

struct PreviewVault: Command {
    static let words = ["vault", "preview"]
    static let summary = "show an invitation to a shared vault"
    static let usage = ["[LINK] [OPTIONS]"]
    static let example = "saltern-client vault preview --link-file link.txt"
    static let help = """
        \(AccountOption.help)
        \(InvitationInput.help)
          --json                one object, for scripts

        Does not use up the invitation. The names are those that the inviter has chosen.
        Without LINK the command asks for it, and for the code if the link needs one. A
        link contains a secret: as an argument, other users of this machine can see it.
        """

    private struct Record: Encodable {
        let id: SharedVaultID
        let name: String
        let inviter: String
        let role: String
        let members: Int
        let expiresAt: Date
    }

    private let account: AccountOption
    private let invitation: InvitationInput
    private let asJSON: Bool

    init(_ arguments: inout Arguments) throws(UsageError) {
        asJSON = arguments.flag("--json")
        account = try AccountOption(&arguments)
        invitation = try InvitationInput(&arguments)
    }

    func run(_ console: Console) async throws {
        let (link, code) = try invitation.read()
        let preview = try await account.open(console).vault.shared.preview(link, code: code)
        let record = Record(
            id: preview.vault, name: preview.vaultName, inviter: preview.inviterName, role: preview.role.rawValue,
            members: preview.memberCount, expiresAt: preview.expiresAt)
        try console.show(record, asJSON: asJSON) {
            var table = Table([.text("what"), .text("now")])
            table.append(["vault", record.name])
            table.append(["id", record.id.description])
            table.append(["inviter", record.inviter])
            table.append(["role", record.role])
            table.append(["members", String(record.members)])
            table.append(["expires", record.expiresAt.shown])
            return table.takeText()
        }
    }
}

/// The link of an invitation, and its code: from files, an operand, or the terminal.
struct InvitationInput {
    static let help = """
          --link-file FILE      file with the link as first line (-: stdin)
          --code-file FILE      file with the code as first line (-: stdin)
        """

    private let operand: String?
    private let link: SecretOption
    private let code: SecretOption

    /// Parses the options, and the link if it is the next operand.
    init(_ arguments: inout Arguments) throws(UsageError) {
        link = try SecretOption("--link-file", &arguments)
        code = try SecretOption("--code-file", &arguments)
        operand = try arguments.optionalWord()
        if operand != nil, link.isGiven {
            throw UsageError(message: "LINK and --link-file exclude each other")
        }
    }

    /// Reads the link, and the code if the link needs one.
    func read() throws -> (link: String, code: String?) {
        let text = try operand ?? link.text("Link")
        let needsCode = try InvitationAddress(text).needsCode
        if code.isGiven, !needsCode { throw UsageError(message: "the link needs no code: omit --code-file") }
        return (text, needsCode ? try code.text("Code, six words") : nil)
    }
}
