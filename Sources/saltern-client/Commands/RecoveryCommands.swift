import CommandLineKit
import SalternClient

struct CreateRecoveryCode: Command {
    static let words = ["recovery", "create"]
    static let summary = "create a recovery code to print"
    static let example = "saltern-client recovery create"
    static let help = """
        \(AccountOption.help)
        \(PasswordOption.help)
          --json                one object, for scripts

        The code sets a new password when this one is forgotten. It is shown once:
        store it offline, in a safe place. An earlier code becomes invalid.
        """

    private let proof: ProvenCommand

    init(_ arguments: inout Arguments) throws(UsageError) { proof = try ProvenCommand(&arguments) }

    func run(_ console: Console) async throws {
        let code = try await proof.withAccount(console) { try await $0.vault.makeRecoveryCode(password: $1) }
        try console.showOnce(["code": code.text], asJSON: proof.asJSON) { "\(code.text)\n" }
    }
}

struct UseRecoveryCode: Command {
    static let words = ["recovery", "use"]
    static let summary = "set a new password with the recovery code"
    static let example = "saltern-client recovery use --server https://api.example.org --userid ada"
    static let help = """
        \(FirstContact.help)
          --new-password-file FILE
                                file with the new password as first line (-: stdin)
          --recovery-file FILE  file with the recovery code as first line (-: stdin)
          --restore-keyring     restores a keyring that the server has kept, where the
                                code does not open the present one because a stolen
                                session has replaced it
          --json                one object, for scripts

        \(FirstContact.trust)

        All sessions end. An account with a second factor still needs its code: log in
        afterwards.
        """

    private let contact: FirstContact
    private let code: SecretOption
    private let password: PasswordOption
    private let restoresKeyring: Bool
    private let asJSON: Bool

    init(_ arguments: inout Arguments) throws(UsageError) {
        asJSON = arguments.flag("--json")
        restoresKeyring = arguments.flag("--restore-keyring")
        contact = try FirstContact(&arguments)
        code = try SecretOption("--recovery-file", &arguments)
        password = try PasswordOption(&arguments, "--new-password-file")
    }

    func run(_ console: Console) async throws {
        let account = try await arrive(console)
        // That of the recovery itself is new.
        let known = try await account.vault.notices().filter { $0.kind != .passkeysStoppedUnlocking }
        let findings = try await SyncFindings.gather(in: account.vault, except: known) {
            try await console.showingProgress(of: account.vault) { try await account.vault.sync() }
        }
        try console.show(LogIn.Record(account, findings), asJSON: asJSON) {
            "\(account.name.shown) has a new password, and is logged in\n" + findings.lines
        }
        try findings.end()
    }

    /// Sets the new password and logs in. Password and code are zeroed when this returns, because the rest does not
    /// need them.
    private func arrive(_ console: Console) async throws -> OpenAccount {
        let place = try await contact.place(console)
        guard let code = RecoveryCode(try code.text("Printed code")) else { throw VaultError.malformedRecoveryCode }
        let password = try password.readNew("New password for \(place.profile.userid)")
        do {
            return try await place.arrive { settings in
                try await Vault.recover(
                    settings, userid: place.profile.userid, code: code, newPassword: password,
                    restoringKeyring: restoresKeyring)
            }
        } catch VaultError.codeRequired {
            throw CommandFailure(
                "the new password is set; the account has a second factor: log in with its code",
                status: ExitStatus.denied, code: "code_required")
        } catch VaultError.passkeyRequired {
            throw CommandFailure(
                "the new password is set; the account has a passkey as second factor: log in with it",
                status: ExitStatus.denied, code: "passkey_required")
        }
    }
}

struct RemoveRecoveryCode: Command {
    static let words = ["recovery", "remove"]
    static let summary = "revoke the recovery code"
    static let example = "saltern-client recovery remove"
    static let help = """
        \(AccountOption.help)
        \(PasswordOption.help)
          --json                one object, for scripts

        From then on a new password needs the present one. Items do not change.
        """

    private let proof: ProvenCommand

    init(_ arguments: inout Arguments) throws(UsageError) { proof = try ProvenCommand(&arguments) }

    func run(_ console: Console) async throws {
        try await proof.withAccount(console) { try await $0.vault.removeRecoveryCode(password: $1) }
        try console.show(["removed": true], asJSON: proof.asJSON) { "the printed code is revoked\n" }
    }
}
