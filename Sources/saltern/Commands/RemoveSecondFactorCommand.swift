import CommandLineKit
import SalternServer

struct RemoveAccountSecondFactor: Command {
    static let words = ["account", "remove-second-factor"]
    static let summary = "remove the second factor of somebody who has lost it, with its recovery codes"
    static let help = """
        usage: saltern account remove-second-factor USERID

        \(AdminActor.help)

        From then on the password is enough to log in: make sure who asks. The audit log and the person's security log
        say that it was done. \(DatabaseCommand.ownerHelp)
        """

    private let userid: String
    private let admin: AdminActor

    init(_ arguments: inout Arguments) throws(UsageError) {
        admin = try AdminActor(&arguments)
        userid = try arguments.word("the userid")
    }

    func run(_ console: Console) async throws {
        let actor = admin.actor(console)
        let account = try await DatabaseCommand.asOwner(console) { [userid] in
            try await SecondFactorAdministration(database: $0)
                .remove(ofUserid: userid, actor: actor, now: try await DatabaseClock.now(of: $0))
        }
        console.print("account \(account) has no second factor any more")
    }
}
