import HTTPCore
import SalternServer
import SalternTesting
import Testing

@testable import saltern

extension CommandLineTests {
    @Test func `invites are made, listed and revoked, and their codes are shown once`() async throws {
        try await TestApplication.with { app in
            let owner = ["SALTERN_OWNER_DATABASE_URL": app.database.ownerURL]
            let created = try await run(
                "invite", "create", "--count", "2", "--plan=pro", "--note", "for Ada", "--json", "--actor", "grace",
                environment: owner)
            #expect(created.status == 0, "\(created)")
            let invites = try #require(try JSONParser().parse(Array(created.output.utf8)).array(named: "invites"))
            #expect(invites.count == 2)
            let code = try #require(invites[0].text(named: "code"))
            let id = try #require(invites[1].text(named: "id"))
            #expect(code.hasPrefix("sli_"))
            #expect(code.utf8.count == 36)

            let revoked = try await run("invite", "revoke", id, environment: owner)
            #expect(revoked.output == "invite \(id) is revoked\n", "\(revoked)")
            let list = try await run("invite", "list", environment: owner)
            #expect(list.output.split(separator: "\n").count == 2)
            #expect(list.output.contains("pro   for Ada"), "\(list)")
            let all = try await run("invite", "list", "--all", "--json", environment: owner)
            #expect(all.output.contains(#""state":"revoked""#), "\(all)")
            #expect(!(list.output + all.output).contains(code.dropFirst(4)))

            let audit = try await run("audit", "list", environment: owner)
            #expect(audit.output.split(separator: "\n").count == 4)
            #expect(audit.output.contains("grace"))
            #expect(audit.output.contains("invite_revoked"))
            #expect(try await run("audit", "verify", environment: owner).status == 0)

            let table = try await run("invite", "create", "--expires", "12h", environment: owner)
            #expect(table.output.split(separator: "\n").count == 2, "\(table)")
            let refused = try await run("invite", "create", "--plan", "gold", environment: owner)
            #expect(refused.status == 1)
            #expect(refused.error.contains("there is no such plan"))
        }
    }

    @Test func `invite commands say what is wrong with their words`() async throws {
        for (words, message) in [
            (["invite", "create", "--count", "0"], "--count must be a whole number from 1 to 1000"),
            (["invite", "create", "--expires", "7"], "--expires must be a time such as 12h or 30d"),
            (["invite", "create", "--note", ""], "--note must have 1 to 200 characters"),
            (["invite", "create", "--actor", "a\u{7}"], "--actor must be 1 to 128 characters"),
            (["invite", "revoke"], "the invite's ID is missing"),
            (["invite", "revoke", "sli_x"], "an invite's ID is 36 characters"),
        ] {
            let outcome = try await run(words)
            #expect(outcome.status == 64)
            #expect(outcome.error.contains(message), "\(outcome)")
        }
    }
}

extension JSONValue {
    /// The text of a member.
    func text(named name: String) -> String? {
        guard case .object(let object) = self else { return nil }
        return try? object[name]?.string()
    }

    /// The elements of a member.
    func array(named name: String) -> [JSONValue]? {
        guard case .object(let object) = self else { return nil }
        return try? object[name]?.array()
    }
}
