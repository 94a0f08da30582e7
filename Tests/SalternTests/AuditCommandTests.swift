import CommandLineKit
import SalternServer
import SalternTesting
import Testing

@testable import saltern

extension CommandLineTests {
    @Test func `the audit log is listed and verified, and exit status 1 says that it is broken`() async throws {
        try await TestApplication.with { app in
            let owner = ["SALTERN_DATABASE_URL": app.database.ownerURL]
            let empty = try await run("audit", "verify", environment: owner)
            #expect(empty.status == 0, "\(empty)")
            let zeros = String(repeating: "0", count: 64)
            #expect(empty.output == "the audit log is intact: 0 rows\nhead 0:\(zeros)\n")
            #expect(try await run("audit", "list", "--json", environment: owner).output == "{\"entries\":[]}\n")
            #expect(
                try await run("audit", "list", environment: owner).output
                    == "row  time  actor  action  account  detail\n")
            try await app.administer("UPDATE saltern.audit_head SET sequence = 1")
            let broken = try await run("audit", "verify", "--json", environment: owner)
            #expect(broken.status == 1)
            #expect(broken.error == "saltern audit verify: row 1 is missing\n")
        }
    }

    @Test func `audit commands say what is wrong with their words`() async throws {
        for (words, message) in [
            (["audit", "verify", "--expect", "7"], "--expect must be a number, a colon and"),
            (["audit", "list", "--limit", "0"], "--limit must be a whole number from 1 to 10000"),
            (["audit", "list", "--before", "x"], "--before must be a whole number from 1"),
        ] {
            let outcome = try await run(words)
            #expect(outcome.status == 64)
            #expect(outcome.error.contains(message), "\(outcome)")
        }
    }

    @Test func `tables show what a terminal would obey`() {
        var table = Table([.text("name"), .number("count"), .text("note")])
        table.append(["a", "10", nil])
        table.append(["longer", "7", "x\u{1B}[2J\u{202E}y"])
        #expect(
            table.takeText() == """
                name    count  note
                a          10  -
                longer      7  x\\u{1b}[2J\\u{202e}y

                """)
        table.append(["b", "1", "z"])
        #expect(table.takeText() == "b           1  z\n")
    }
}
