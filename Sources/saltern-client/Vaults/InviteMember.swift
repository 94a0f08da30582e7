import CommandLineKit
import Foundation
import SalternClient

struct InviteMember: Command {
    static let words = ["vault", "invite"]
    static let summary = "invite people to a shared vault"
    static let usage = ["VAULT [OPTIONS]"]
    static let example = "saltern-client vault invite household --role writer --label Carol"
    static let help = """
        \(AccountOption.help)
          --role ROLE           reader, writer or manager (reader)
          --uses N              number of people who can join with the link, 1 to 32 (1)
          --expires TIME        how long the link works: 12h, up to 30d (7d)
          --label TEXT          your private note about the invited person
          --no-code             a link that works without a code
          --json                one object with link and code, for scripts

        Prints a link and, on the second line, a code of six words. Send the code by
        another way than the link. The command cannot print them again. Other users of
        this machine can see the label in the list of processes.

        Anyone who has both can read the present and earlier items, and can pass them
        on. Each person who joins is a member that all others see. With --no-code, a
        dishonest server can read the vault when somebody opens the link in a browser.
        New keys, and the removal or lowering of a member, end open invitations.

        \(RoleWord.help)
        \(VaultReference.help)
        """

    private struct Record: Encodable {
        let id: InvitationID
        let link: String
        let code: String?
        let expiresAt: Date
    }

    private let vault: NamedVault
    private let role: SharedRole
    private let uses: Int
    private let lifetime: Duration
    private let label: String?
    private let code: InvitationCodeChoice

    init(_ arguments: inout Arguments) throws(UsageError) {
        let role = try arguments.option("--role")
        uses = try arguments.integer("--uses", in: 1...32) ?? 1
        lifetime =
            try arguments.duration("--expires", in: .seconds(60) ... .seconds(30 * 86_400)) ?? .seconds(7 * 86_400)
        label = try arguments.option("--label")
        code = arguments.flag("--no-code") ? .none : .generated
        vault = try NamedVault(&arguments)
        self.role = try role.map(RoleWord.role) ?? .reader
    }

    func run(_ console: Console) async throws {
        let opened = try await vault.find(console)
        guard let base = URL(string: opened.account.profile.server) else { throw VaultError.notFound }
        let new = try await opened.shared.invite(
            base: base, role: role, uses: uses, expires: lifetime, code: code, label: label)
        let record = Record(id: new.id, link: new.link, code: new.code, expiresAt: new.expiresAt)
        try console.showOnce(record, asJSON: vault.asJSON) { new.link + "\n" + (new.code.map { $0 + "\n" } ?? "") }
    }
}

struct ListInvitations: Command {
    static let words = ["vault", "invitations"]
    static let summary = "list the open invitations to a shared vault"
    static let usage = ["VAULT [OPTIONS]"]
    static let example = "saltern-client vault invitations household"
    static let help = """
        \(AccountOption.help)
          --json                one object, for scripts

        More openings of a link than joins can mean that others have it. The server
        counts them; the last sync of a manager fetched the number.
        \(VaultReference.help)
        """

    private struct Record: Encodable {
        let id: InvitationID
        let role: String
        let inviter: MemberID
        let label: String?
        let expiresAt: Date
        let uses: Int
        let joins: Int
        /// The number of times that the link was opened, as the server reports it.
        let openings: Int?
        let needsCode: Bool

        init(_ invitation: SharedInvitation) {
            id = invitation.id
            role = invitation.role.rawValue
            inviter = invitation.inviter
            label = invitation.label
            expiresAt = invitation.expiresAt
            uses = invitation.uses
            joins = invitation.joins
            openings = invitation.openings
            needsCode = invitation.needsCode
        }
    }

    private let vault: NamedVault

    init(_ arguments: inout Arguments) throws(UsageError) { vault = try NamedVault(&arguments) }

    func run(_ console: Console) async throws {
        let shared = try await vault.fetch(console).shared
        let records = shared.invitations.map(Record.init)
        try console.show(["invitations": records], asJSON: vault.asJSON) {
            var table = Table([
                .text("id"), .text("role"), .text("expires"), .number("joins"), .number("of"), .number("opened"),
                .text("inviter"), .text("label"),
            ])
            for record in records {
                table.append([
                    record.id.description, record.role, record.expiresAt.shown, String(record.joins),
                    String(record.uses), record.openings.map(String.init), shared.name(of: record.inviter),
                    record.label,
                ])
            }
            return table.takeText()
        }
    }
}

struct RevokeInvitation: Command {
    static let words = ["vault", "revoke"]
    static let summary = "revoke an invitation to a shared vault"
    static let usage = ["VAULT ID [OPTIONS]"]
    static let example = "saltern-client vault revoke household 5b1e"
    static let help = """
        \(AccountOption.help)
          --json                one object, for scripts

        ID is an invitation's id, its first characters (at least four), or its label,
        from `saltern-client vault invitations VAULT`. Earlier joins stay.
        \(VaultReference.help)
        """

    private let vault: NamedVault
    private let invitation: String

    init(_ arguments: inout Arguments) throws(UsageError) {
        vault = try NamedVault(&arguments)
        invitation = try arguments.word("the invitation's ID")
    }

    func run(_ console: Console) async throws {
        let shared = try await vault.fetch(console).shared
        let found = try NameMatch.only(
            invitation, among: shared.invitations, noun: ("invitation", "invitations"),
            id: { $0.id.description }, name: { $0.label })
        try await shared.revoke(found.id)
        try console.show(["revoked": found.id], asJSON: vault.asJSON) { "invitation \(found.id) is revoked\n" }
    }
}
