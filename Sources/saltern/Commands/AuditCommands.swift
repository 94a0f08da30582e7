import CommandLineKit
import HTTPCore
import SalternServer

struct VerifyAudit: Command {
    static let words = ["audit", "verify"]
    static let summary = "check the audit log for changed rows"
    static let example = "saltern audit verify --expect 4711:9f86d081…"
    static let help = """
          --expect SEQUENCE:HASH  a head noted earlier, which the chain must contain
          --json                  prints the head as an object, for scripts

        Prints the head of the chain. Store it outside of the database: an attacker
        who can rewrite the whole log can also make a new chain, and only a stored head
        shows that. Exit status 1 names the first row that was changed, removed,
        inserted or moved. Rows whose time decreases are named on standard error,
        without status 1.

        \(DatabaseCommand.ownerHelp)
        """

    private let noted: AuditPlace?
    private let asJSON: Bool

    init(_ arguments: inout Arguments) throws(UsageError) {
        asJSON = arguments.flag("--json")
        if let text = try arguments.option("--expect") {
            guard let place = AuditPlace(text) else {
                throw UsageError(message: "--expect must be a number, a colon and 64 hexadecimal digits")
            }
            noted = place
        } else {
            noted = nil
        }
    }

    func run(_ console: Console) async throws {
        let head = try await DatabaseCommand.asOwner(console) { [noted] in
            try await AuditReview(database: $0).verify(noted: noted) { rows in
                let numbers = rows.map(String.init).joined(separator: ", ")
                console.notice(
                    "these rows have an earlier time than the row before them: \(numbers). The database's clock "
                        + "was set back, or the schema's owner wrote the rows",
                    code: "audit_time_went_back")
            }
        }
        if asJSON {
            console.printJSON { writer in
                writer.member("rows", head.sequence)
                writer.object("head") { writer in
                    writer.member("sequence", head.sequence)
                    writer.member("hash", head.hash.description)
                }
            }
        } else {
            console.print("the audit log is intact: \(counted(head.sequence, "row"))")
            console.print("head \(head)")
        }
    }
}

struct ListAudit: Command {
    static let words = ["audit", "list"]
    static let summary = "list what admins did, latest first"
    static let example = "saltern audit list --limit 100"
    static let help = """
          --limit N        number of rows, 1 to 10000 (50)
          --before N       only rows before row N: the next page
          --json           one object, for scripts

        \(DatabaseCommand.ownerHelp)
        """

    private let limit: Int
    private let before: Int
    private let asJSON: Bool

    init(_ arguments: inout Arguments) throws(UsageError) {
        asJSON = arguments.flag("--json")
        limit = try arguments.integer("--limit", in: 1...10_000) ?? 50
        before = try arguments.integer("--before", in: 1...Int.max) ?? Int.max
    }

    func run(_ console: Console) async throws {
        let entries = try await DatabaseCommand.asOwner(console) { [limit, before] in
            try await AuditReview(database: $0).latest(limit, before: Int64(before))
        }
        if asJSON {
            console.printJSON { writer in
                writer.array("entries") { writer in
                    for entry in entries {
                        writer.object { writer in
                            writer.member("sequence", entry.sequence)
                            writer.member("occurredAt", entry.occurredAt)
                            writer.member("actor", entry.actor)
                            writer.member("action", entry.action)
                            writer.member("accountId", entry.targetAccount?.description)
                            writer.member("detail", entry.detail)
                            writer.member("hash", entry.hash.description)
                        }
                    }
                }
            }
            return
        }
        var table = Table([
            .number("row"), .text("time"), .text("actor"), .text("action"), .text("account"), .text("detail"),
        ])
        for entry in entries {
            table.append([
                "\(entry.sequence)", entry.occurredAt.shown, entry.actor, entry.action,
                entry.targetAccount?.description, entry.detail,
            ])
        }
        console.write(table.takeText())
    }
}
