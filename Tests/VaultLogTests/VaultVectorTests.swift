import Cryptography
import Foundation
import Testing

@testable import VaultLog

/// The sections of docs/vectors.json about shared vaults. The module makes again what follows from constants, byte for
/// byte, and reads the rest. Tests/Integration/vault_vectors.py does the same in Python.
///
/// With `SALTERN_WRITE_VECTORS=1` it writes these sections again.
struct VaultVectorTests {
    private static let file = URL(filePath: #filePath)
        .deletingLastPathComponent().appending(path: "../../docs/vectors.json").standardized

    private static func write() throws {
        var document = try JSONDecoder().decode(VaultVectors.Sections.self, from: Data(contentsOf: file))
        document = document.filter { !$0.key.hasPrefix("vault") }
        document.merge(try VaultVectors.fixed()) { $1 }
        document.merge(try VaultVectors.signed()) { $1 }
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        try (try encoder.encode(document) + Data("\n".utf8)).write(to: file)
    }

    /// Read once, and written at most once.
    private static let stored = Result {
        if ProcessInfo.processInfo.environment["SALTERN_WRITE_VECTORS"] != nil { try write() }
        return try JSONDecoder().decode(VaultVectors.Sections.self, from: Data(contentsOf: file))
    }

    private static func document() throws -> VaultVectors.Sections { try stored.get() }

    private static func entries() throws -> [Entry] {
        try #require(document()["vaultLog"]).sorted { $0.key < $1.key }.map { try Entry(bytes($0.value)) }
    }

    private static func bytes(_ text: String?) throws -> [UInt8] { try #require(text.flatMap { Hex.decode($0) }) }

    private static func rejection(_ bytes: [UInt8], _ entries: [Entry]) throws -> EntryRejection? {
        let entry = try Entry(bytes)
        // The entry follows the one before its number, or the last one.
        let count = min(Int(entry.number.value) - 1, entries.count)
        do throws(EntryRejection) {
            var log = try MembershipLog(entries.prefix(count))
            try log.append(entry)
            return nil
        } catch {
            return error
        }
    }

    @Test func `the documents have the vectors of this module`() throws {
        let document = try Self.document()
        for (name, section) in try VaultVectors.fixed() { #expect(document[name] == section, "\(name)") }
        let entries = try Self.entries()
        #expect(Set(entries.map(\.payload.kind)) == Set(EntryKind.allCases))
        let log = try MembershipLog(entries)
        let state = try #require(document["vaultLogState"])
        #expect(log.vault.text == state["vault"])
        #expect(try log.head.bytes == Self.bytes(state["head"]))
        #expect(log.head.words(of: log.vault).joined(separator: " ") == state["headWords"])
        #expect(try InvitationLink(try #require(state["link"])).text == state["link"])
        let roles = Set(log.members.values.map { "\($0.id.bytes[0]) \($0.role.map { "\($0)" } ?? "none")" })
        #expect(roles == ["65 none", "66 manager", "67 writer", "68 none"])
    }

    @Test func `each rejected entry has its reason`() throws {
        let document = try Self.document()
        let entries = try Self.entries()
        let rejected = try #require(document["vaultRejected"])
        for (name, text) in rejected {
            let reason = try #require(EntryRejection(rawValue: String(name.prefix { $0 != ":" })))
            let bytes = try Self.bytes(text)
            if reason == .wrongNumber {
                var log = try MembershipLog(entries)
                #expect(throws: reason) { try log.append(try Entry(bytes)) }
            } else {
                #expect(try Self.rejection(bytes, entries) == reason, "\(name)")
            }
        }
        #expect(rejected.count > 20)
    }

    @Test func `each edit has its result`() throws {
        let document = try Self.document()
        let entries = try Self.entries()
        let whole = try MembershipLog(entries)
        let beforeSeal = try MembershipLog(entries.prefix { $0.payload.kind != .seal })
        let inputs = try #require(document["vaultEdit"])
        let list = try #require(SealList(try Self.bytes(inputs["list"])))
        for (name, text) in try #require(document["vaultEdits"]) {
            let body = try #require(SignedBody(SecureBytes(copying: try Self.bytes(text))))
            let hasTitle = ["accepted", "listed", "wrongSignature"].contains(name)
            let item = try #require(VaultItemID(try Self.bytes(inputs["item"])))
            let statement = EditStatement(
                item: item, collection: "notes", number: .first, previous: .none,
                title: hasTitle ? secret("Shopping") : nil, body: body.content)
            let log = name == "awaitsSeal" ? beforeSeal : whole
            var result = "accepted"
            do throws(EditRejection) {
                try log.check(
                    body, statement.known, log.currentGeneration.number,
                    EditEvidence(lists: name == "awaitsSeal" ? [] : [list]))
            } catch {
                result = error.rawValue
            }
            #expect(result == (name == "listed" ? "accepted" : name))
        }
    }

    @Test func `statements are valid`() throws {
        let document = try Self.document()
        let entries = try Self.entries()
        let log = try MembershipLog(entries)
        let section = try #require(document["vaultStatements"])
        let member = try #require(MemberID(try Self.bytes(section["member"])))
        let seen = try #require(VaultSignature(try Self.bytes(section["seen"])))
        let claim = try #require(VaultSignature(try Self.bytes(section["claim"])))
        #expect(MemberStatement(.seen, member, log.head, seen).isValid(in: log))
        let account = try #require(MemberAccountID(try Self.bytes(section["account"])))
        #expect(MemberStatement(.claim(account), member, log.head, claim).isValid(in: log))
    }
}
