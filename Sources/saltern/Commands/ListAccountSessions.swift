import CommandLineKit
import HTTPCore
import Postgres
import SalternServer

struct ListAccountSessions: Command {
    static let words = ["account", "sessions"]
    static let summary = "list the live sessions of an account, oldest first"
    static let usage = ["USERID [OPTIONS]", "--id ACCOUNT [OPTIONS]"]
    static let example = "saltern account sessions ada@example.org"
    static let help = """
          --id ACCOUNT     the account's id, instead of a userid
          --json           one object, for scripts

        SALTERN_SESSION_IDLE_TIMEOUT (30d) decides which sessions are live: set it as
        for the server. The last use has a resolution of one minute. `saltern account
        end-sessions` ends all of them.

        \(DatabaseCommand.ownerHelp)
        """

    private let account: AccountReference
    private let asJSON: Bool

    init(_ arguments: inout Arguments) throws(UsageError) {
        asJSON = arguments.flag("--json")
        account = try arguments.account()
    }

    func run(_ console: Console) async throws {
        let policy = try SessionPolicy(console)
        let sessions = try await DatabaseCommand.asOwner(console) { [account] in
            try await AccountInspection(database: $0, sessions: policy)
                .sessions(account, now: try await DatabaseClock.now(of: $0))
        }
        guard !asJSON else { return console.printJSON { write(sessions, to: &$0) } }
        var table = Table([.text("session"), .text("device"), .text("created"), .text("last use"), .text("expires")])
        for session in sessions {
            table.append([
                "\(session.id)", session.deviceName, session.createdAt.shown, session.lastUsedAt.shown,
                session.expiresAt.shown,
            ])
        }
        console.write(table.takeText())
    }

    private func write(_ sessions: [AccountSession], to writer: inout JSONWriter) {
        writer.array("sessions") { writer in
            for session in sessions {
                writer.object { writer in
                    writer.member("sessionId", "\(session.id)")
                    writer.member("deviceName", session.deviceName)
                    writer.member("createdAt", session.createdAt.utc)
                    writer.member("lastUsedAt", session.lastUsedAt.utc)
                    writer.member("expiresAt", session.expiresAt.utc)
                }
            }
        }
    }
}
