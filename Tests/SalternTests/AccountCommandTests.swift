import CommandLineKit
import Foundation
import HTTPCore
import SalternServer
import SalternTesting
import Testing

@testable import saltern

extension CommandLineTests {
    @Test func `accounts are listed, shown, locked, unlocked and deleted`() async throws {
        try await TestApplication.with { app in
            let owner = ["SALTERN_DATABASE_URL": app.database.ownerURL]
            let ada = try await app.register("ada")
            let bob = try await app.register("bob")
            let list = try await run("account", "list", "--limit", "1", environment: owner)
            #expect(list.status == 0, "\(list)")
            #expect(list.output.hasPrefix("userid  account "))
            #expect(list.output.contains("\nada     \(ada.id)  default"))
            #expect(list.error == "there may be more: --after 'ada'\n")
            let all = try await run("account", "list", "--all", "--json", environment: owner)
            let accounts = try #require(try JSONParser().parse(Array(all.output.utf8)).array(named: "accounts"))
            #expect(accounts.map { $0.text(named: "userid") } == ["ada", "bob"])
            #expect(all.output.hasSuffix("],\"next\":null}\n"))

            let lock = try await run("account", "lock", "ada", "--actor", "grace", environment: owner)
            #expect(lock.output == "account \(ada.id) is locked; 1 session has ended\n", "\(lock)")
            let again = try await run("account", "lock", "--id", ada.id, environment: owner)
            #expect(again.output == "account \(ada.id) was locked already\n")
            let locked = try await run("account", "list", "--locked", "--json", environment: owner)
            #expect(locked.output.contains("\"ada\"") && !locked.output.contains("\"bob\""))
            let show = try await run("account", "show", "ada", environment: owner)
            #expect(show.output.hasPrefix("userid          ada\naccount         \(ada.id)\n"), "\(show)")
            #expect(show.output.contains("\nsessions        0 live\n"))
            let shown = try await run("account", "show", "--id", bob.id, "--json", environment: owner)
            #expect(shown.output.contains(#""lockedAt":null,"usage":{"items":0,"#), "\(shown)")
            let events = try await run("account", "events", "ada", environment: owner)
            #expect(events.output.contains("locked"), "\(events)")
            #expect(try await run("account", "events", "ada", "--json", environment: owner).status == 0)
            let unlock = try await run("account", "unlock", "ada", environment: owner)
            #expect(unlock.output == "account \(ada.id) is unlocked\n")
            let ended = try await run("account", "end-sessions", "bob", environment: owner)
            #expect(ended.output == "account \(bob.id): 1 session has ended\n")

            let stats = try await run("stats", "--json", environment: owner)
            #expect(stats.output.hasPrefix(#"{"accounts":{"total":2,"locked":0,"#), "\(stats)")
            #expect(try await run("stats", environment: owner).output.hasPrefix("accounts "))

            let unconfirmed = try await run("account", "delete", "ada", environment: owner)
            #expect(unconfirmed.status == 1)
            #expect(unconfirmed.error.contains("cannot ask for confirmation without a terminal"))
            let deleted = try await run("account", "delete", "ada", "--yes", environment: owner)
            #expect(deleted.output == "account \(ada.id) is deleted\n")
            let unknown = try await run("account", "show", "Ada", environment: owner)
            #expect(unknown.status == 1)
            #expect(unknown.error.contains("no account has this userid; its canonical form is ada"))

            let audit = try await run("audit", "list", environment: owner)
            #expect(audit.output.split(separator: "\n").count == 5, "\(audit)")
            #expect(audit.output.contains("grace"))
            // The name goes with the account.
            #expect(!audit.output.contains("ada "))
        }
    }

    @Test func `accounts that were never used are counted, and deleted`() async throws {
        try await TestApplication.with { app in
            let owner = ["SALTERN_DATABASE_URL": app.database.ownerURL]
            // The test's clock stands in the past: these are older than an hour.
            let ada = try await app.register()
            let item = try await ada.client.put(
                "/v1/items/\(Fixtures.uuid())", ["format": "rncryptor-v3", "body": .string(Fixtures.rncryptor())],
                ["If-None-Match": "*"])
            #expect(item.status == 201)
            _ = try await app.register()
            _ = try await app.register()
            let words = ["account", "delete", "--never-used", "--older-than", "12h"]
            let counted = try await run(words + ["--dry-run"], environment: owner)
            #expect(counted.output == "2 of 3 accounts were never used\n", "\(counted)")
            // Progress is for terminals.
            #expect(counted.error == "")
            let unconfirmed = try await run(words, environment: owner)
            #expect(unconfirmed.status == 1)
            let deleted = try await run(words + ["--yes"], environment: owner)
            #expect(deleted.output == "deleted 2 of 3 examined accounts\n", "\(deleted)")
            #expect(try await ada.client.get("/v1/account").status == 200)
        }
    }

    @Test func `deletion is confirmed by yes and nothing else`() throws {
        for (typed, isConfirmed) in [("yes", true), ("y", false), ("", false), (nil, false)] {
            let console = Console(environment: [:], error: .nullDevice, answer: { typed })
            if isConfirmed {
                try console.confirm("Delete?")
            } else {
                #expect(throws: CommandFailure.self) { try console.confirm("Delete?") }
            }
        }
    }

    @Test func `account commands say what is wrong with their words`() async throws {
        for (words, message) in [
            (["account", "show"], "the userid is missing"), (["account", "show", "--id", "x"], "--id must be"),
            (["account", "list", "--all", "--limit", "3"], "--all and --limit exclude each other"),
            (["account", "delete", "--never-used"], "--never-used needs --older-than"),
            (["account", "delete", "--never-used", "--older-than", "1s"], "--older-than must be a time"),
            (["account", "delete", "--dry-run", "ada"], "--older-than and --dry-run belong to --never-used"),
            (["account", "delete", "--never-used", "--older-than", "1d", "ada"], "unknown argument ada"),
            (["account", "lock", "ada", "bob"], "unknown argument bob"),
        ] {
            let outcome = try await run(words)
            #expect(outcome.status == 64, "\(outcome)")
            #expect(outcome.error.contains(message), "\(outcome)")
        }
    }
}
