import Cryptography
import Foundation
import SalternTesting
import Testing

@testable import SalternClient

/// The items of a shared vault, with members that have accounts of their own. The log of the vault is in memory.
@Suite struct SharedItemsTests {
    private struct Member {
        let device: Device
        let vault: Vault
        let notes: VaultCollection<Note>
        let items: OwnedItems

        init(_ name: String, _ number: UInt8, _ shared: TestVault, _ server: LiveServer) async throws {
            device = try Device(name, server)
            device.link.change(to: shared.routes(try CurlTransport(server.address())))
            vault = try await Vault.signUp(
                device.settings, userid: "\(name)-\(UUID().uuidString.lowercased())@example.org",
                password: Password("password"))
            await vault.join(shared, as: number)
            items = OwnedItems(vault, of: .vault(shared.id))
            notes = VaultCollection(name: "notes", vault: vault, owner: items.owner, schema: ItemSchema())
        }

        func sync() async throws -> SyncReport { try await vault.sync().of(items.owner) }
    }

    private func with(_ body: (TestVault, Member, Member) async throws -> Void) async throws {
        try await LiveServer.with { server in
            let shared = try await TestVault("vault-\(UUID().uuidString.lowercased())@example.org", server)
            try await body(
                shared, try await Member("ada", 1, shared, server), try await Member("bob", 2, shared, server))
        }
    }

    @Test func `a member reads the items of another one, and each account keeps its own`() async throws {
        try await with { _, ada, bob in
            let id = try await ada.notes.put(Note(text: "Buy salt."), title: "Shopping")
            try await ada.vault.collection("notes", of: Note.self).put(Note(text: "mine"))
            #expect(try await ada.sync().sent == 1)
            #expect(try await bob.sync().fetched == 1)
            #expect(try await bob.notes.all() == [id: Note(text: "Buy salt.")])
            #expect(try await bob.vault.ids("notes") == [])
            #expect(try await ada.vault.ids("notes").count == 1)
            let author = try await bob.items.perform { _, items in try items.author(of: id) }
            #expect(author == ItemAuthor(member: [UInt8](repeating: 1, count: 16), name: "member 1", isOwn: false))
        }
    }

    @Test func `edits of two members at once are both kept`() async throws {
        try await with { _, ada, bob in
            let id = try await ada.notes.put(Note(text: "one"))
            _ = try await ada.sync()
            _ = try await bob.sync()
            try await ada.notes.put(Note(text: "two"), id)
            try await bob.notes.put(Note(text: "three"), id)
            _ = try await ada.sync()
            _ = try await bob.sync()
            _ = try await ada.sync()
            #expect(try await ada.notes.all() == bob.notes.all())
            #expect(Set(try await ada.notes.all().values.map(\.text)) == ["two", "three"])
            #expect(try await bob.items.notices().map(\.kind) == [.conflict])
            #expect(try await bob.vault.notices().isEmpty)
        }
    }

    @Test func `an unsent edit gets the key of the present generation`() async throws {
        try await with { shared, ada, bob in
            let id = try await ada.notes.put(Note(text: "one"))
            _ = try await ada.sync()
            _ = try await bob.sync()
            try await bob.notes.put(Note(text: "two"), id)
            shared.rotate()
            // It learns of the new key from an item under it.
            let key = shared.sealing([]).keys[1].id
            try await ada.items.learn()
            try await ada.notes.put(Note(text: "new"))
            _ = try await ada.sync()
            _ = try await bob.sync()
            _ = try await ada.sync()
            #expect(try await ada.notes[id] == Note(text: "two"))
            let sealed = try await ada.items.perform { store, _ in try store.item(id)?.content.body.bytes ?? [] }
            #expect(try SealedBox.keyID(of: sealed) == key)
        }
    }

    @Test func `a version that does not count leaves the known one`() async throws {
        try await with { shared, ada, bob in
            let id = try await ada.notes.put(Note(text: "one"))
            _ = try await ada.sync()
            _ = try await bob.sync()
            // Bob's device does not have the entry that made him a reader.
            shared.lower([UInt8](repeating: 2, count: 16))
            shared.rotate()
            try await ada.items.learn()
            try await bob.notes.put(Note(text: "two"), id)
            let other = try await bob.notes.put(Note(text: "three"))
            #expect(try await bob.sync().sent == 2)
            _ = try await ada.sync()
            #expect(try await ada.notes[id] == Note(text: "one"))
            #expect(try await ada.notes[other] == nil)
            #expect(try await ada.notes.contents().unreadable.isEmpty)
            #expect(try await ada.items.notices().map(\.kind) == [.unreadable, .unreadable])
        }
    }

