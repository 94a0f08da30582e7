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

struct ChangePassword: Command {
    static let words = ["password"]
    static let summary = "change the password"
    static let example = "saltern-client password"
    static let help = """
        \(AccountOption.help)
          --password-file FILE  file with the present password as first line (-: stdin)
          --new-password-file FILE
                                file with the new password as first line (-: stdin)
          --json                one object, for scripts

        All other sessions end. Items and the recovery code do not change. Other
        devices log in again, and lose no unsent changes.
        """

    private struct Record: Encodable {
        let changed: Bool
        let notices: [NoticeRecord]
    }

    private let account: AccountOption
    private let current: PasswordOption
    private let new: PasswordOption
    private let asJSON: Bool

    init(_ arguments: inout Arguments) throws(UsageError) {
        asJSON = arguments.flag("--json")
        current = try PasswordOption(&arguments)
        new = try PasswordOption(&arguments, "--new-password-file")
        account = try AccountOption(&arguments)
    }

    func run(_ console: Console) async throws {
        let account = try await account.open(console)
        let current = try current.read("Present password of \(account.profile.userid)")
        let known = try await account.vault.notices()
        try await account.vault.changePassword(from: current, to: try new.readNew("New password"))
        let stopped = try await StoppedPasskeys(in: account.vault, except: known)
        try console.show(Record(changed: true, notices: stopped.notices), asJSON: asJSON) {
            "the password is changed; all other sessions have ended\n" + stopped.lines
        }
    }
}

struct ChangeUserid: Command {
    static let words = ["userid"]
    static let summary = "change the userid"
    static let usage = ["USERID [OPTIONS]"]
    static let example = "saltern-client userid ada@example.net"
    static let help = """
        \(AccountOption.help)
        \(PasswordOption.help)
          --json                one object, for scripts

        All other sessions end. Password, items and unsent changes stay. Other devices
        log in again with the new userid. The account keeps its local name.
        """

    private struct Record: Encodable {
        let userid: String
        let notices: [NoticeRecord]
    }

    private let proof: ProvenCommand
    private let userid: String

    init(_ arguments: inout Arguments) throws(UsageError) {
        proof = try ProvenCommand(&arguments)
        userid = try arguments.word("the new userid")
    }

    func run(_ console: Console) async throws {
        let stopped = try await proof.withAccount(console) { account, password in
            let known = try await account.vault.notices()
            try await account.vault.changeUserid(to: userid, password: password)
            var profile = try account.profiles.profile(account.name) ?? account.profile
            profile.userid = userid
            try account.profiles.save(profile, account.name)
            return try await StoppedPasskeys(in: account.vault, except: known)
        }
        try console.show(Record(userid: userid, notices: stopped.notices), asJSON: proof.asJSON) {
            "the userid is \(VisibleText.visible(userid)); all other sessions have ended\n" + stopped.lines
        }
    }
}

struct RotateKeys: Command {
    static let words = ["rotate"]
    static let summary = "re-encrypt everything with a new key"
    static let example = "saltern-client rotate"
    static let help = """
        \(AccountOption.help)
        \(PasswordOption.help)
          --json                one object, for scripts

        For a key that may have leaked. Password and recovery code stay, and all other
        sessions end. Everything changes at once: Ctrl-C before that leaves everything
        unchanged. Deleted content can no longer be restored from the server. The keys
        of shared vaults are replaced, too; the status is 2 where that must be repeated.

        The recovery code still trusts the old keys: each command reports this until
        `recovery create` or `recovery remove`. After the loss of a device the password
        must change, too: see `saltern-client devices lost`.
        """

    private struct Record: Encodable {
        let findings: Findings

        private enum CodingKeys: CodingKey {
            case rotated
        }

        func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: CodingKeys.self)
            try container.encode(true, forKey: .rotated)
            try findings.encode(to: encoder)
        }
    }

    private let proof: ProvenCommand

    init(_ arguments: inout Arguments) throws(UsageError) { proof = try ProvenCommand(&arguments) }

    func run(_ console: Console) async throws {
        let (findings, vault) = try await proof.withAccount(console) { account, password in
            let findings = try await Findings.gather(in: account.vault, except: account.vault.notices()) {
                try await console.showingProgress(of: account.vault) {
                    try await account.vault.rotateKeys(password: password)
                }
            }
            return (findings, account.vault)
        }
        try console.show(Record(findings: findings), asJSON: proof.asJSON) {
            "everything is re-encrypted; all other sessions have ended\n" + findings.lines
        }
        try await VaultFindings.checkKeys(in: vault)
        try findings.end()
    }
}

struct LeaveServer: Command {
    static let words = ["leave"]
    static let summary = "delete the account, on the server and here"
    static let example = "saltern-client leave"
    static let help = """
        \(AccountOption.help)
        \(PasswordOption.help)
          --yes                 does not ask, for scripts
          --discard-unsent      also with unsent changes, which are lost
          --delete-vaults       also deletes the account's own shared vaults, for all
                                members; others stay
          --json                one object, for scripts

        This cannot be undone. Run `saltern-client export` first. An account that owns
        shared vaults hands them over first, or deletes them.
        """

    private let proof: ProvenCommand
    private let isConfirmed: Bool
    private let discardsUnsent: Bool
    private let deletesVaults: Bool

    init(_ arguments: inout Arguments) throws(UsageError) {
        isConfirmed = arguments.flag("--yes")
        discardsUnsent = arguments.flag("--discard-unsent")
        deletesVaults = arguments.flag("--delete-vaults")
        proof = try ProvenCommand(&arguments)
    }

    func run(_ console: Console) async throws {
        let name = try await proof.withAccount(console) { account, password in
            if !isConfirmed {
                let count = try await account.vault.collectionCounts().values.reduce(0, +)
                let owned = deletesVaults ? try await account.vault.shared.all().filter(\.isOwner) : []
                try console.confirm(
                    "Delete \(account.profile.userid) with \(counted(count, "item"))"
                        + (owned.isEmpty ? "" : " and the shared vaults \(owned.map(\.name).joined(separator: ", "))")
                        + " for good?")
            }
            try await account.vault.leave(
                password: password, discardingUnsentEdits: discardsUnsent, deletingVaults: deletesVaults)
            await account.removeFiles()
            return account.name.description
        }
        try console.show(["left": name], asJSON: proof.asJSON) {
            VisibleText.visible(name) + " is deleted, on the server and here\n"
        }
    }
}
