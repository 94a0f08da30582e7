import CommandLineKit
import HTTPCore
import Postgres
import SalternServer

struct CreateInvites: Command {
    static let words = ["invite", "create"]
    static let summary = "create invites and print their codes once"
    static let example = "saltern invite create --count 5 --expires 30d"
    static let help = """
          --count N        number of invites, 1 to 1000 (1)
          --expires TIME   how long they can be used: 12h, 30d (7d)
          --plan NAME      the plan of accounts that use them (default)
          --note TEXT      a note for admins, at most 200 characters
        \(AdminActor.help)
          --json           one object, for scripts

        Each invite opens one account where SALTERN_REGISTRATION is invite or open. Only
        a hash of the code is stored: a lost code cannot be shown again, only revoked.
        Codes that cannot be printed are not stored.

        \(DatabaseCommand.ownerHelp)
        """

    private let count: Int
    private let lifetime: Duration
    private let plan: String?
    private let note: String?
    private let actor: AdminActor
    private let asJSON: Bool

    init(_ arguments: inout Arguments) throws(UsageError) {
        asJSON = arguments.flag("--json")
        count = try arguments.integer("--count", in: 1...1_000) ?? 1
        lifetime =
            try arguments.duration("--expires", in: .seconds(60) ... .seconds(3_650 * 86_400)) ?? .seconds(7 * 86_400)
        plan = try arguments.option("--plan")
        note = try arguments.option("--note")
        if let note, !(1...InviteAdministration.Terms.noteLimit).contains(note.unicodeScalars.count) {
            throw UsageError(message: "--note must have 1 to \(InviteAdministration.Terms.noteLimit) characters")
        }
        actor = try AdminActor(&arguments)
    }

    func run(_ console: Console) async throws {
        let signature = try await actor.signature(console)
        let terms = InviteAdministration.Terms(expiresAt: signature.now + lifetime, plan: plan, note: note)
        _ = try await DatabaseCommand.asOwner(console) { [count] in
            try await InviteAdministration(database: $0).create(count, terms, by: signature) { invites in
                print(invites, terms, console)
                if console.hasLostOutput { throw CommandFailure.lostOutput }
            }
        }
    }

    private func print(_ invites: [InviteAdministration.New], _ terms: InviteAdministration.Terms, _ console: Console) {
        if asJSON {
            console.printJSON { writer in
                writer.array("invites") { writer in
                    for invite in invites {
                        writer.object { writer in
                            writer.member("id", invite.id.description)
                            writer.member("code", invite.code.text)
                            writer.member("expiresAt", terms.expiresAt.utc)
                            writer.member("plan", plan)
                            writer.member("note", note)
                        }
                    }
                }
            }
            return
        }
        var table = Table([.text("code"), .text("id"), .text("expires")])
        for invite in invites { table.append([invite.code.text, invite.id.description, terms.expiresAt.shown]) }
        console.write(table.takeText())
    }
}

struct ListInvites: Command {
    static let words = ["invite", "list"]
    static let summary = "list the invites that can be used, latest first"
    static let example = "saltern invite list --all"
    static let help = """
          --all            also used, revoked and expired invites
          --limit N        number of invites, 1 to 10000 (100)
          --json           one object, for scripts

        \(DatabaseCommand.ownerHelp)
        """

    private let includesSpent: Bool
    private let limit: Int
    private let asJSON: Bool

    init(_ arguments: inout Arguments) throws(UsageError) {
        asJSON = arguments.flag("--json")
        includesSpent = arguments.flag("--all")
        limit = try arguments.integer("--limit", in: 1...10_000) ?? 100
    }

    func run(_ console: Console) async throws {
        let now = try await DatabaseCommand.now(console)
        let invites = try await DatabaseCommand.asOwner(console) { [includesSpent, limit] in
            try await InviteAdministration(database: $0).invites(
                includingSpent: includesSpent, limit: limit, now: now)
        }
        if asJSON {
            console.printJSON { writer in
                writer.array("invites") { writer in
                    for invite in invites {
                        writer.object { writer in
                            writer.member("id", invite.id.description)
                            writer.member("state", invite.state(at: now).rawValue)
                            writer.member("createdAt", invite.createdAt.utc)
                            writer.member("expiresAt", invite.expiresAt.utc)
                            writer.member("usedAt", invite.usedAt)
                            writer.member("revokedAt", invite.revokedAt)
                            writer.member("plan", invite.plan)
                            writer.member("note", invite.note)
                        }
                    }
                }
            }
            return
        }
        var table = Table([
            .text("id"), .text("state"), .text("created"), .text("expires"), .text("plan"), .text("note"),
        ])
        for invite in invites {
            table.append([
                invite.id.description, invite.state(at: now).rawValue, invite.createdAt.shown, invite.expiresAt.shown,
                invite.plan, invite.note,
            ])
        }
        console.write(table.takeText())
    }
}

struct RevokeInvite: Command {
    static let words = ["invite", "revoke"]
    static let summary = "revoke an unused invite"
    static let usage = ["ID [OPTIONS]"]
    static let example = "saltern invite revoke 0197d6a2-5f0c-7c4e-8d7a-0e6b7f2f9a11"
    static let help = """
        \(AdminActor.help)

        `saltern invite list` shows the ID. Accounts that used the invite stay: lock or
        delete them.

        \(DatabaseCommand.ownerHelp)
        """

    private let id: InviteID
    private let actor: AdminActor

    init(_ arguments: inout Arguments) throws(UsageError) {
        actor = try AdminActor(&arguments)
        let text = try arguments.word("the invite's ID")
        guard let id = InviteID(pathParameter: text) else {
            throw UsageError(message: "an invite's ID is 36 characters, as saltern invite list shows it")
        }
        self.id = id
    }

    func run(_ console: Console) async throws {
        let signature = try await actor.signature(console)
        try await DatabaseCommand.asOwner(console) { [id] in
            try await InviteAdministration(database: $0).revoke(id, by: signature)
        }
        console.print("invite \(id) is revoked")
    }
}
