import CommandLineKit
import Foundation
import SalternClient

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
