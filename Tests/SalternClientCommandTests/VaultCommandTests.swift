import CommandLineKit
import Foundation
import SalternClient
import SalternTesting
import Testing

@testable import saltern_client

@Suite struct VaultCommandTests {
    /// Runs a command where nobody is logged in.
    private func run(_ words: [String], link: String = "") async throws -> (status: Int32, error: String) {
        let directory = try TemporaryDirectory()
        let path = directory.path + "/error"
        try #require(FileManager.default.createFile(atPath: path, contents: nil))
        let link = Data((link + "\n").utf8)
        try #require(
            FileManager.default.createFile(
                atPath: directory.path + "/link", contents: link, attributes: [.posixPermissions: 0o600]))
        let console = Console(
            environment: ["HOME": directory.path], output: .nullDevice,
            error: try #require(FileHandle(forWritingAtPath: path)))
        let words = words.map { $0.replacing("DIRECTORY", with: directory.path) }
        let status = await CommandLineTool.client.run(words, console: console)
        return (status, String(decoding: try Data(contentsOf: URL(filePath: path)), as: UTF8.self))
    }

    @Test func `missing and wrong words end with status 64`() async throws {
        for words in [
            ["vault"], ["vault", "create"], ["vault", "create", "household"], ["vault", "create", "--as", "Ada"],
            ["vault", "join", "--link-file", "x"], ["vault", "invite"], ["vault", "invite", "v", "--role", "owner"],
            ["vault", "invite", "v", "--uses", "0"], ["vault", "invite", "v", "--uses", "33"],
            ["vault", "invite", "v", "--expires", "31d"], ["vault", "invite", "v", "--expires", "7"],
            ["vault", "role", "v", "Bob"], ["vault", "role", "v", "Bob", "admin"],
            ["vault", "role", "v", "Bob", "Writer"],
            ["vault", "remove", "v"], ["vault", "revoke", "v"], ["vault", "hand-over", "v"],
            ["vault", "hand-over", "v", "Bob", "--withdraw"], ["vault", "members"], ["vault", "delete", "v", "w"],
            ["vault", "rename", "v"], ["vault", "handover", "v", "Bob"],
            ["vault", "seal"], ["vault", "seal", "v"], ["vault", "seal", "v", "Bob", "Eve"],
            ["vault", "join", "https://host/j/x#y", "--link-file", "x", "--as", "Bob"],
            ["vault", "preview", "https://host/j/x#y", "--link-file", "x"],
            ["export", "file", "--sealed", "--vault", "v"], ["export", "file", "--all-vaults", "--sealed"],
            ["export", "file", "--all-vaults", "--vault", "v"], ["get", "x", "--deleted", "--version", "1"],
            ["sync", "--vault", "v"], ["register", "--vault", "v"],
        ] {
            let outcome = try await run(words)
            #expect(outcome.status == 64, "\(words) \(outcome)")
        }
        #expect(try await run(["vault"]).error.contains("vault hand-over"))
    }

