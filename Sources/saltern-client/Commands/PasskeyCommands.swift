import CommandLineKit
import Cryptography
import Foundation
import SalternClient

struct AddPasskey: Command {
    static let words = ["second-factor", "passkey", "add"]
    static let summary = "add a passkey of a USB security key"
    static let usage = ["NAME [OPTIONS]"]
    static let example = "saltern-client second-factor passkey add \"Blue key\" --unlock"
    static let help = """
        \(AccountOption.help)
        \(PasswordOption.help)
        \(SecurityKeyOption.help)
          --unlock              also logs in and opens the items, without userid and
                                password (saltern-client login --passkey)
          --json                one object, for scripts

        Log-ins with the password then need the key, or another second factor. With
        --unlock the key needs a PIN, and is touched twice.
        """

    private let proof: ProvenCommand
    private let key: SecurityKeyOption
    private let unlocks: Bool
    private let name: String

    init(_ arguments: inout Arguments) throws(UsageError) {
        key = try SecurityKeyOption(&arguments)
        unlocks = arguments.flag("--unlock")
        proof = try ProvenCommand(&arguments)
        name = try arguments.word("the passkey's NAME")
    }

    func run(_ console: Console) async throws {
        let added = try await proof.withAccount(console) { account, password in
            try await account.vault.addPasskey(
                name, unlocks: unlocks, password: password, with: key.authenticator(console))
        }
        try console.show(PasskeyRecord(added), asJSON: proof.asJSON) {
            "the passkey \(VisibleText.visible(added.name)) is added"
                + (added.unlocks ? ", and unlocks the account\n" : "\n")
        }
    }
}

struct ListPasskeys: Command {
    static let words = ["second-factor", "passkey", "list"]
    static let summary = "list the passkeys of the account"
    static let example = "saltern-client second-factor passkey list"
    static let help = """
        \(AccountOption.help)
          --json                one object, for scripts
        """

    private let account: AccountOption
    private let asJSON: Bool

    init(_ arguments: inout Arguments) throws(UsageError) {
        asJSON = arguments.flag("--json")
        account = try AccountOption(&arguments)
    }

    func run(_ console: Console) async throws {
        let passkeys = try await account.open(console).vault.passkeys().map(PasskeyRecord.init)
        try console.show(["passkeys": passkeys], asJSON: asJSON) {
            var table = Table([.text("id"), .text("name"), .text("added"), .text("last used"), .text("")])
            for passkey in passkeys {
                table.append([
                    String(passkey.id.prefix(12)), passkey.name, passkey.createdAt.shown,
                    passkey.lastUsedAt?.shown ?? "never", passkey.unlocks ? "unlocks" : "",
                ])
            }
            return table.takeText()
        }
    }
}

struct RenamePasskey: Command {
    static let words = ["second-factor", "passkey", "rename"]
    static let summary = "rename a passkey"
    static let usage = ["PASSKEY NAME [OPTIONS]"]
    static let example = "saltern-client second-factor passkey rename \"Blue key\" Spare"
    static let help = """
        \(AccountOption.help)
          --json                one object, for scripts

        PASSKEY is a name, or the first four or more characters of an id.
        """

    private let account: AccountOption
    private let asJSON: Bool
    private let passkey: String
    private let name: String

    init(_ arguments: inout Arguments) throws(UsageError) {
        asJSON = arguments.flag("--json")
        account = try AccountOption(&arguments)
        passkey = try arguments.word("the PASSKEY")
        name = try arguments.word("its new NAME")
    }

    func run(_ console: Console) async throws {
        let vault = try await account.open(console).vault
        let found = try await NamedPasskeys.find(passkey, in: vault)
        try await vault.renamePasskey(found.id, to: name)
        try console.show(["renamed": true], asJSON: asJSON) { "the passkey is renamed\n" }
    }
}

