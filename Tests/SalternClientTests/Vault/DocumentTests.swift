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
            #expect(try await vault.exportDocuments(to: file) == DocumentExport(documents: 2))
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

    @Test func `an item that does not open is named, and the file says that it is not there`() async throws {
        try await withVault { _, vault, file in
            let good = try await vault.put(item("good", [1]), .random(), in: "notes")
            let damaged = try await vault.put(item("damaged", [2]), .random(), in: "notes")
            try await vault.sync()
            try await vault.damage(damaged)
            let done = try await vault.exportDocuments(to: file)
            #expect(done == DocumentExport(documents: 1, unreadable: [damaged]))
            let lines = try String(contentsOf: file, encoding: .utf8).split(separator: "\n")
            #expect(lines.last == #"{"documents":1,"type":"end","unreadable":1}"#)
            // What is there can be imported all the same.
            #expect(try await vault.importDocuments(from: file) == DocumentImport(unchanged: 1))
            #expect(try await vault.item(good) == item("good", [1]))
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

    @Test func `long content that was put as a body is unchanged when its own export is imported`() async throws {
        try await withVault { _, vault, file in
            for count in [0, 1, 80_000] {
                let body = SecureRandom.bytes((512 << 10) + count)
                try await vault.put(item("\(count)", body), .random(), in: "files")
            }
            try await vault.exportDocuments(to: file)
            #expect(try await vault.importDocuments(from: file) == DocumentImport(unchanged: 3))
        }
    }

    @Test func `what is there and does not open stays, and the file's version is beside it, once`() async throws {
        try await withVault { _, vault, file in
            let long = item("long", Array(repeating: 7, count: 700_000))
            let source = AttachmentSource(long.body)
            let short = item("short", [1])
            let manifest = PlainItem(title: "long", body: try await vault.attach(source).body())
            var damaged = [try await vault.put(short, .random(), in: "notes")]
            damaged.append(try await vault.put(manifest, .random(), in: "notes"))
            try await vault.put(item("last", [2]), .random(), in: "notes")
            try await vault.sync()
            try await vault.exportDocuments(to: file)
            // The copies, too, may be under a key that nobody has any more.
            for round in 1...2 {
                for id in damaged { try await vault.damage(id) }
                let known = Set(try await vault.ids("notes"))
                #expect(try await vault.importDocuments(from: file) == DocumentImport(unchanged: 1, copies: 2))
                #expect(try await vault.importDocuments(from: file) == DocumentImport(unchanged: 3), "round \(round)")
                damaged = try await vault.ids("notes").filter { !known.contains($0) }
                try await vault.sync()
            }
            var contents: [PlainItem] = []
            for id in damaged { contents.append(try #require(try await vault.wholeItem(id))) }
            #expect(contents.count == 2 && [short, long].allSatisfy(contents.contains))
        }
    }

    @Test func `the id of what is imported beside something says nothing of it`() async throws {
        try await withVault { server, vault, file in
            let id = try await vault.put(item("a", [1]), .random(), in: "notes")
            try await vault.exportDocuments(to: file)
            let laptop = try Device("laptop", server)
            let other = try await Vault.signUp(laptop.settings, userid: "eve@example.org", password: password)
            var copies: Set<ItemID> = []
            for vault in [vault, other] {
                try await vault.put(item("a", [2]), id, in: "notes")
                try await vault.importDocuments(from: file)
                copies.formUnion(try await vault.ids("notes").filter { $0 != id })
            }
            #expect(copies.count == 2)
        }
    }

    @Test func `what a manifest says of a file goes with it`() async throws {
        try await withVault { server, vault, file in
            let properties = ["executable": "1", "modified": "1700000000000000000"]
            var ids: [ItemID] = []
            for text in ["#!/bin/sh", String(repeating: "long ", count: 150_000)] {
                let source = AttachmentSource(SecureBytes(copying: Array(text.utf8)))
                let body = try await vault.attach(source, properties: properties).body()
                ids.append(try await vault.put(PlainItem(title: "run", body: body), .random(), in: "files"))
            }
            try await vault.exportDocuments(to: file)
            let laptop = try Device("laptop", server)
            let other = try await Vault.signUp(laptop.settings, userid: "eve@example.org", password: password)
            #expect(try await other.importDocuments(from: file) == DocumentImport(created: 2))
            #expect(try await other.importDocuments(from: file) == DocumentImport(unchanged: 2))
            for id in ids {
                let body = try #require(try await other.item(id)?.body)
                #expect(Attachment(body)?.properties == properties)
                #expect(try await other.wholeItem(id) == vault.wholeItem(id))
            }
        }
    }

    @Test func `without network everything is imported, and sent when the network is back`() async throws {
        try await withVault { server, vault, file in
            let short = item("short", Array("Buy salt.".utf8))
            let long = item("long", [UInt8](repeating: 7, count: 600_000))
            let executable = try await vault.attach(
                AttachmentSource(SecureBytes(copying: Array("#!".utf8))), properties: ["executable": "1"])
            let ids = [
                try await vault.put(short, .random(), in: "notes"),
                try await vault.put(PlainItem(title: "run", body: executable.body()), .random(), in: "files"),
                try await vault.put(
                    PlainItem(title: "long", body: try await vault.attach(AttachmentSource(long.body)).body()),
                    .random(),
                    in: "zzz"),
            ]
            try await vault.exportDocuments(to: file)

            let laptop = try Device("laptop", server)
            let other = try await Vault.signUp(laptop.settings, userid: "eve@example.org", password: password)
            laptop.link.setFate { .losesRequest }
            #expect(try await other.importDocuments(from: file) == DocumentImport(created: 3))
            laptop.link.setFate { .passes }
            #expect(try await other.importDocuments(from: file) == DocumentImport(unchanged: 3))
            try await other.sync()
            #expect(try await other.unsentCount() == 0)
            #expect(try await other.item(ids[0]) == short)
            #expect(try await other.wholeItem(ids[2])?.body == long.body)
            let run = try #require(try await other.item(ids[1]))
            #expect(Attachment(run.body)?.properties["executable"] == "1")
        }
    }

    @Test func `without network documents that are short are all imported`() async throws {
        try await withVault { server, vault, file in
            let notes = [item("a", Array("one".utf8)), item("b", [UInt8](repeating: 7, count: 500_000))]
            for note in notes { try await vault.put(note, .random(), in: "notes") }
            let run = try await vault.attach(
                AttachmentSource(SecureBytes(copying: [UInt8](repeating: 7, count: 10_000))),
                properties: ["executable": "1"])
            try await vault.put(PlainItem(title: "run", body: run.body()), .random(), in: "files")
            try await vault.exportDocuments(to: file)
            let laptop = try Device("laptop", server)
            let other = try await Vault.signUp(laptop.settings, userid: "eve@example.org", password: password)
            laptop.link.setFate { .losesRequest }
            #expect(try await other.importDocuments(from: file) == DocumentImport(created: 3))
            #expect(try await other.unsentCount() == 3)
            laptop.link.setFate { .passes }
            try await other.sync()
            #expect(try await other.unsentCount() == 0)
        }
    }

    @Test func `the collection of chunks is not for items`() async throws {
        try await withVault { _, vault, file in
            await #expect(throws: VaultError.self) {
                try await vault.put(item("a", [1]), .random(), in: Attachment.chunkCollection)
            }
            let line = #"{"type":"document","id":"\#(ItemID.random())","collection":"saltern-chunks","text":"a"}"#
            let lines = [#"{"type":"documents","version":1}"#, line, #"{"type":"end","documents":1}"#]
            try Data(lines.map { $0 + "\n" }.joined().utf8).write(to: file)
            await #expect(throws: VaultError.self) { try await vault.importDocuments(from: file) }
            #expect(try await vault.items().isEmpty)
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
                    if case VaultError.invalidDocuments = $0 { true } else { false }
                }
            }
            #expect(try await vault.items().isEmpty)
        }
    }

    private static let marked = Array("saltern-attachment-1\n{\"byteCount\":1}\nBuy salt.".utf8)

    @Test func `content that begins like a manifest is content, also as older versions have put it`() async throws {
        try await withVault { server, vault, file in
            let content = SecureBytes(copying: Self.marked)
            // Also what is a whole manifest is what somebody has written.
            let manifest = try await vault.attach(AttachmentSource(content)).body()
            let old = try await vault.put(PlainItem(title: "old", body: content), .random(), in: "files")
            var put: [ItemID: SecureBytes] = [old: content]
            for body in [content, manifest] {
                let item = PlainItem(title: "\(body.count)", body: try await vault.body(holding: body))
                put[try await vault.put(item, .random(), in: "notes")] = body
            }
            for (id, body) in put { #expect(try await vault.wholeItem(id)?.body == body) }
            #expect(try await vault.exportDocuments(to: file) == DocumentExport(documents: 3))
            #expect(try await vault.importDocuments(from: file) == DocumentImport(unchanged: 3))
            let laptop = try Device("laptop", server)
            let other = try await Vault.signUp(laptop.settings, userid: "eve@example.org", password: password)
            #expect(try await other.importDocuments(from: file) == DocumentImport(created: 3))
            #expect(try await other.importDocuments(from: file) == DocumentImport(unchanged: 3))
            for (id, body) in put { #expect(try await other.wholeItem(id)?.body == body) }
            let plain = SecureBytes(copying: Array("Buy salt.".utf8))
            #expect(try await vault.body(holding: plain) == plain)
        }
    }

    @Test func `an item of which a part is gone is named, and the others are exported`() async throws {
        try await withVault { server, vault, file in
            let long = SecureBytes(copying: [UInt8](repeating: 7, count: 600_000))
            let body = try await vault.attach(AttachmentSource(long)).body()
            // Another account has none of its parts.
            let laptop = try Device("laptop", server)
            let other = try await Vault.signUp(laptop.settings, userid: "eve@example.org", password: password)
            let broken = try await other.put(PlainItem(title: "long", body: body), .random(), in: "files")
            try await other.put(item("good", [1]), .random(), in: "notes")
            let done = try await other.exportDocuments(to: file)
            #expect(done == DocumentExport(documents: 1, unreadable: [broken]))
            // Without network nobody knows whether it is gone.
            laptop.link.setFate { .losesRequest }
            let next = file.deletingLastPathComponent().appending(path: "next")
            await #expect {
                try await other.exportDocuments(to: next)
            } throws: { if case VaultError.unavailable = $0 { true } else { false } }
            #expect(!FileManager.default.fileExists(atPath: next.path))
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