    @Test func `a reader sends nothing, and unsent edits stay on the device`() async throws {
        try await with { shared, ada, bob in
            let id = try await ada.notes.put(Note(text: "one"))
            _ = try await ada.sync()
            _ = try await bob.sync()
            try await bob.notes.put(Note(text: "two"), id)
            let other = try await bob.notes.put(Note(text: "three"))
            shared.lower([UInt8](repeating: 2, count: 16))
            try await bob.items.learn()
            #expect(try await bob.sync().sent == 0)
            #expect(try await bob.notes.all() == [id: Note(text: "one")])
            #expect(try await bob.items.deletedItems().map(\.id) == [other])
            let version = try #require(try await bob.items.replacedVersions(of: id).first)
            #expect(try await bob.items.item(id, replaced: version.number).body.count > 0)
            await #expect(throws: VaultError.self) { try await bob.notes.put(Note(text: "four")) }
            await #expect(throws: VaultError.self) { try await bob.notes.delete(id) }
            #expect(try await bob.items.unsentCount() == 0)
        }
    }

    @Test func `items stay readable after the membership has ended`() async throws {
        try await with { shared, ada, bob in
            let id = try await ada.notes.put(Note(text: "one"))
            _ = try await ada.sync()
            _ = try await bob.sync()
            let path = ItemOwner.vault(shared.id).path
            bob.device.link.setAnswer { request in
                guard request.target.hasPrefix(path) else { return nil }
                let body = #"{"type":"about:blank","title":"Not Found","status":404,"code":"not_found"}"#
                return HTTPReply(head: HTTPReplyHead(status: 404, fields: []), body: Array(body.utf8))
            }
            try await bob.vault.collection("notes", of: Note.self).put(Note(text: "mine"))
            #expect(try await bob.vault.sync().sent == 1)
            #expect(await bob.vault.endings() == 1)
            #expect(try await bob.notes[id] == Note(text: "one"))
        }
    }

    @Test func `attachments and documents are those of the vault`() async throws {
        try await with { _, ada, bob in
            let content = SecureBytes(copying: [UInt8](repeating: 7, count: 700_000))
            let source = AttachmentSource(content)
            let attachment = try await ada.items.attach(source, AttachmentDraft(nil), properties: [:])
            let id = ItemID.random()
            try await ada.items.put(PlainItem(title: "long", body: attachment.body()), id, in: "files")
            _ = try await ada.sync()
            _ = try await bob.sync()
            #expect(try await bob.items.wholeItem(id) == PlainItem(title: "long", body: content))
            let folder = try TemporaryDirectory()
            let file = URL(filePath: folder.path + "/documents.ndjson")
            #expect(try await bob.items.exportDocuments(to: file).documents == 1)
            #expect(try await ada.items.importDocuments(from: file).unchanged == 1)
            #expect(try await ada.vault.importDocuments(from: file).created == 1)
            #expect(try await ada.vault.ids("files") == [id])
        }
    }

    @Test func `content that waits is sent under the present key`() async throws {
        try await with { shared, ada, bob in
            _ = try await bob.sync()
            let content = SecureBytes(copying: [UInt8](repeating: 7, count: 700_000))
            bob.device.link.setUnreachable(true)
            let attachment = try await bob.items.attach(
                AttachmentSource(content), AttachmentDraft(nil), properties: [:])
            let id = ItemID.random()
            try await bob.items.put(PlainItem(title: "long", body: attachment.body()), id, in: "files")
            bob.device.link.setUnreachable(false)
            shared.rotate()
            try await ada.items.learn()
            try await ada.notes.put(Note(text: "new"))
            _ = try await ada.sync()
            _ = try await bob.sync()
            let chunk = try #require(attachment.chunks.first)
            let sealed = try #require(try await bob.items.perform { store, _ in try store.chunkContent(chunk) })
            #expect(try SealedBox.keyID(of: sealed.body.bytes) == shared.sealing([]).keys[1].id)
            _ = try await ada.sync()
            #expect(try await ada.items.wholeItem(id)?.body == content)
        }
    }

    @Test func `members sync a folder`() async throws {
        try await with { _, ada, bob in
            let (here, there) = (try TemporaryDirectory(.memory), try TemporaryDirectory(.memory))
            try Data("salt".utf8).write(to: URL(filePath: here.path + "/list.txt"))
            func run(_ member: Member, _ folder: TemporaryDirectory) async throws -> FolderReport {
                try await FolderSync(member.items, root: URL(filePath: folder.path), settings: FolderSettings()).run()
            }
            #expect(try await run(ada, here).uploaded.map(\.text) == ["list.txt"])
            #expect(try await run(bob, there).downloaded.map(\.text) == ["list.txt"])
            #expect(try await bob.vault.ids("files") == [])
            try Data("pepper".utf8).write(to: URL(filePath: here.path + "/list.txt"))
            try Data("flour".utf8).write(to: URL(filePath: there.path + "/list.txt"))
            _ = try await run(ada, here)
            let copy = try #require(try await run(bob, there).conflicts.first)
            #expect(copy.text.hasPrefix("list (conflict, member 2, "))
            // The same folder is not that of the account.
            await #expect(throws: FolderError.self) {
                try await FolderSync(vault: bob.vault, root: URL(filePath: there.path)).run()
            }
        }
    }
}
