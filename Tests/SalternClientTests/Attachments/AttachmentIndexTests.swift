import Cryptography
import Foundation
import Testing

@testable import SalternClient

/// Who changes an attachment opens the items that have it, and not all others.
///
/// `SALTERN_ATTACHMENT_ITEMS` makes more of those, to see how long it takes.
@Suite struct AttachmentIndexTests {
    private static let count =
        Int(ProcessInfo.processInfo.environment["SALTERN_ATTACHMENT_ITEMS"] ?? "") ?? 40

    private let id = ItemID.random()

    private func content(_ byte: UInt8) -> SecureBytes {
        SecureBytes(copying: [UInt8](repeating: 1, count: 600_000) + [UInt8](repeating: byte, count: 1_000))
    }

    /// An attachment in an item among many others.
    private func withAttachment(
        _ body: (LiveServer, Device, Vault, SalternClient.Attachment) async throws -> Void
    ) async throws {
        try await LiveServer.with { server in
            let phone = try Device("phone", server)
            let vault = try await Vault.signUp(
                phone.settings, userid: "ada@example.org", password: Password("password"))
            let notes = vault.collection("notes", of: Note.self)
            for number in 0..<Self.count { try await notes.put(Note(text: "\(number)")) }
            let made = try await vault.attach(AttachmentSource(content(1)))
            try await vault.put(PlainItem(body: made.body()), id, in: "photos")
            try await vault.sync()
            try await body(server, phone, vault, made)
        }
    }

    /// How many versions are opened by a change, which is put and sent.
    private func change(_ made: SalternClient.Attachment, _ byte: UInt8, _ vault: Vault) async throws -> Int {
        let before = await vault.readCount
        let next = try await vault.attach(AttachmentSource(content(byte)), id: made.id)
        #expect(next.chunks[0] == made.chunks[0])
        let count = await vault.readCount - before
        #expect(count > 0)
        try await vault.put(PlainItem(body: next.body()), id, in: "photos")
        try await vault.sync()
        return count
    }

    @Test func `on the device that made it, and on another one`() async throws {
        try await withAttachment { server, _, vault, made in
            let start = ContinuousClock.now
            _ = try await vault.everyChunk()
            print("all of \(Self.count) items opened: \(ContinuousClock.now - start)")
            for byte: UInt8 in 2...3 { #expect(try await change(made, byte, vault) <= 2) }
            let laptop = try Device("laptop", server)
            let other = try await Vault.logIn(
                laptop.settings, userid: "ada@example.org", password: Password("password"))
            try await other.sync()
            for byte: UInt8 in 4...5 {
                let start = ContinuousClock.now
                #expect(try await change(made, byte, other) <= 2)
                print("a change among \(Self.count) items: \(ContinuousClock.now - start)")
            }
            #expect(try await other.manifests(of: made.id).count == 1)
        }
    }

    @Test func `a store of before looks once`() async throws {
        try await withAttachment { _, phone, vault, made in
            try await vault.put(PlainItem(body: made.body()), .random(), in: "photos")
            try await vault.forgetIndex()
            await vault.closeStore()
            let again = try #require(try await Vault.resume(phone.settings))
            let start = ContinuousClock.now
            #expect(try await again.manifests(of: made.id).count == 2)
            print("the first look at \(Self.count) items: \(ContinuousClock.now - start)")
            #expect(await again.readCount >= Self.count)
            #expect(try await change(made, 2, again) <= 4)
        }
    }

    @Test func `what is in the trash, or was changed here, is found, and what is gone is not looked for`() async throws
    {
        try await withAttachment { _, _, vault, made in
            try await vault.delete(id)
            #expect(try await vault.manifests(of: made.id) == [id, id, id])
            try await vault.sync()
            #expect(try await vault.manifests(of: made.id) == [id])
            try await vault.restore(id)
            try await vault.put(PlainItem(body: SecureBytes(copying: [1])), id, in: "photos")
            try await vault.sync()
            #expect(try await vault.manifests(of: made.id) == [])
            let before = await vault.readCount
            #expect(try await vault.manifests(of: made.id) == [])
            #expect(await vault.readCount == before)
        }
    }

    @Test func `who looks for what the server has lost opens what names chunks, each time until it is there`()
        async throws
    {
        try await withAttachment { _, _, vault, made in
            // Short, so it is in its manifest and names none.
            for byte: UInt8 in 1...5 {
                let short = try await vault.attach(AttachmentSource(SecureBytes(copying: [byte])))
                try await vault.put(PlainItem(body: short.body()), .random(), in: "photos")
            }
            try await vault.sync()
            #expect(try await vault.attachmentsLackingChunks() == [])
            try await vault.lose(made.chunks[0])
            #expect(try await vault.attachmentsLackingChunks() == [made])
            for _ in 1...3 {
                let before = await vault.readCount
                #expect(try await vault.attachmentsLackingChunks() == [made])
                #expect(await vault.readCount - before == 1)
            }
            try await OwnedItems(vault).supply(made, from: AttachmentSource(content(1)))
            #expect(try await vault.attachmentsLackingChunks() == [])
            let before = await vault.readCount
            #expect(try await vault.attachmentsLackingChunks() == [])
            #expect(await vault.readCount == before)
        }
    }
}

extension Vault {
    /// Notes that the server has it no more.
    fileprivate func lose(_ chunk: ItemID) throws { try store.loseChunk(chunk) }

    /// The items of an attachment's manifests, once for each version.
    fileprivate func manifests(of attachment: ItemID) throws -> [ItemID] {
        var ids: [ItemID] = []
        #expect(try attachments.index.forEachManifest(of: attachment, engine.sealer) { id, _, _ in ids.append(id) })
        return ids
    }

    fileprivate func everyChunk() throws -> Int { try attachments.index.namedChunks(engine.sealer).named.count }

    /// The store is as it was made before there was an index.
    fileprivate func forgetIndex() throws {
        for statement in [
            "DROP TABLE manifests", "DROP TABLE unread_items", "ALTER TABLE folders DROP COLUMN held",
        ] {
            try store.database.execute(statement)
        }
        // The step that makes the index, as it is carried out in a store of before; later steps are done.
        let step = try #require(StoreSchema.steps.first { $0.contains("CREATE TABLE manifests") })
        for statement in StoreSchema.statements(of: step) { try store.database.execute(statement) }
    }

    fileprivate func closeStore() { store.close() }
}
