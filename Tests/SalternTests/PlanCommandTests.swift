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

            let set = try await run(
                "plan", "set", "--items", "10", "free", "--item-bytes=10290", "--json", environment: owner)
            #expect(set.status == 0, "\(set)")
            #expect(
                set.output == """
                    {"plan":"free","limits":{"items":10,"itemBytes":10290,"bytes":268435456,"sessions":100,\
                    "shares":100,"deletedDays":30}}

                    """)
            let ada = try await app.register()
            let given = try await run("account", "set-plan", ada.userid, "free", environment: owner)
            #expect(given.output == "account \(ada.id) has plan free\n")
            #expect(try await ada.client.get("/v1/account").integer("limits.items") == 10)
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
        ] {
            let outcome = try await run(words)
            #expect(outcome.status == 64)
            #expect(outcome.error.contains(message), "\(outcome)")
        }
    }
}
