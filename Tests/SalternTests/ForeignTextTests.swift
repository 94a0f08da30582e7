import CommandLineKit
import Foundation
import SalternServer
import SalternTesting
import Testing

@testable import saltern

extension CommandLineTests {
    private static let other = "--id=0198c0de-0000-7000-8000-000000000001"

    @Test func `a userid that looks like an option or like a shell's text is no more than a userid`() async throws {
        try await TestApplication.with { app in
            let owner = ["SALTERN_DATABASE_URL": app.database.ownerURL]
            let ada = try await app.register("ada")
            let userids = [
                "-rf", "--help", "-h", "--", "--json", "--yes", "--actor=x", "--id", "--id=\(ada.id)",
                "--allz'; touch pwned; echo '",
            ]
            var ids: [String: String] = [:]
            for userid in userids { ids[userid] = try await app.register(userid).id }
            for userid in userids {
                let id = try #require(ids[userid])
                for command in ["show", "lock", "unlock", "end-sessions"] {
                    let outcome = try await run("account", command, "--", userid, environment: owner)
                    #expect(outcome.status == 0 && outcome.output.contains(id), "\(outcome)")
                }
                for words in [
                    ["account", "events", "--", userid], ["account", "set-plan", "--", userid, "default"],
                ] {
                    let outcome = try await run(words, environment: owner)
                    #expect(outcome.status == 0, "\(words) \(outcome)")
                }
                let factor = try await run("account", "remove-second-factor", "--", userid, environment: owner)
                #expect(!factor.error.contains("no account has this userid") && factor.status == 1, "\(factor)")
                // Without the hyphens it is an option, and no other account is meant.
                for command in ["lock", "set-plan", "end-sessions"] {
                    _ = try await run(
                        ["account", command, userid] + (command == "set-plan" ? ["default"] : []), environment: owner)
                }
                _ = try await run("account", "delete", "--yes", userid, environment: owner)
                let untouched = try await run("account", "show", "--json", "--", "ada", environment: owner)
                #expect(untouched.output.contains(#""lockedAt":null"#), "\(userid) \(untouched)")
                let audit = try await run("audit", "list", "--json", environment: owner)
                #expect(audit.status == 0 && !audit.output.contains(ada.id), "\(userid) \(audit)")
                let next = try await run("account", "list", "--limit", "1", "--after", userid, environment: owner)
                #expect(next.status == 0, "\(next)")
                let deleted = try await run("account", "delete", "--yes", "--", userid, environment: owner)
                #expect(deleted.output == "account \(id) is deleted\n", "\(userid) \(deleted)")
            }
        }
    }

    @Test func `the hint that a shell gets is one word of it`() async throws {
        try await TestApplication.with { app in
            let owner = ["SALTERN_DATABASE_URL": app.database.ownerURL]
            let userid = "--allz'; touch pwned; echo '"
            _ = try await app.register(userid)
            _ = try await app.register("ada")
            let list = try await run("account", "list", "--limit", "1", environment: owner)
            #expect(list.error == #"there may be more: --after '--allz'\''; touch pwned; echo '\'''"# + "\n")
            let shell = Process()
            shell.executableURL = URL(filePath: "/bin/sh")
            let words = try #require(list.error.split(separator: ": ", maxSplits: 1).last)
            shell.arguments = ["-c", "printf '%s|' " + words]
            let pipe = Pipe()
            shell.standardOutput = pipe
            try shell.run()
            let printed = try pipe.fileHandleForReading.readToEnd() ?? Data()
            shell.waitUntilExit()
            #expect(String(decoding: printed, as: UTF8.self) == "--after|\(userid)|")
        }
    }

    @Test func `a terminal obeys nothing that a command prints`() async throws {
        let hostile = "\u{1b}]0;title\u{7}\u{9b}31m\u{202e}\u{200b}\u{2028}\u{7f}\r\n\t"
        for words in [
            [hostile], ["account", hostile], ["account", "show", hostile, "x"], ["account", "lock", "--id", hostile],
            ["backup", "a", hostile], ["certificate", "pins", "--directory", hostile], ["help", hostile],
            ["certificate", "create", "--host", hostile], ["audit", "list", "--limit", hostile],
            ["migrate", "up", "--" + hostile],
        ] {
            let outcome = try await run(words, environment: ["SALTERN_LISTEN": hostile])
            #expect(outcome.status != 0)
            let shown = outcome.output + outcome.error
            let obeyed = shown.unicodeScalars.filter { scalar in
                scalar != "\n" && [.control, .format, .lineSeparator].contains(scalar.properties.generalCategory)
            }
            #expect(obeyed.isEmpty, "\(words) \(outcome)")
        }
        let json = Array("{\"a\":\"\u{9b}\u{202e}\u{e0041}ü\"}\n".utf8)
        let escaped = VisibleText.json(json)
        #expect(String(decoding: escaped, as: UTF8.self) == #"{"a":"\u009b\u202e\udb40\udc41ü"}"# + "\n")
        #expect(
            try JSONSerialization.jsonObject(with: Data(escaped)) as? [String: String]
                == JSONSerialization.jsonObject(with: Data(json)) as? [String: String])
    }

    @Test func `content reaches a file as it is, and a terminal as what it is`() throws {
        let directory = try TemporaryDirectory()
        for (isTerminal, expected) in [(false, "a\u{1b}[31m\tb\n"), (true, "a\\u{1b}[31m\tb\n")] {
            let path = directory.path + "/\(isTerminal)"
            try #require(FileManager.default.createFile(atPath: path, contents: nil))
            var console = Console(environment: [:], output: try #require(FileHandle(forWritingAtPath: path)))
            console.isOutputTerminal = isTerminal
            console.writeContent(Array("a\u{1b}[31m\tb\n".utf8))
            #expect(try String(contentsOfFile: path, encoding: .utf8) == expected)
        }
    }

    @Test func `output that is lost is no success, and codes that were not shown are no invites`() async throws {
        func runToFull(_ words: [String], _ environment: [String: String] = [:]) async throws -> Int32 {
            let full = try #require(FileHandle(forWritingAtPath: "/dev/full"))
            let console = Console(environment: environment, output: full, error: .nullDevice)
            return await CommandLineTool.saltern.run(words, console: console)
        }
        let directory = try TemporaryDirectory()
        let tls = ["SALTERN_TLS_DIRECTORY": directory.path + "/tls"]
        #expect(try await run("certificate", "create", "--host", "localhost", environment: tls).status == 0)
        for words in [
            ["--help"], ["version"], ["--version"], ["statements"], ["account"], ["account", "list", "--help"],
            ["certificate", "export", "--der"], ["certificate", "pins"], ["certificate", "check"],
        ] where words != ["account"] {
            #expect(try await runToFull(words, tls) == 74, "\(words)")
        }
        try await TestApplication.with { app in
            let owner = ["SALTERN_DATABASE_URL": app.database.ownerURL]
            for words in [
                ["invite", "create"], ["invite", "create", "--json", "--count", "3"], ["account", "list"],
                ["account", "list", "--json"], ["audit", "verify"], ["audit", "list"], ["stats"], ["plan", "list"],
                ["invite", "list"], ["migrate", "status"], ["migrate", "verify"],
            ] {
                #expect(try await runToFull(words, owner) == 74, "\(words)")
            }
            let invites = try await run("invite", "list", "--all", "--json", environment: owner)
            #expect(invites.output == "{\"invites\":[]}\n", "\(invites)")
            #expect(try await run("audit", "list", "--json", environment: owner).output == "{\"entries\":[]}\n")
        }
    }
}
