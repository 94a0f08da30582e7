import CommandLineKit
import SalternClient

struct LogIn: Command {
    static let words = ["login"]
    static let summary = "log in to an account"
    static let example = "saltern-client login --server https://api.example.org --userid ada"
    static let help = """
        \(FirstContact.help)
        \(PasswordOption.help)
          --code-file FILE      file with a code of the second factor, or one of its
                                recovery codes, as first line (-: stdin)
        \(SecurityKeyOption.help)
          --passkey             logs in with a passkey that unlocks, without userid and
                                password; a new account needs --account NAME
          --restore-keyring     restores the keyring, see below
          --json                one object, for scripts

        \(FirstContact.trust)

        A passkey as second factor is used when a USB security key is plugged in.

        Fetches everything once. Earlier unsent changes are still there and are sent.
        After an error of a shared vault the exit status is that of `sync`.

        --restore-keyring uploads the keyring of this device in place of an older one on
        the server. Use it only when the operator confirms that the database was
        restored. Then run `saltern-client rotate`. Until then, data sealed with an
        older key is accepted. It is rejected if the password has changed since and
        keys were rotated: export, log out, log in and import instead. The option also
        restores a keyring that the server has kept, where the present one does not
        open because a stolen session has replaced it.
        """

    /// The output of a command that adds an account.
    struct Record: Encodable {
        let account: String
        let userid: String
        let server: String
        let findings: SyncFindings?

        private enum CodingKeys: CodingKey {
            case account, userid, server, vaults
        }

        init(_ account: OpenAccount, _ findings: SyncFindings? = nil) {
            self.account = account.name.description
            userid = account.profile.userid
            server = account.profile.server
            self.findings = findings
        }

        func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: CodingKeys.self)
            try container.encode(account, forKey: .account)
            try container.encode(userid, forKey: .userid)
            try container.encode(server, forKey: .server)
            try container.encodeIfPresent(findings?.vaults, forKey: .vaults)
            try findings?.account.encode(to: encoder)
        }
    }

    private let contact: FirstContact
    private let password: PasswordOption
    private let code: SecretOption
    private let key: SecurityKeyOption
    private let usesPasskey: Bool
    private let restoresKeyring: Bool
    private let asJSON: Bool

    init(_ arguments: inout Arguments) throws(UsageError) {
        asJSON = arguments.flag("--json")
        restoresKeyring = arguments.flag("--restore-keyring")
        usesPasskey = arguments.flag("--passkey")
        key = try SecurityKeyOption(&arguments)
        contact = try FirstContact(&arguments)
        password = try PasswordOption(&arguments)
        code = try SecretOption("--code-file", &arguments)
        if usesPasskey && restoresKeyring {
            throw UsageError(message: "--restore-keyring needs the password: it excludes --passkey")
        }
    }

    func run(_ console: Console) async throws {
        let account = try await arrive(console)
        // Notices of the log-in itself are new.
        let own: Set<Notice.Kind> = [.recoveryRemoved, .passkeysStoppedUnlocking]
        let known = try await account.vault.notices().filter { !own.contains($0.kind) }
        let findings = try await SyncFindings.gather(in: account.vault, except: known) {
            try await console.showingProgress(of: account.vault) { try await account.vault.sync() }
        }
        try console.show(Record(account, findings), asJSON: asJSON) {
            "\(account.name.shown) is logged in\n" + findings.lines
        }
        try findings.end()
    }

    /// Logs in. The password is zeroed when this returns, because the possibly long rest does not need it.
    private func arrive(_ console: Console) async throws -> OpenAccount {
        if usesPasskey { return try await arriveByPasskey(console) }
        let place = try await contact.place(console, allowsRename: true)
        let password = try password.read("Password of \(place.profile.userid)")
        return try await place.arrive { try await logIn($0, place, password, console) }
    }

    private func arriveByPasskey(_ console: Console) async throws -> OpenAccount {
        let place = try await contact.place(console, allowsRename: true, needsUserid: false)
        let authenticator = key.authenticator(console)
        return try await place.arrive { settings in
            guard let vault = try await Vault.resume(settings) else {
                return try await Vault.logIn(settings, passkey: authenticator)
            }
            try await vault.logInAgain(passkey: authenticator)
            return vault
        }
    }

    private func logIn(
        _ settings: VaultSettings, _ place: FirstContact.Place, _ password: Password, _ console: Console
    ) async throws -> Vault {
        do {
            return try await logIn(settings, place, password, code: code.isGiven ? try code.text("Code") : nil)
        } catch VaultError.unsentEdits(let count) {
            throw CommandFailure(
                counted(count, "change", "changes")
                    + " of this device cannot be opened with this password: open the store "
                    + "with the one of before, saltern-client unlock, and log in again", status: ExitStatus.attention,
                code: "unsent_changes")
        } catch VaultError.codeRequired where console.isTerminal {
            return try await logIn(settings, place, password, code: try code.text("Code of the second factor"))
        } catch VaultError.passkeyRequired(let orCode) {
            do {
                return try await logIn(settings, place, password, code: nil, key.authenticator(console))
            } catch VaultError.passkey(.noAuthenticator) where orCode && console.isTerminal {
                return try await logIn(settings, place, password, code: try code.text("Code of the second factor"))
            }
        }
    }

    private func logIn(
        _ settings: VaultSettings, _ place: FirstContact.Place, _ password: Password, code: String?,
        _ authenticator: (any PasskeyAuthenticator)? = nil
    ) async throws -> Vault {
        let userid = place.profile.userid
        guard let vault = try await Vault.resume(settings) else {
            return try await Vault.logIn(
                settings, userid: userid, password: password, code: code, restoringKeyring: restoresKeyring,
                passkey: authenticator)
        }
        try await vault.logInAgain(
            password: password, code: code, userid: place.isRenamed ? userid : nil, restoringKeyring: restoresKeyring,
            passkey: authenticator)
        return vault
    }
}

