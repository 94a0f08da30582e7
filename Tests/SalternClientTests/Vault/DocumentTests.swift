import Cryptography
import Foundation
import SalternClient
import SalternTesting
import Testing

/// Everything in a file that anybody can read, and back from it.
@Suite struct DocumentTests {
    private let userid = "ada@example.org"
    private let password = Password("correct horse battery staple")

    private func withVault(_ body: (LiveServer, Vault, URL) async throws -> Void) async throws {
        try await LiveServer.with { server in
            let phone = try Device("phone", server)
            let vault = try await Vault.signUp(phone.settings, userid: userid, password: password)
            try await body(server, vault, URL(filePath: phone.folder.path + "/documents.ndjson"))
        }
    }

    private func item(_ title: String?, _ body: [UInt8]) -> PlainItem {
        PlainItem(title: title, body: SecureBytes(copying: body))
    }

    @Test func `what one account exports another one imports, text and bytes, once however often`() async throws {
        try await withVault { server, vault, file in
            let text = item("Shopping \"list\"", Array("Buy salt.\n\u{2028}🧂".utf8))
            let bytes = item(nil, [0, 255, 10, 13])
            let first = try await vault.put(text, .random(), in: "notes")
            let second = try await vault.put(bytes, .random(), in: "files")
            #expect(try await vault.exportDocuments(to: file) == 2)
            let attributes = try FileManager.default.attributesOfItem(atPath: file.path)
            #expect(attributes[.posixPermissions] as? Int == 0o600)

            let laptop = try Device("laptop", server)
            let other = try await Vault.signUp(laptop.settings, userid: "eve@example.org", password: password)
            let done = try await other.importDocuments(from: file)
            #expect(done == DocumentImport(created: 2))
            #expect(try await other.importDocuments(from: file) == DocumentImport(unchanged: 2))
            #expect(try await other.item(first) == text)
            #expect(try await other.item(second) == bytes)
            #expect(try await other.collectionCounts() == ["notes": 1, "files": 1])
            try await other.sync()
            #expect(try await other.unsentCount() == 0)
        }
    }

    @Test func `what is there with another content stays, and the file's version is beside it, once`() async throws {
        try await withVault { _, vault, file in
            let id = try await vault.put(item("a", [1]), .random(), in: "notes")
            try await vault.exportDocuments(to: file)
            try await vault.put(item("a", [2]), id, in: "notes")
            #expect(try await vault.importDocuments(from: file) == DocumentImport(copies: 1))
            #expect(try await vault.importDocuments(from: file) == DocumentImport(unchanged: 1))
            #expect(try await vault.item(id) == item("a", [2]))
            #expect(Set(try await vault.items().compactMap(\.byteCount)) == [1])
            #expect(try await vault.items().count == 2)
        }
    }

    @Test func `a file without its end, or with anything else in it, changes nothing`() async throws {
        try await withVault { _, vault, file in
            let id = try await vault.put(item("a", [1]), .random(), in: "notes")
            try await vault.exportDocuments(to: file)
            try await vault.delete(id)
            let whole = try String(contentsOf: file, encoding: .utf8).split(separator: "\n").map(String.init)
            let broken = [
                Array(whole.dropLast()), Array(whole.dropFirst()), [], whole + [whole[1]],
                [whole[0], whole[1].replacing("notes", with: "No tes"), whole[2]],
                [whole[0], whole[1], whole[1], whole[2]], [whole[0].replacing("1", with: "2"), whole[1], whole[2]],
            ]
            for lines in broken {
                try (lines.joined(separator: "\n") + "\n").write(to: file, atomically: true, encoding: .utf8)
                await #expect { try await vault.importDocuments(from: file) } throws: {
                    if case VaultError.unreadable = $0 { true } else { false }
                }
            }
            #expect(try await vault.items().isEmpty)
        }
    }

    @Test func `neither export writes over a file`() async throws {
        try await withVault { _, vault, file in
            try Data("mine".utf8).write(to: file)
            await #expect(throws: VaultError.self) { try await vault.exportDocuments(to: file) }
            await #expect(throws: VaultError.self) { try await vault.export(to: file, password: password) }
            #expect(try Data(contentsOf: file) == Data("mine".utf8))
        }
    }
}
