import CommandLineKit
import HTTPCore
import SalternServer

struct ListAccounts: Command {
    static let words = ["account", "list"]
    static let summary = "list accounts, sorted by userid"
    static let example = "saltern account list --userid-prefix ada"
    static let help = """
          --userid-prefix TEXT  only userids that begin with TEXT
          --userid-part TEXT    only userids that contain TEXT
          --plan NAME           only accounts with this plan
          --locked              only locked accounts
          --limit N             number of accounts, 1 to 100000 (50)
          --all                 all accounts, printed as they are read
          --after USERID        only userids after this one: the next page
          --json                one object, for scripts; its member `next` is the
                                value for --after

        A prefix and --locked use an index. --userid-part, and --plan with few accounts,
        read all accounts. Userids are stored in lower case.

        \(DatabaseCommand.ownerHelp)
        """

    private let filter: AccountFilter
    private let limit: Int
    private let after: String
    private let asJSON: Bool

    init(_ arguments: inout Arguments) throws(UsageError) {
        asJSON = arguments.flag("--json")
        var filter = AccountFilter()
        filter.isLocked = arguments.flag("--locked")
        filter.useridPrefix = try arguments.option("--userid-prefix") ?? ""
        filter.useridPart = try arguments.option("--userid-part")
        filter.plan = try arguments.option("--plan")
        self.filter = filter
        after = try arguments.option("--after") ?? ""
        let isUnlimited = arguments.flag("--all")
        let limit = try arguments.integer("--limit", in: 1...100_000)
        if isUnlimited, limit != nil { throw UsageError(message: "--all and --limit exclude each other") }
        self.limit = isUnlimited ? Int.max : limit ?? 50
    }

    func run(_ console: Console) async throws {
        if asJSON { try await printJSON(console) } else { try await printTable(console) }
    }

    private func printTable(_ console: Console) async throws {
        let (next, isEmpty, misspelt) = try await DatabaseCommand.asOwner(console) { [filter, after, limit] database in
            var isEmpty = true
            var table = Table([
                .text("userid"), .text("account"), .text("plan"), .number("items"), .number("bytes"),
                .text("created"), .text("last use"), .text("locked"),
            ])
            let next = try await AccountListing(database: database).list(filter, after: after, limit: limit) { slice in
                isEmpty = false
                for account in slice {
                    table.append([
                        account.userid, account.id.description, account.plan, "\(account.items)", "\(account.bytes)",
                        account.createdAt.shown, account.lastUsedAt?.shown, account.lockedAt?.shown,
                    ])
                }
                console.write(table.takeText())
            }
            console.write(table.takeText())
            var misspelt: String?
            if isEmpty, let plan = filter.plan,
                try await !PlanAdministration(database: database).plans().contains(where: { $0.name == plan })
            {
                misspelt = plan
            }
            return (next, isEmpty, misspelt)
        }
        if let misspelt {
            console.printError("there is no plan \(misspelt); see saltern plan list")
        } else if isEmpty {
            hint(console)
        }
        guard let next else { return }
        let option = ShellWord.quoted(next).map { "--after \($0)" } ?? "see the member next of --json"
        console.printError("there may be more: \(option)")
    }

    /// Prints a possible reason for an empty result.
    private func hint(_ console: Console) {
        for (option, text) in [("--userid-prefix", filter.useridPrefix), ("--userid-part", filter.useridPart ?? "")] {
            guard let form = AccountFilter.canonicalForm(of: text) else { continue }
            let word = ShellWord.quoted(form) ?? "its canonical form"
            console.printError("no userid matches: userids are in lower case; try \(option) \(word)")
            return
        }
        if !filter.useridPrefix.isEmpty {
            console.printError("no userid begins with this text; --userid-part finds userids that contain it")
        }
    }

    private func printJSON(_ console: Console) async throws {
        try await DatabaseCommand.asOwner(console) { [filter, after, limit] database in
            console.writeJSON(Array("{\"accounts\":[".utf8))
            var separator = ""
            let next = try await AccountListing(database: database).list(filter, after: after, limit: limit) { slice in
                for account in slice {
                    console.writeJSON(Array(separator.utf8))
                    separator = ","
                    var writer = JSONWriter()
                    writer.object { account.write(to: &$0) }
                    console.writeJSON(writer.finish())
                }
            }
            var writer = JSONWriter()
            if let next { writer.string(next) } else { writer.null() }
            console.writeJSON(Array("],\"next\":".utf8))
            console.writeJSON(writer.finish())
            console.writeJSON(Array("}\n".utf8))
        }
    }
}

extension AccountSummary {
    fileprivate func write(to writer: inout JSONWriter) {
        writer.member("userid", userid)
        writer.member("accountId", id.description)
        writer.member("plan", plan)
        writer.member("items", items)
        writer.member("bytes", bytes)
        writer.member("createdAt", createdAt.utc)
        writer.member("lastUsedAt", lastUsedAt)
        writer.member("lockedAt", lockedAt)
    }
}
