import CommandLineKit
import HTTPCore
import SalternServer

struct ShowStatistics: Command {
    static let words = ["stats"]
    static let summary = "count accounts, sessions, items, shares and bytes"
    static let example = "saltern stats --json"
    static let help = """
          --json           one object, for scripts

        Reads the tables of accounts, sessions and shares once, in one snapshot without
        locks: one or two seconds for a million accounts. Numbers and bytes of items are
        sums of the accounts' counters. SALTERN_SESSION_IDLE_TIMEOUT (30d) decides which
        sessions are live: set it as for the server.

        \(DatabaseCommand.ownerHelp)
        """

    private let asJSON: Bool

    init(_ arguments: inout Arguments) { asJSON = arguments.flag("--json") }

    func run(_ console: Console) async throws {
        let sessions = try SessionPolicy(console)
        let statistics = try await DatabaseCommand.asOwner(console, statementTimeout: .seconds(600)) { database in
            var bar = ProgressBar(console, "parts read")
            defer { bar.end() }
            return try await Statistics.gather(
                from: database, sessions: sessions, now: try await DatabaseClock.now(of: database)
            ) { part in
                bar.show(part.rawValue, of: Statistics.Part.allCases.count, note: "now the \(part.name)")
            }
        }
        if asJSON {
            console.printJSON { statistics.write(to: &$0) }
        } else {
            console.write(statistics.lines)
        }
    }
}

extension Statistics.Part {
    fileprivate var name: String {
        switch self {
        case .accounts: "accounts"
        case .sessions: "sessions"
        case .rest: "rest"
        }
    }
}

extension Statistics {
    fileprivate func write(to writer: inout JSONWriter) {
        writer.object("accounts") { writer in
            writer.member("total", accounts.total)
            writer.member("locked", accounts.locked)
            writer.member("newIn7Days", accounts.newInWeek)
            writer.member("newIn30Days", accounts.newInMonth)
        }
        writer.member("liveSessions", liveSessions)
        writer.member("items", accounts.items)
        writer.member("itemBytes", accounts.bytes)
        writer.member("shares", shares)
        writer.object("vaults") { writer in
            writer.member("total", vaults)
            writer.member("items", vaultItems)
            writer.member("itemBytes", vaultBytes)
        }
        writer.member("secondFactors", secondFactors)
        writer.member("recoveries", recoveries)
        writer.member("openInvites", openInvites)
        writer.member("databaseBytes", databaseBytes)
    }

    fileprivate var lines: String {
        var table = Table([.text("accounts"), .number("\(accounts.total)")])
        table.append(["  locked", "\(accounts.locked)"])
        table.append(["  new in 7 days", "\(accounts.newInWeek)"])
        table.append(["  new in 30 days", "\(accounts.newInMonth)"])
        table.append(["live sessions", "\(liveSessions)"])
        table.append(["items", "\(accounts.items)"])
        table.append(["item bytes", "\(accounts.bytes)"])
        table.append(["shares", "\(shares)"])
        table.append(["shared vaults", "\(vaults)"])
        table.append(["  items", "\(vaultItems)"])
        table.append(["  item bytes", "\(vaultBytes)"])
        table.append(["second factors", "\(secondFactors)"])
        table.append(["recovery keys", "\(recoveries)"])
        table.append(["open invites", "\(openInvites)"])
        table.append(["database bytes", "\(databaseBytes)"])
        return table.takeText()
    }
}
