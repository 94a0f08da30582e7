import CommandLineKit
import Foundation
import SalternClient
import SalternTesting
import Testing

@testable import saltern_client

@Suite struct ClientToolTests {
    struct Outcome {
        var status: Int32
        var output: String
        var error: String
    }

    private func run(_ words: String...) async throws -> Outcome { try await run(words: words) }

    private func run(words: [String]) async throws -> Outcome {
        let directory = try TemporaryDirectory()
        let files = try ["output", "error"].map { name in
            let path = directory.path + "/" + name
            try #require(FileManager.default.createFile(atPath: path, contents: nil))
            return (path, try #require(FileHandle(forWritingAtPath: path)))
        }
        let console = Console(
            environment: ["HOME": directory.path], output: files[0].1, error: files[1].1)
        let status = await CommandLineTool.client.run(words, console: console)
        let texts = try files.map { String(decoding: try Data(contentsOf: URL(filePath: $0.0)), as: UTF8.self) }
        return Outcome(status: status, output: texts[0], error: texts[1])
    }

    @Test func `help lists every command, and each has help of its own`() async throws {
        let overview = try await run("--help")
        #expect(overview.status == 0)
        let commands = [
            "register", "login", "unlock", "logout", "status", "list", "get", "put", "edit", "delete", "restore",
            "versions",
            "discard",
            "sync", "trash", "trash restore", "share",
            "shares", "shares end", "open", "password", "userid", "recovery create", "recovery use", "recovery remove",
            "second-factor begin", "second-factor confirm", "second-factor codes", "second-factor end",
            "second-factor passkey add", "second-factor passkey list", "second-factor passkey rename",
            "second-factor passkey restrict", "second-factor passkey remove", "devices",
            "devices end", "devices lost", "events",
            "vault create", "vault list", "vault rename", "vault preview", "vault join", "vault invite",
            "vault invitations", "vault revoke", "vault members", "vault remove", "vault role", "vault leave",
            "vault hand-over", "vault accept", "vault rotate", "vault seal", "vault delete",
            "rotate", "export", "import", "leave", "version",
        ]
        let listed = overview.output.split(separator: "\n").filter { $0.hasPrefix("  ") }
            .compactMap { $0.firstMatch(of: #/^ {2}([a-z-]+( [a-z-]+){0,2}) {2}/#)?.1 }.map(String.init)
        #expect(listed.sorted() == commands.sorted())
        for command in commands {
            let help = await CommandLineTool.client.run(
                command.split(separator: " ").map(String.init) + ["--help"],
                console: Console(environment: [:], output: .nullDevice))
            #expect(help == 0, "\(command)")
        }
        #expect(try await run("shares", "end", "--help").output.hasPrefix("saltern-client shares end: "))
    }

    @Test func `help fits a terminal, and names the call and an example`() async throws {
        let overview = try await run("--help").output
        let commands = overview.split(separator: "\n")
            .compactMap { $0.firstMatch(of: #/^ {2}([a-z-]+( [a-z-]+){0,2}) {2}/#)?.1 }
        #expect(commands.count > 30)
        var texts = [overview]
        for command in commands {
            let words = command.split(separator: " ").map(String.init)
            let help = try await run(words: words + ["--help"]).output
            let name = try #require(help.split(separator: ":").first)
            #expect(help.contains("\n\nusage: \(name)"), "\(command)")
            #expect(help.contains(/\n\nExample:\n  .*saltern.*\n$/), "\(command)")
            let summary = try #require(help.split(separator: "\n").first).dropFirst(name.count + 2)
            #expect(summary.count <= 60 && !summary.hasSuffix("."), "\(summary)")
            texts.append(help)
        }
        for line in texts.flatMap({ $0.split(separator: "\n") }) { #expect(line.count <= 80, "\(line)") }
    }

    @Test func `an unknown command with --json ends with an error object`() async throws {
        let outcome = try await run("shred", "--json")
        #expect(outcome.status == 64)
        #expect(outcome.error.hasPrefix(#"{"error":{"code":"usage","messages":["unknown command 'shred'; see "#))
        #expect(try await run("shred").error == "saltern-client: unknown command 'shred'; see saltern-client --help\n")
    }

    @Test func `every option in a command's help is one of its options`() async throws {
        let overview = try await run("--help")
        let commands = overview.output.split(separator: "\n").filter { $0.hasPrefix("  ") }
            .compactMap { $0.firstMatch(of: #/^ {2}([a-z-]+( [a-z-]+){0,2}) {2}/#)?.1 }
        var count = 0
        for command in commands {
            let words = command.split(separator: " ").map(String.init)
            let names = try #require(CommandLineTool.client.options(of: words))
            let help = try await run(words: words + ["--help"]).output
            for match in help.matches(of: /(?m)^  (--[a-z-]+)/) {
                count += 1
                #expect(names.flags.union(names.valued).contains(String(match.1)), "\(command) \(match.1)")
            }
        }
        #expect(count > 60)
    }

    @Test func `what stands behind two hyphens or as a value is no option`() async throws {
        for words in [
            ["get", "--", "--json"], ["get", "--", "--help"], ["get", "--", "-rf"], ["delete", "--", "-h", "--json"],
            ["put", "--title", "--json", "--", "-x.txt"], ["export", "--", "--help"], ["userid", "--", "--id=x"],
            ["list", "--collection", "--json"], ["sync", "--", "-folder"], ["share", "--", "--views=1"],
        ] {
            let outcome = try await run(words: words)
            #expect(outcome.status != 0 && outcome.status != 64, "\(words) \(outcome)")
            #expect(outcome.output.isEmpty && !outcome.error.hasPrefix("{"), "\(words) \(outcome)")
        }
        let refused = try await run("get", "-rf")
        #expect(refused.status == 64 && refused.error.contains("unknown argument -rf"))
    }

    @Test func `wrong words end with status 64, also as an object`() async throws {
        #expect(try await run("lst").status == 64)
        #expect(try await run("second-factor").error.contains("second-factor confirm"))
        let unknown = try await run("list", "--bogus")
        #expect(unknown.status == 64)
        #expect(
            unknown.error
                == "saltern-client list: unknown argument --bogus; see saltern-client list --help\n")
        let object = try await run("list", "--bogus", "--json")
        #expect(object.status == 64)
        #expect(
            object.error
                == #"{"error":{"code":"usage","messages":["unknown argument --bogus; see saltern-client list --help"],"status":64}}"#
                + "\n")
        #expect(try await run("put", "--collection", "No").status == 64)
        #expect(try await run("put", "--collection", "saltern-chunks").status == 64)
        #expect(try await run("export", "file", "--sealed", "--collection", "notes").status == 64)
    }

    @Test func `output that cannot be written is an error, also as an object`() async throws {
        for words in [["--help"], ["list", "--help"], ["second-factor", "--help"]] {
            let error = Pipe()
            let full = try #require(FileHandle(forWritingAtPath: "/dev/full"))
            let console = Console(environment: [:], output: full, error: error.fileHandleForWriting)
            #expect(await CommandLineTool.client.run(words, console: console) == 74, "\(words)")
            try error.fileHandleForWriting.close()
            let text = String(decoding: error.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
            #expect(text.hasSuffix("the output cannot be written\n") && text.hasPrefix("saltern-client"))
        }
    }

    @Test func `where nobody is logged in every command says so`() async throws {
        let home = try TemporaryDirectory()
        for words in [
            ["list"], ["sync"], ["status"], ["logout"], ["devices"], ["get", "x"], ["rotate"],
            ["vault", "list"], ["vault", "members", "x"], ["list", "--vault", "x"],
        ] {
            let outcome = await CommandLineTool.client.run(
                words, console: Console(environment: ["HOME": home.path], error: .nullDevice))
            #expect(outcome == ExitStatus.configuration, "\(words)")
        }
    }

    @Test func `of several folders each failure is told with its folder, and the most serious one decides`() throws {
        let (attention, interrupted) = (CommandFailure([], status: 2, code: "attention"), Explanation.interrupted)
        func summary(_ errors: (String, any Error)...) -> CommandFailure? {
            FolderFailure.summary(of: errors.map { FolderFailure(folder: $0.0, $0.1) })
        }
        #expect(summary() == nil)
        let quiet = try #require(summary(("a", attention)))
        #expect(quiet.status == 2 && quiet.messages.isEmpty && quiet.code == "attention")
        let failure = try #require(
            summary(
                ("a", interrupted), ("b/c\u{7}", FolderError.unusable), ("d", attention),
                ("e", FolderError.vault(.sessionEnded)), ("f", interrupted)))
        #expect(failure.status == 77 && failure.code == "session_ended")
        #expect(
            failure.messages == [
                "ended by a signal; nothing was lost",
                "b/c\\u{7}: the folder cannot be opened or written",
                "e: the session has ended: log in again; no data on this device is lost",
            ])
        #expect(summary(("a", attention), ("b", interrupted))?.status == 130)
        #expect(
            summary(("a", FolderError.unusable), ("b", FolderError.vault(.unavailable(.transport(.pinMismatch)))))?
                .status == 76)
        #expect(summary(("a", FolderError.unusable), ("b", interrupted))?.status == 65)
    }

    @Test func `every error of the kit has its status, for ever`() throws {
        let statuses: [(any Error, Int32, String)] = [
            (VaultError.wrongCredentials, 77, "wrong_credentials"), (VaultError.codeRequired, 77, "code_required"),
            (VaultError.wrongCode, 77, "wrong_code"), (VaultError.locked, 77, "locked"),
            (VaultError.sessionEnded, 77, "session_ended"),
            (VaultError.unavailable(.unexpectedReply), 76, "unexpected_reply"),
            (VaultError.unavailable(.transport(.pinMismatch)), 76, "pin_mismatch"),
            (VaultError.unavailable(.transport(.untrustedCertificate)), 76, "untrusted_certificate"),
            (VaultError.unavailable(.transport(.unacceptableReply)), 76, "unacceptable_reply"),
            (VaultError.unavailable(.transport(.unreachable)), 69, "unreachable"),
            (VaultError.unavailable(.transport(.timedOut)), 69, "timed_out"),
            (VaultError.unavailable(.transport(.connectionLost)), 69, "connection_lost"),
            (VaultError.unavailable(.transport(.cancelled)), 130, "interrupted"),
            (TransportError.configuration(.address), 78, "configuration"), (CancellationError(), 130, "interrupted"),
            (VaultError.untrustworthy(.saltPrefix), 76, "weak_kdf"),
            (VaultError.useridNotCanonical(canonical: "ada"), 1, "userid_not_canonical"),
            (VaultError.keyringUnusable, 76, "keyring_unusable"),
            (VaultError.keyringNotRestorable, 76, "keyring_not_restorable"),
            (VaultError.malformedRecoveryCode, 65, "malformed_recovery_code"),
            (VaultError.unsentEdits(count: 2), 2, "unsent_changes"), (VaultError.deletionsHeld, 2, "deletions_held"),
            (VaultError.notFound, 66, "not_found"), (VaultError.unreadable, 65, "unreadable"),
            (VaultError.store(.inUse), 75, "store_in_use"), (VaultError.store(.diskFull), 74, "disk_full"),
            (VaultError.store(.unusable), 74, "store_unusable"), (VaultError.store(.tooNew), 74, "store_too_new"),
            (VaultError.store(.damaged), 74, "store_damaged"),
        ]
        for (error, status, code) in statuses {
            let failure = try #require(Explanation.explain(error))
            #expect(failure.status == status, "\(error)")
            #expect(failure.code == code, "\(error)")
            #expect(failure.messages.count == 1)
        }
        let json = Data(#"{"status":409,"code":"userid_taken","title":"Taken \u001b[2J"}"#.utf8)
        let problem = try JSONDecoder().decode(Problem.self, from: json)
        let refusal = try #require(Explanation.explain(VaultError.refused(problem)))
        #expect(refusal.status == 1)
        #expect(refusal.code == "userid_taken")
        #expect(refusal.messages == [#"Taken \u{1b}[2J"#])
    }
}
