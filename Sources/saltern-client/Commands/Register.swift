import CommandLineKit
import SalternClient

struct Register: Command {
    static let words = ["register"]
    static let summary = "create an account on a server"
    static let example = "saltern-client register --server https://api.example.org --userid ada"
    static let help = """
        \(FirstContact.help)
        \(PasswordOption.help)
          --invite-file FILE    file with the invite as first line, where the server
                                requires one
          --json                one object, for scripts

        \(FirstContact.trust)

        The password never leaves this device and cannot be reset: see `saltern-client
        recovery create`.
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