struct UnlockStore: Command {
    static let words = ["unlock"]
    static let summary = "open this device's store with the password, offline"
    static let example = "saltern-client unlock"
    static let help = """
        \(AccountOption.help)
        \(PasswordOption.help)
          --json                one object, for scripts

        For a store whose device key is lost or damaged. Use the latest password of this
        device. Items and unsent changes are available again, and `saltern-client login`
        opens a new session. If another device has changed password and key, unlock
        with the earlier password, then log in with the new one.
        """

    private struct Record: Encodable {
        let account: String
        let unsent: Int
    }

    private let account: AccountOption
    private let password: PasswordOption
    private let asJSON: Bool

    init(_ arguments: inout Arguments) throws(UsageError) {
        asJSON = arguments.flag("--json")
        account = try AccountOption(&arguments)
        password = try PasswordOption(&arguments)
    }

    func run(_ console: Console) async throws {
        let account = try await account.open(console)
        if await account.vault.isLocked {
            try await account.vault.unlock(try password.read("Password of \(account.profile.userid)"))
        }
        let unsent = try await OwnedItems(account.vault).unsentCountOfAll()
        try console.show(Record(account: account.name.description, unsent: unsent), asJSON: asJSON) {
            "\(account.name.shown) is open; \(counted(unsent, "change is", "changes are")) not sent\n"
        }
    }
}

struct LogOut: Command {
    static let words = ["logout"]
    static let summary = "end the session and remove the account from this device"
    static let example = "saltern-client logout"
    static let help = """
        \(AccountOption.help)
          --discard-unsent      also with unsent changes, which are lost
          --forget-deletions    also with deletions that wait for --allow-deletions; the
                                next sync of the folder uploads those files again
          --json                one object, for scripts

        Local data is removed first. The server then has three seconds to end the
        session. Without network the session ends after its idle time.
        """

    private struct Record: Encodable {
        let loggedOut: String
        /// True when the server has ended the session.
        let sessionEnded: Bool
    }

    private let account: AccountOption
    private let discardsUnsent: Bool
    private let forgetsDeletions: Bool
    private let asJSON: Bool

    init(_ arguments: inout Arguments) throws(UsageError) {
        asJSON = arguments.flag("--json")
        discardsUnsent = arguments.flag("--discard-unsent")
        forgetsDeletions = arguments.flag("--forget-deletions")
        account = try AccountOption(&arguments)
    }

    func run(_ console: Console) async throws {
        let account = try await account.open(console)
        let session = try await signOut(account.vault)
        await account.removeFiles()
        let record = Record(loggedOut: account.name.description, sessionEnded: session == .ended)
        try console.show(record, asJSON: asJSON) {
            "\(account.name.shown) is logged out\n"
                + (record.sessionEnded
                    ? ""
                    : "the server did not answer: the unused session expires later\n")
        }
    }

    private func signOut(_ vault: Vault) async throws -> Vault.SessionEnd {
        do {
            return try await vault.signOut(
                discardingUnsentEdits: discardsUnsent, forgettingHeldDeletions: forgetsDeletions)
        } catch VaultError.deletionsHeld {
            throw try await Self.deletionsHeld(in: vault)
        }
    }

    private static func deletionsHeld(in vault: Vault) async throws -> CommandFailure {
        let owners = try await OwnedItems(vault).ownersHoldingDeletions()
        // A locked vault does not name the shared ones.
        let all = await vault.isLocked ? [] : try await vault.shared.all()
        let shared = all.filter { owners.contains(.vault($0.id)) }
        return CommandFailure(
            hints(isAccountHeld: owners.contains(.account), shared.map(\.name)), status: ExitStatus.attention,
            code: "deletions_held")
    }

    /// Returns the messages about held deletions.
    /// - Parameter vaults: The names of the shared vaults with held deletions.
    static func hints(isAccountHeld: Bool, _ vaults: [String]) -> [String] {
        func hint(_ place: String, _ option: String) -> String {
            "deletions\(place) wait for confirmation: use sync\(option) --allow-deletions, "
                + "for a folder sync DIR\(option) --allow-deletions, or see --forget-deletions"
        }
        let hints = vaults.map { hint(" in the shared vault \(VisibleText.visible($0))", " --vault NAME") }
        return (isAccountHeld || vaults.isEmpty ? [hint("", "")] : []) + hints
    }
}
