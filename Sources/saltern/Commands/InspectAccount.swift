import CommandLineKit
import HTTPCore
import Postgres
import SalternServer

struct ShowAccount: Command {
    static let words = ["account", "show"]
    static let summary = "show plan, usage, sessions and state of an account"
    static let usage = ["USERID [OPTIONS]", "--id ACCOUNT [OPTIONS]"]
    static let example = "saltern account show ada@example.org"
    static let help = """
          --id ACCOUNT     the account's id, instead of a userid
          --json           one object, for scripts

        Encrypted content cannot be shown. SALTERN_SESSION_IDLE_TIMEOUT (30d) decides
        which sessions are live: set it as for the server.

        \(DatabaseCommand.ownerHelp)
        """

    private let account: AccountReference
    private let asJSON: Bool

    init(_ arguments: inout Arguments) throws(UsageError) {
        asJSON = arguments.flag("--json")
        account = try arguments.account()
    }

    func run(_ console: Console) async throws {
        let sessions = try SessionPolicy(console)
        let found = try await DatabaseCommand.asOwner(console) { [account] in
            try await AccountInspection(database: $0, sessions: sessions)
                .describe(account, now: try await DatabaseClock.now(of: $0))
        }
        if asJSON {
            console.printJSON { found.account.write(to: &$0, iterations: found.iterations) }
        } else {
            console.write(found.account.lines(iterations: found.iterations))
        }
    }
}

extension AccountDescription {
    fileprivate func write(to writer: inout JSONWriter, iterations: Int32?) {
        writer.member("userid", userid)
        writer.member("accountId", id.description)
        writer.member("plan", plan)
        writer.member("createdAt", createdAt.utc)
        writer.member("lastUsedAt", lastUsedAt)
        writer.member("lockedAt", lockedAt)
        writer.object("usage") { writer in
            writer.member("items", items)
            writer.member("bytes", bytes)
            writer.member("keyringBytes", Int(keyringBytes))
            writer.member("keptKeyrings", keptKeyrings)
            writer.member("sessions", sessions)
            writer.member("shares", shares)
            writer.member("vaults", vaults)
            writer.member("memberships", memberships)
        }
        writer.object("credential") { writer in
            writer.member("iterations", iterations.map { JSONValue.integer(Int64($0)) } ?? .null)
            writer.member("revision", credentialRevision)
        }
        writer.member("recoverySetAt", recoverySetAt)
        writer.member("secondFactorSince", secondFactorSince)
        writer.member("secondFactorCodes", secondFactorCodes)
        writer.member("passkeys", passkeys)
        writer.member("unlockingPasskeys", unlockingPasskeys)
        writer.member("receiptChangedAt", receiptChangedAt)
        writer.member("inviteId", inviteID?.description)
    }

    fileprivate func lines(iterations: Int32?) -> String {
        var table = Table([.text("userid"), .text(VisibleText.visible(userid))])
        table.append(["account", id.description])
        table.append(["plan", plan])
        table.append(["created", createdAt.shown])
        table.append(["last use", lastUsedAt?.shown])
        table.append(["locked", lockedAt?.shown ?? "no"])
        table.append(["items", "\(items), \(bytes) bytes"])
        table.append(["keyring", keyringBytes == 0 ? "none" : "\(keyringBytes) bytes"])
        table.append(["kept keyrings", "\(keptKeyrings)"])
        table.append(["sessions", "\(sessions) live"])
        table.append(["shares", "\(shares)"])
        table.append(["vaults", "owns \(vaults), member of \(memberships)"])
        table.append(["KDF iterations", iterations.map { "\($0)" }])
        table.append([
            "credential", credentialRevision == 1 ? "never changed" : "changed \(credentialRevision - 1) times",
        ])
        table.append(["recovery", recoverySetAt.map { "set \($0.shown)" } ?? "not set"])
        table.append([
            "one-time codes",
            secondFactorSince.map { "since \($0.shown), \(counted(secondFactorCodes, "recovery code")) left" } ?? "off",
        ])
        table.append(["passkeys", passkeys == 0 ? "none" : "\(passkeys), of which \(unlockingPasskeys) unlock"])
        table.append(["receipt", receiptChangedAt.map { "since \($0.shown)" } ?? "none"])
        table.append(["invite", inviteID?.description ?? "none"])
        return table.takeText()
    }
}

struct ListAccountEvents: Command {
    static let words = ["account", "events"]
    static let summary = "list the security log of an account, latest first"
    static let usage = ["USERID [OPTIONS]", "--id ACCOUNT [OPTIONS]"]
    static let example = "saltern account events ada@example.org --limit 20"
    static let help = """
          --id ACCOUNT     the account's id, instead of a userid
          --limit N        number of events, 1 to 10000 (100)
          --json           one object, for scripts

        \(DatabaseCommand.ownerHelp)
        """

    private let account: AccountReference
    private let limit: Int
    private let asJSON: Bool

    init(_ arguments: inout Arguments) throws(UsageError) {
        asJSON = arguments.flag("--json")
        limit = try arguments.integer("--limit", in: 1...10_000) ?? 100
        account = try arguments.account()
    }

    func run(_ console: Console) async throws {
        let events = try await DatabaseCommand.asOwner(console) { [account, limit] in
            try await AccountInspection(database: $0, sessions: SessionPolicy()).events(account, limit: limit)
        }
        if asJSON {
            console.printJSON { writer in
                writer.array("events") { writer in
                    for event in events {
                        writer.object { writer in
                            writer.member("occurredAt", event.occurredAt.utc)
                            writer.member("kind", event.kind)
                            writer.member("sessionId", event.sessionID?.description)
                            writer.member("deviceName", event.deviceName)
                            writer.member("count", event.count.map { JSONValue.integer($0) } ?? .null)
                            writer.member("since", event.since)
                            writer.member("ongoing", event.isOngoing)
                        }
                    }
                }
            }
            return
        }
        var table = Table([.text("time"), .text("event"), .number("count"), .text("since"), .text("device")])
        for event in events {
            table.append([
                event.occurredAt.shown, event.kind, event.count.map { "\($0)" }, event.since?.shown, event.deviceName,
            ])
        }
        console.write(table.takeText())
    }
}

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
