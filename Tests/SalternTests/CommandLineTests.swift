import CommandLineKit
import Foundation
import SalternServer
import SalternTesting
import Testing

@testable import saltern

@Suite struct CommandLineTests {
    struct Outcome {
        var status: Int32
        var output: String
        var error: String
    }

    func run(_ words: String..., environment: [String: String] = [:]) async throws -> Outcome {
        try await run(words, environment: environment)
    }

    func run(_ words: [String], environment: [String: String] = [:]) async throws -> Outcome {
        let directory = try TemporaryDirectory()
        let files = try ["output", "error"].map { name in
            let path = directory.path + "/" + name
            try #require(FileManager.default.createFile(atPath: path, contents: nil))
            return (path, try #require(FileHandle(forWritingAtPath: path)))
        }
        let console = Console(environment: environment, output: files[0].1, error: files[1].1)
        let status = await CommandLineTool.saltern.run(words, console: console)
        let texts = try files.map { String(decoding: try Data(contentsOf: URL(filePath: $0.0)), as: UTF8.self) }
        return Outcome(status: status, output: texts[0], error: texts[1])
    }

    @Test func `help lists every command, and each has help of its own`() async throws {
        let overview = try await run("--help")
        #expect(overview.status == 0)
        let commands = [
            "serve", "migrate up", "migrate status", "migrate verify", "certificate create", "certificate pins",
            "certificate export", "certificate rotate", "certificate renew", "certificate check", "certificate install",
            "reload", "health", "doctor",
            "statements", "version",
            "master-key create",
            "master-key list", "master-key rotate", "master-key reseal", "master-key prune",
            "account remove-second-factor", "account restore-keyring", "plan list", "plan set", "account set-plan",
            "purge",
            "account list", "account show", "account events",
            "account lock", "account unlock", "account end-sessions", "account delete", "invite create", "invite list",
            "invite revoke", "audit list", "audit verify", "stats", "backup", "restore", "restored", "doctor",
        ]
        for command in commands {
            #expect(overview.output.contains("\n  \(command) "), "\(command)")
            let help = await CommandLineTool.saltern.run(
                command.split(separator: " ").map(String.init) + ["--help"],
                console: Console(environment: [:], output: .nullDevice))
            #expect(help == 0, "\(command)")
        }
    }

    @Test func `help fits a terminal, and names the call and an example`() async throws {
        let overview = try await run("--help").output
        let commands = overview.split(separator: "\n")
            .compactMap { $0.firstMatch(of: #/^ {2}([a-z-]+( [a-z-]+)?) {2}/#)?.1 }
        #expect(commands.count > 30)
        var texts = [overview]
        for command in commands {
            let words = command.split(separator: " ").map(String.init)
            let help = try await run(words + ["--help"]).output
            let name = try #require(help.split(separator: ":").first)
            #expect(help.contains("\n\nusage: \(name)"), "\(command)")
            #expect(help.contains(/\n\nExample:\n  .*saltern.*\n$/), "\(command)")
            let summary = try #require(help.split(separator: "\n").first).dropFirst(name.count + 2)
            #expect(summary.count <= 60 && !summary.hasSuffix("."), "\(summary)")
            texts.append(help)
        }
        for line in texts.flatMap({ $0.split(separator: "\n") }) { #expect(line.count <= 80, "\(line)") }
    }

    @Test func `what is misspelt passes for no default, whatever the command`() async throws {
        for words in [["purge"], ["plan", "list"], ["migrate", "status"], ["backup", "x"], ["stats"], ["health"]] {
            let outcome = try await run(words, environment: ["SALTERN_TOMBSTONE_RETENTON": "400d"])
            #expect(outcome.status == 1)
            #expect(outcome.error.contains("SALTERN_TOMBSTONE_RETENTON is not a setting"), "\(outcome)")
        }
    }

    @Test func `a variable that is not set is no file`() async throws {
        for command in ["backup", "restore"] {
            let outcome = try await run(command, "")
            #expect(outcome.status == 64)
            #expect(outcome.error.contains("an argument is empty"), "\(outcome)")
        }
    }

    @Test func `help for serve names every setting`() async throws {
        let help = try await run("serve", "--help")
        for setting in Setting.allCases { #expect(help.output.contains("\n  \(setting) "), "\(setting)") }
        for (heading, _) in Setting.headings { #expect(help.output.contains("\n\(heading):\n"), "\(heading)") }
        #expect(!help.output.contains("`SALTERN_") && !help.output.contains("]("))
    }

    @Test func `wrong words end with status 64 and say what to do`() async throws {
        let unknown = try await run("serv")
        #expect(unknown.status == 64)
        #expect(unknown.error.contains("unknown command 'serv'"))
        let group = try await run("migrate")
        #expect(group.status == 64)
        #expect(group.error.contains("migrate up"))
        let argument = try await run("migrate", "up", "--force")
        #expect(argument.status == 64)
        #expect(argument.error == "saltern migrate up: unknown argument --force; see saltern migrate up --help\n")
        let value = try await run("certificate", "create", "--host")
        #expect(value.status == 64)
        #expect(value.error.contains("--host needs a value"))
        #expect(try await run().status == 64)
    }

    @Test func `certificates are made, shown, exported, rotated and checked`() async throws {
        let directory = try TemporaryDirectory()
        let environment = ["SALTERN_TLS_DIRECTORY": directory.path + "/tls"]
        let created = try await run("certificate", "create", "--host", "localhost", environment: environment)
        #expect(created.status == 0)
        let pins = created.output.split(separator: "\n").compactMap { $0.split(separator: " ").last }
        #expect(pins.count == 2)
        #expect(pins.allSatisfy { $0.hasPrefix("sha256//") })
        #expect(try await run("certificate", "pins", environment: environment).output == created.output)
        #expect(try await run("certificate", "create", "--host", "localhost", environment: environment).status == 1)
        #expect(try await run("certificate", "check", environment: environment).status == 0)
        #expect(try await run("certificate", "export", environment: environment).status == 64)
        #expect(try await run("certificate", "export", "--der", environment: environment).status == 0)

        let rotated = try await run("certificate", "rotate", environment: environment)
        #expect(rotated.status == 0)
        #expect(rotated.output.hasPrefix("active  \(pins[1])\n"))
        try FileManager.default.removeItem(atPath: directory.path + "/tls/key.pem")
        #expect(try await run("certificate", "check", environment: environment).status == 2)
    }

    @Test func `a master key is made once, for its owner alone, and rotated without losing one`() async throws {
        let directory = try TemporaryDirectory()
        let file = directory.path + "/master.key"
        let environment = ["SALTERN_MASTER_KEY_FILE": file]
        let created = try await run("master-key", "create", environment: environment)
        #expect(created.status == 0)
        let first = try #require(created.output.split(separator: " ").last).dropLast()
        #expect(created.output == "active  \(first)\n")
        #expect(first.count == 8)
        let attributes = try FileManager.default.attributesOfItem(atPath: file)
        #expect(attributes[.posixPermissions] as? Int == 0o600)

        let again = try await run("master-key", "create", environment: environment)
        #expect(again.status == 1)
        #expect(again.error.contains("exists already"))
        #expect(try await run("master-key", "list", "--file", file).output == created.output)

        let rotated = try await run("master-key", "rotate", environment: environment)
        #expect(rotated.status == 0)
        #expect(rotated.output.hasSuffix("\nolder   \(first)\n"))
        #expect(try await run("master-key", "list", environment: environment).output == rotated.output)

        try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: file)
        let shown = try await run("master-key", "list", environment: environment)
        #expect(shown.status == 1)
        #expect(shown.error.contains("chmod 600"))
        #expect(try await run("master-key", "list").error.contains("saltern master-key create creates one"))
    }

    @Test func `rotations at the same time lose no key`() async throws {
        let directory = try TemporaryDirectory()
        let file = MasterKeyFile(path: directory.path + "/master.key")
        _ = try file.create()
        await withTaskGroup { group in
            for _ in 0..<10 {
                group.addTask { _ = try? file.change { key throws(MasterKeyError) in try key.rotated() } }
            }
        }
        #expect(try file.read().ids.count == 11)
    }

    @Test func `statements are printed as JSON lines`() async throws {
        let printed = try await run("statements")
        #expect(printed.status == 0)
        let names = try printed.output.split(separator: "\n").map { line in
            try #require(try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: String])["name"]
        }
        #expect(names.contains("Authenticate"))
    }
}
