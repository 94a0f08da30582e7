import CommandLineKit
import SalternClient

struct Register: Command {
    static let words = ["register"]
    static let summary = "make a new account on a server, and use it from here"
    static let help = """
        \(FirstContact.help)
        \(PasswordOption.help)
          --invite-file FILE    the invite is the first line of this file: where the server asks for one
          --json                one object, for scripts

        \(FirstContact.trust)
        The password never leaves this device, and nobody can reset it: see saltern-client recovery create.
        """

    private let contact: FirstContact
    private let password: PasswordOption
    private let invite: SecretOption
    private let asJSON: Bool

    init(_ arguments: inout Arguments) throws(UsageError) {
        asJSON = arguments.flag("--json")
        contact = try FirstContact(&arguments)
        password = try PasswordOption(&arguments)
        invite = try SecretOption("--invite-file", &arguments)
    }

    func run(_ console: Console) async throws {
        let place = try await contact.place(console, refusesKnown: true)
        let invite = try invite.isGiven ? invite.text("Invite") : nil
        let password = try password.readNew("New password for \(place.profile.userid)")
        let account = try await place.arrive { settings in
            try await Vault.signUp(settings, userid: place.profile.userid, password: password, invite: invite)
        }
        try console.show(LogIn.Record(account), asJSON: asJSON) { "\(account.name.shown) is registered\n" }
    }
}
