import CommandLineKit
import Foundation
import SalternClient
import Synchronization

struct ListDevices: Command {
    static let words = ["devices"]
    static let summary = "list the sessions of the account"
    static let example = "saltern-client devices"
    static let help = """
        \(AccountOption.help)
          --json                one object, for scripts
        """

    private struct Record: Encodable {
        let id: SessionID
        let name: String?
        let createdAt: Date
        let lastUsedAt: Date
        let expiresAt: Date
        let current: Bool

        init(_ session: SessionDescription) {
            id = session.id
            name = session.device?.name
            createdAt = session.createdAt
            lastUsedAt = session.lastUsedAt
            expiresAt = session.expiresAt
            current = session.current
        }
    }

    private let account: AccountOption
    private let asJSON: Bool

    init(_ arguments: inout Arguments) throws(UsageError) {
        asJSON = arguments.flag("--json")
        account = try AccountOption(&arguments)
    }

    func run(_ console: Console) async throws {
        let devices = try await account.open(console).vault.sessions().map(Record.init)
        try console.show(["devices": devices], asJSON: asJSON) {
            var table = Table([.text("id"), .text("device"), .text("since"), .text("last used"), .text("")])
            for device in devices {
                table.append([
                    device.id.description, device.name, device.createdAt.shown, device.lastUsedAt.shown,
                    device.current ? "this one" : "",
                ])
            }
            return table.takeText()
        }
    }
}

struct EndDevice: Command {
    static let words = ["devices", "end"]
    static let summary = "end the session of a device, or all other sessions"
    static let usage = ["ID [OPTIONS]", "--others [OPTIONS]"]
    static let example = "saltern-client devices end --others"
    static let help = """
        \(AccountOption.help)
          --others              all sessions but this one
          --json                one object, for scripts

        The device keeps its data and keys. For a lost device, use `saltern-client
        devices lost NAME`.
        """

    private let account: AccountOption
    private let id: SessionID?
    private let asJSON: Bool

    init(_ arguments: inout Arguments) throws(UsageError) {
        asJSON = arguments.flag("--json")
        account = try AccountOption(&arguments)
        if arguments.flag("--others") {
            id = nil
            return
        }
        guard let id = SessionID(try arguments.word("the session's ID, or --others")) else {
            throw UsageError(message: "a session's ID is 36 characters, as saltern-client devices shows it")
        }
        self.id = id
    }

    func run(_ console: Console) async throws {
        let vault = try await account.open(console).vault
        var count = 1
        if let id { try await vault.endSession(id) } else { count = try await vault.endOtherSessions() }
        try console.show(["ended": count], asJSON: asJSON) {
            "\(counted(count, "session has", "sessions have")) ended\n"
        }
    }
}

struct LoseDevice: Command {
    static let words = ["devices", "lost"]
    static let summary = "shut out a lost device"
    static let usage = ["NAME [OPTIONS]"]
    static let example = "saltern-client devices lost phone"
    static let help = """
        \(AccountOption.help)
          --password-file FILE  file with the present password as first line (-: stdin)
          --new-password-file FILE
                                file with the new password as first line (-: stdin)
          --json                one object, for scripts

        NAME is the device's name or its session's ID, from `saltern-client devices`.
        Changes the password, ends all other sessions, re-encrypts everything with a
        new key, and prints a new recovery code if there was one. The lost device keeps
        its data and receives nothing new.

        After an error, run the command again: the message names the valid password.
        Other devices log in again with the new password, and lose no unsent changes.
        """

    private struct Record: Encodable {
        let ended: [SessionID]
        let code: String?
    }

    private let account: AccountOption
    private let name: String
    private let current: PasswordOption
    private let new: PasswordOption
    private let asJSON: Bool

    init(_ arguments: inout Arguments) throws(UsageError) {
        asJSON = arguments.flag("--json")
        current = try PasswordOption(&arguments)
        new = try PasswordOption(&arguments, "--new-password-file")
        account = try AccountOption(&arguments)
        name = try arguments.word("the device's NAME, or its session's ID")
    }

    func run(_ console: Console) async throws {
        let account = try await account.open(console)
        let vault = account.vault
        let sessions = try await vault.sessions()
        let lost = sessions.filter { $0.device?.name == name || $0.id == SessionID(name) }
        if !lost.isEmpty, lost.allSatisfy(\.current) {
            throw CommandFailure(
                "that is this device: run the command on another one", status: 1, code: "this_device")
        }
        let password = try current.read("Present password of \(account.profile.userid)")
        let newPassword = try new.readNew("New password")
        let passkeys = try await vault.passkeys().filter(\.unlocks).map(\.name)
        let isChanged = Mutex(false)
        let code: RecoveryCode?
        do {
            code = try await console.showingProgress(of: vault) {
                try await vault.shutOutLostDevice(password: password, newPassword: newPassword) {
                    isChanged.withLock { $0 = true }
                }
            }
        } catch let error as VaultError where isChanged.withLock({ $0 }) {
            guard let failure = Explanation.explain(error) else { throw error }
            throw CommandFailure(
                failure.messages + [
                    "the new password is in force and other sessions have ended, but the key or the printed code is the "
                        + "previous one: run the command again with the new password as the present one"
                ],
                status: failure.status, code: failure.code)
        }
        let ended = lost.filter { !$0.current }.map(\.id)
        try console.showOnce(Record(ended: ended, code: code?.text), asJSON: asJSON) {
            let known = ended.isEmpty ? "no session had this name; " : ""
            return known + "the password and the key are new; all other sessions have ended\n"
                + passkeys.map { "the passkey \(VisibleText.visible($0)) was removed: delete it in the security key\n" }
                .joined()
                + (code.map { "new printed code, the previous one is invalid: \($0.text)\n" } ?? "")
        }
        try await VaultFindings.checkKeys(in: vault)
    }
}