    @Test func `complete words reach the account, which is missing`() async throws {
        for words in [
            ["vault", "create", "household", "--as", "Ada"], ["vault", "list"], ["vault", "rename", "v", "home"],
            [
                "vault", "invite", "v", "--role", "writer", "--uses", "32", "--expires", "30d", "--label", "Bob",
                "--no-code",
            ],
            ["vault", "invitations", "v"], ["vault", "revoke", "v", "5b1e"], ["vault", "members", "v", "--verify"],
            ["vault", "remove", "v", "Bob", "Carol"], ["vault", "role", "v", "Bob", "reader"],
            ["vault", "leave", "v", "--yes", "--forget", "--discard-unsent"], ["vault", "hand-over", "v", "Bob"],
            ["vault", "hand-over", "v", "--withdraw"], ["vault", "accept", "v"], ["vault", "rotate", "v"],
            ["vault", "rotate", "v", "--without-key"], ["vault", "remove", "v", "Bob", "--without-key"],
            ["vault", "seal", "v", "Bob"], ["vault", "seal", "v", "Bob", "--yes"],
            ["vault", "delete", "v", "--yes"], ["get", "x", "--vault", "v"],
            ["get", "x", "--deleted", "--vault", "v"], ["list", "--vault", "v"],
            ["put", "/dev/null", "--vault", "v"], ["delete", "x", "--vault", "v"], ["restore", "x", "--vault", "v"],
            ["versions", "x", "--vault", "v"], ["discard", "x", "--vault", "v"], ["share", "x", "--vault", "v"],
            ["sync", "DIRECTORY", "--vault", "v"], ["sync", "--allow-deletions", "--vault", "v"],
            ["trash", "DIRECTORY", "--vault", "v"], ["trash", "restore", "DIRECTORY", "f", "--vault", "v"],
            ["export", "DIRECTORY/items", "--vault", "v"], ["export", "DIRECTORY/all", "--all-vaults"],
            ["leave", "--yes", "--delete-vaults"], ["import", "DIRECTORY/link", "--vault", "v"],
        ] {
            let outcome = try await run(words + ["--json"])
            #expect(outcome.status == ExitStatus.configuration, "\(words) \(outcome)")
            #expect(outcome.error.contains(#""code":"no_account""#), "\(words) \(outcome)")
        }
    }

    @Test func `a text that is no invitation is rejected before anything is sent`() async throws {
        let secret = String(repeating: "a", count: 44)
        for (link, text) in [
            ("https://host/s/5kqvY2Rr#key", "an invitation has the form https://host/j/ID#SECRET"),
            ("https://host/j/0000000000000000000000", "copy the whole link"),
            ("https://host/j/0000000000000000000000#1\(secret)a", "copy the whole link"),
        ] {
            for words in [["vault", "preview"], ["vault", "join", "--as", "Bob"]] {
                let outcome = try await run(words + ["--link-file", "DIRECTORY/link"], link: link)
                #expect(outcome.status == 64 && outcome.error.contains(text), "\(words) \(link) \(outcome)")
            }
        }
    }

    @Test func `a code for a link that needs none is rejected`() async throws {
        let link = "https://host/j/\(String(repeating: "0", count: 22))#1\(String(repeating: "0", count: 44))"
        for words in [["vault", "preview"], ["vault", "join", "--as", "Bob"]] {
            let outcome = try await run(
                words + ["--link-file", "DIRECTORY/link", "--code-file", "DIRECTORY/link"], link: link)
            #expect(outcome.status == 64 && outcome.error.contains("needs no code"), "\(words) \(outcome)")
        }
    }

    @Test func `a name that is the beginning of another's id does not win`() throws {
        let members = [("5b1e0000", "Ada"), ("77000000", "5b1e"), ("78000000", "Bob"), ("79000000", "Bob")]
        func find(_ text: String, isNamedByOthers: Bool) -> (id: String?, code: String?) {
            do throws(CommandFailure) {
                let found = try NameMatch.only(
                    text, among: members, noun: ("member", "members"), id: \.0, name: \.1,
                    isNamedByOthers: isNamedByOthers)
                return (found.0, nil)
            } catch {
                return (nil, error.code)
            }
        }
        #expect(find("5b1e", isNamedByOthers: false).id == "77000000")
        #expect(find("5b1e", isNamedByOthers: true).code == "ambiguous")
        #expect(find("5B1E0000", isNamedByOthers: true).id == "5b1e0000")
        #expect(find("Ada", isNamedByOthers: true).id == "5b1e0000")
        #expect(find("Bob", isNamedByOthers: true).code == "ambiguous")
        #expect(find("7900", isNamedByOthers: true).id == "79000000")
        #expect(find("790", isNamedByOthers: true).code == "not_found")
    }

    @Test func `failures of several vaults end a command with all messages and the most serious status`() throws {
        #expect(VaultFailure.summary(of: []) == nil)
        let failures = [
            VaultFailure(name: "garden", .shared(.busy)),
            VaultFailure(name: "house\u{1b}", .shared(.stopped)),
        ]
        for failures in [failures, failures.reversed()] {
            let summary = try #require(VaultFailure.summary(of: failures))
            let worst = try #require(failures.first { $0.name != "garden" }).reason
            #expect(summary.status == worst.status && summary.code == worst.code)
            #expect(Set(summary.messages.map { $0.prefix { $0 != ":" } }) == ["garden", #"house\u{1b}"#])
        }
    }