struct RestrictPasskey: Command {
    static let words = ["second-factor", "passkey", "restrict"]
    static let summary = "end unlocking with a passkey"
    static let usage = ["PASSKEY [OPTIONS]"]
    static let example = "saltern-client second-factor passkey restrict \"Blue key\""
    static let help = """
        \(AccountOption.help)
        \(PasswordOption.help)
          --json                one object, for scripts

        It stays a second factor, and opens sessions, but no content. PASSKEY is a
        name, or the first four or more characters of an id. To let it unlock
        again, remove it and add it. After a theft, remove it instead.
        """

    private let change: PasskeyChangeCommand

    init(_ arguments: inout Arguments) throws(UsageError) { change = try PasskeyChangeCommand(&arguments) }

    func run(_ console: Console) async throws {
        let asJSON = try await change.run(console) { vault, id, password in
            try await vault.stopPasskeyUnlocking(id, password: password)
        }
        try console.show(["restricted": true], asJSON: asJSON) { "the passkey no longer unlocks the account\n" }
    }
}

struct RemovePasskey: Command {
    static let words = ["second-factor", "passkey", "remove"]
    static let summary = "remove a passkey"
    static let usage = ["PASSKEY [OPTIONS]"]
    static let example = "saltern-client second-factor passkey remove \"Blue key\""
    static let help = """
        \(AccountOption.help)
        \(PasswordOption.help)
          --json                one object, for scripts

        PASSKEY is a name, or the first four or more characters of an id. After the
        theft of a passkey that unlocks, also run `saltern-client devices lost`.
        """

    private let change: PasskeyChangeCommand

    init(_ arguments: inout Arguments) throws(UsageError) { change = try PasskeyChangeCommand(&arguments) }

    func run(_ console: Console) async throws {
        let asJSON = try await change.run(console) { vault, id, password in
            try await vault.removePasskey(id, password: password)
        }
        try console.show(["removed": true], asJSON: asJSON) { "the passkey is removed\n" }
    }
}

/// The arguments and steps of commands that change one passkey and need the password.
private struct PasskeyChangeCommand {
    private let proof: ProvenCommand
    private let passkey: String

    init(_ arguments: inout Arguments) throws(UsageError) {
        proof = try ProvenCommand(&arguments)
        passkey = try arguments.word("the PASSKEY")
    }

    /// Changes the passkey.
    /// - Returns: True when the output is JSON.
    func run(
        _ console: Console, _ change: (Vault, Base64URLBytes, Password) async throws -> Void
    ) async throws -> Bool {
        try await proof.withAccount(console) { account, password in
            let found = try await NamedPasskeys.find(passkey, in: account.vault)
            try await change(account.vault, found.id, password)
        }
        return proof.asJSON
    }
}

/// A passkey in the output of commands.
private struct PasskeyRecord: Encodable {
    let id: String
    let name: String
    let logsIn: Bool
    let unlocks: Bool
    let deviceBound: Bool
    let backedUp: Bool
    let createdAt: Date
    let lastUsedAt: Date?

    init(_ passkey: PasskeyDescription) {
        id = Base64URL.encodeToString(passkey.id.bytes)
        name = passkey.name
        logsIn = passkey.logsIn
        unlocks = passkey.unlocks
        deviceBound = passkey.deviceBound
        backedUp = passkey.backedUp
        createdAt = passkey.createdAt
        lastUsedAt = passkey.lastUsedAt
    }
}

/// Finds a passkey by its name or by the beginning of its id.
private enum NamedPasskeys {
    static func find(_ text: String, in vault: Vault) async throws -> PasskeyDescription {
        let passkeys = try await vault.passkeys()
        let named = passkeys.filter { $0.name == text }
        let found =
            named.isEmpty && text.utf8.count >= 4
            ? passkeys.filter { Base64URL.encodeToString($0.id.bytes).hasPrefix(text) } : named
        guard let only = found.first else {
            throw CommandFailure(
                "there is no passkey \(VisibleText.visible(text))", status: ExitStatus.notFound, code: "not_found")
        }
        guard found.count == 1 else {
            throw CommandFailure(
                "\(counted(found.count, "passkey has", "passkeys have")) the name \(VisibleText.visible(text)): use an id",
                status: ExitStatus.notFound, code: "ambiguous")
        }
        return only
    }
}
