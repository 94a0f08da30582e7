import SalternServer
import SalternTesting
import Testing

@testable import saltern

extension CommandLineTests {
    @Test func `plans are listed, made and given to accounts, and what is due is purged`() async throws {
        try await TestApplication.with { app in
            let owner = ["SALTERN_DATABASE_URL": app.database.administratorURL]
            let list = try await run("plan", "list", environment: owner)
            #expect(list.status == 0, "\(list)")
            #expect(list.output.split(separator: "\n").map { $0.prefix(7) } == ["plan   ", "default", "pro    "])

            // A name that is misspelt makes no plan.
            let misspelt = try await run("plan", "set", "prro", "--items", "10", environment: owner)
            #expect(misspelt.status == 1)
            #expect(misspelt.error.contains("there is no plan prro, only default, pro"), "\(misspelt)")
            let set = try await run(
                "plan", "set", "--items", "10", "free", "--item-bytes=10290", "--create", "--json", environment: owner)
            #expect(set.status == 0, "\(set)")
            #expect(
                set.output == """
                    {"plan":"free","limits":{"items":10,"itemBytes":10290,"bytes":268435456,"sessions":100,\
                    "shares":100,"deletedDays":30,"vaults":10,"memberships":100,"vaultMembers":32,\
                    "vaultItems":10000,"vaultBytes":268435456}}

                    """)
            let ada = try await app.register()
            let given = try await run("account", "set-plan", ada.userid, "free", environment: owner)
            #expect(given.output == "account \(ada.id) has plan free\n")
            #expect(try await ada.client.get("/v1/account").integer("limits.items") == 10)
            let again = try await run("plan", "set", "free", "--create", environment: owner)
            #expect(again.error.contains("there is a plan free already"), "\(again)")
            // Limits that accounts have are not lowered unasked.
            let lowered = try await run("plan", "set", "free", "--items", "0", environment: owner)
            #expect(lowered.status == 1)
            #expect(lowered.error.contains("Lower the limits of all accounts with the plan free: items from 10 to 0?"))
            #expect(lowered.error.contains("--yes"))
            #expect(try await ada.client.get("/v1/account").integer("limits.items") == 10)
            #expect(try await run("plan", "set", "free", "--items", "11", environment: owner).status == 0)
            #expect(try await run("plan", "set", "free", "--items", "10", "--yes", environment: owner).status == 0)
            #expect(try await run("plan", "set", "pro", "--items", "0", environment: owner).status == 0)

            for (name, reason) in [
                ("free", "accounts have this plan"), ("default", "cannot be removed"), ("prro", "no such plan"),
            ] {
                let kept = try await run("plan", "remove", name, environment: owner)
                #expect(kept.status == 1)
                #expect(kept.error.contains(reason), "\(kept)")
            }
            let removal = try await run("plan", "remove", "pro", "--reason", "ticket 7", environment: owner)
            #expect(removal.output == "plan pro is removed\n", "\(removal)")
            #expect(try await run("plan", "list", environment: owner).output.contains("pro ") == false)
            let log = try await run("audit", "list", "--limit", "1", environment: owner)
            #expect(log.output.contains("plan_removed") && log.output.contains("plan pro; reason: ticket 7"), "\(log)")
            let actor = try await run(
                "plan", "set", "free", "--items", "12",
                environment: owner.merging(["SALTERN_ACTOR": "grace"]) { $1 })
            #expect(actor.status == 0, "\(actor)")
            #expect(try await run("audit", "list", "--limit", "1", environment: owner).output.contains("grace"))
            #expect(try await run("plan", "set", "free", "--items", "10", "--yes", environment: owner).status == 0)
            let refused = try await run("account", "set-plan", ada.userid, "gold", environment: owner)
            #expect(refused.status == 1)
            #expect(refused.error.contains("there is no such plan"))

            // The test's clock stands in the past: everything that it stored is old.
            let purge = try await run(
                "purge", "--json", environment: ["SALTERN_DATABASE_URL": app.database.serverURL])
            #expect(purge.output.hasPrefix(#"{"sessions":1,"tombstones":0,"contents":0,"#), "\(purge)")
        }
    }

    @Test func `plan commands say what is wrong with their words`() async throws {
        for (words, message) in [
            (["plan", "set"], "the plan's name is missing"), (["plan", "set", "A"], "a plan's name has"),
            (["plan", "set", "a", "--items", "-1"], "--items must be a whole number"),
            (["plan", "set", "a", "--sessions", "0"], "--sessions must be a whole number"),
            (["plan", "set", "a", "b"], "unknown argument b"), (["account", "set-plan", "a"], "the plan's name is"),
            (["plan", "set", "a", "--actor", ""], "--actor must be"),
            (["plan", "set", "a", "--reason", "a\nb"], "--reason must be"),
            (["plan", "remove"], "the plan's name is missing"),
        ] {
            let outcome = try await run(words)
            #expect(outcome.status == 64)
            #expect(outcome.error.contains(message), "\(outcome)")
        }
    }
}