    @Test func `a hint about waiting deletions names the shared vaults that have them`() {
        #expect(LogOut.hints(isAccountHeld: true, []).map { $0.contains("--vault") } == [false])
        let all = LogOut.hints(isAccountHeld: true, ["garden", "household"])
        #expect(all.map { $0.contains("--vault") } == [false, true, true])
        let hints = LogOut.hints(isAccountHeld: false, ["house\u{1b}"])
        #expect(hints.count == 1)
        #expect(hints[0].contains(#"house\u{1b} wait"#) && hints[0].contains("DIR --vault NAME --allow-deletions"))
    }

    @Test func `every error of shared vaults has its status, for ever`() throws {
        let statuses: [(SharedVaultError, Int32, String)] = [
            (.notSupported, 1, "no_shared_vaults"), (.notALink, 64, "usage"), (.noSecret, 64, "usage"),
            (.brokenLink, 64, "usage"), (.otherServer("https://host"), 78, "other_server"),
            (.codeRequired, 77, "code_required"), (.wrongCode, 77, "wrong_code"), (.invalidCode, 65, "malformed_code"),
            (.invalidName, 1, "invalid_name"), (.invitationGone, 66, "invitation_gone"),
            (.invitationGoneOrWrongCode, 77, "wrong_code"), (.keyMissing, 69, "key_missing"),
            (.wrongVault, 76, "wrong_vault"), (.alreadyMember, 73, "already_member"), (.unknownVault, 66, "not_found"),
            (.ambiguousName, 66, "ambiguous"), (.unknownMember, 66, "not_found"), (.unknownInvitation, 66, "not_found"),
            (.notPermitted, 77, "not_permitted"), (.ownerProtected, 1, "owner_protected"), (.noOffer, 66, "no_offer"),
            (.full, 1, "vault_full"), (.stopped, 76, "vault_stopped"), (.recovering, 69, "vault_recovering"),
            (.wrongClock, 78, "clock_skew"), (.busy, 69, "vault_busy"), (.invalidExpiry, 64, "usage"),
            (.invalidUses, 64, "usage"), (.updateNeeded, 1, "update_needed"),
            (.nothingToSeal, 1, "nothing_to_seal"), (.listMissing, 69, "list_missing"),
            (.ownsVaults, 1, "owns_vaults"), (.rejected("unchangedRole"), 1, "entry_refused"),
        ]
        for (error, status, code) in statuses {
            let failure = try #require(Explanation.explain(VaultError.shared(error)))
            #expect(failure.status == status && failure.code == code && failure.messages.count == 1, "\(error)")
        }
        let server = try #require(Explanation.explain(VaultError.shared(.otherServer("https://h\u{1b}[2J"))))
        #expect(server.messages.first?.contains(#"https://h\u{1b}[2J"#) ?? false)
    }

    @Test func `every problem has a stable name`() {
        let member = MemberID.random()
        let names: [(SharedVaultProblem, String)] = [
            (.fork(at: 7), "fork"), (.anotherHistory(member), "anotherHistory"), (.rolledBack, "rolledBack"),
            (.invalidLog, "invalidLog"),
            (.keysDue, "keysDue"), (.missingKey, "missingKey"),
            (.foreignKeys, "foreignKeys"), (.updateNeeded, "updateNeeded"), (.ended, "ended"),
            (.putAside(count: 2), "putAside"), (.waitsForSeal(count: 1), "waitsForSeal"), (.nearlyFull, "nearlyFull"),
        ]
        for (problem, name) in names { #expect(VaultProblemRecord(problem).kind == name) }
        #expect(VaultProblemRecord(.fork(at: 7)).entry == 7)
        #expect(VaultProblemRecord(.anotherHistory(member)).member == member)
        #expect(VaultProblemRecord(.putAside(count: 2)).count == 2)
    }
}
