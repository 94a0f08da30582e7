import Cryptography
import Foundation
import SalternTesting
import Synchronization
import Testing

@testable import SalternClient

/// What keeps a chunk from being swept, one by one; ``SweepPropertyTests`` has them in random order.
@Suite struct SweepReferenceTests {
    private let userid = "ada@example.org"
    private let password = Password("password")
    private static let item = ItemID.random()
    private let content = SecureBytes(copying: [UInt8](repeating: 7, count: 600_000))

    private func withPhone(_ body: (LiveServer, Device, Vault) async throws -> Void) async throws {
        try await LiveServer.with { server in
            var phone = try Device("phone", server)
            // Nothing is read but what the server has.
            phone.settings.attachments = AttachmentStorage(waitingByteLimit: 0, copiedByteLimit: 0)
            try await body(
                server, phone, try await Vault.signUp(phone.settings, userid: userid, password: password))
        }
    }

    private func put(_ body: SecureBytes, _ vault: Vault, _ id: ItemID = item) async throws {
        try await vault.put(PlainItem(body: body), id, in: "photos")
    }

    /// Sweeps after so many days of the store's age.
    private func sweep(_ vault: Vault, _ days: Double) async throws -> Int {
        try await vault.sweepChunks(
            at: Date().addingTimeInterval(days * 86_400), age: 1 + Int64(days * 86_400))
    }

    @Test func `a version that was replaced keeps its chunks, and postpones nothing`() async throws {
        try await withPhone { _, _, vault in
            let made = try await vault.attach(AttachmentSource(content))
            try await put(made.body(), vault)
            try await vault.sync()
            try await put(SecureBytes(copying: [1]), vault)
            try await vault.sync()
            #expect(try await sweep(vault, 0) == 0)
            // The version came to be kept later than the chunks lost their name.
            try await vault.keepVersionsLonger(by: 20 * 86_400)
            #expect(try await sweep(vault, 40) == 0)
            let version = try #require(await vault.replacedVersions(of: Self.item).last)
            let kept = try await vault.item(Self.item, replaced: version.number)
            #expect(try await vault.content(of: try #require(SalternClient.Attachment(kept.body))) == content)
            #expect(try await sweep(vault, 51) == 2)
        }
    }

    @Test func `what was sent weeks ago for no item yet is sent again, so no other device sweeps it`() async throws {
        try await withPhone { server, _, phone in
            let id = ItemID.random()
            let begun = try await phone.attach(AttachmentSource(content), id: id)
            let laptop = try await Vault.logIn(
                Device("laptop", server).settings, userid: userid, password: password)
            try await laptop.sync()
            #expect(try await laptop.sweepChunks(at: Date(), age: 1) == 0)
            try await server.makeChunksOlder(days: 29)
            for vault in [phone, laptop] { try await vault.makeChunksOlder(days: 29) }
            let made = try await phone.attach(AttachmentSource(content), id: id)
            #expect(made.chunks == begun.chunks)
            try await put(made.body(), phone)
            // The laptop has found no name for 31 days, and the phone has not sent its item for 2.
            let later = Date().addingTimeInterval(2 * 86_400)
            #expect(try await laptop.sweepChunks(at: later, age: 1 + 31 * 86_400) == 0)
            #expect(try await phone.content(of: made) == content)
        }
    }

    @Test func `what was sent again for no item is still taken back`() async throws {
        try await withPhone { server, _, phone in
            let id = ItemID.random()
            _ = try await phone.attach(AttachmentSource(content), id: id)
            try await server.makeChunksOlder(days: 29)
            try await phone.makeChunksOlder(days: 29)
            _ = try await phone.attach(AttachmentSource(content), id: id)
            #expect(try await phone.account().usage.items == 2)
            try await phone.abandonAttachment(id)
            #expect(try await phone.account().usage.items == 0)
        }
    }

    /// Why a version does not open here.
    enum Obstacle: CaseIterable {
        case isDamaged, isOfLaterFormat
    }

    @Test(arguments: Obstacle.allCases)
    func `a version on the server that does not open here keeps every chunk`(_ obstacle: Obstacle) async throws {
        try await withPhone { server, phone, vault in
            let made = try await vault.attach(AttachmentSource(content))
            try await put(made.body(), vault, .random())
            try await put(SecureBytes(copying: [1]), vault)
            try await vault.sync()
            // Another device names the chunks in an item that this one knows, and this one cannot open that version.
            let other = try await Vault.logIn(Device("laptop", server).settings, userid: userid, password: password)
            try await other.sync()
            try await put(made.body(), other)
            for id in try await other.ids("photos") where id != Self.item { try await other.delete(id) }
            try await other.sync()
            phone.link.setRewrite { _, reply in Self.hiding(Self.item, in: reply, obstacle) }
            try await vault.sync()
            for days in [0, 400, 800.0] { #expect(try await sweep(vault, days) == 0) }
            // The person has seen the notice, and the trash is empty.
            for notice in try await vault.notices() { try await vault.forget(notice) }
            try await vault.emptyTrash()
            for days in [1_200, 1_600.0] { #expect(try await sweep(vault, days) == 0) }
            phone.link.setRewrite { $1 }
            #expect(try await other.content(of: made) == content)
        }
    }

    /// Changes an item in a page of changes so that it does not open.
    private static func hiding(_ id: ItemID, in reply: HTTPReply, _ obstacle: Obstacle) -> HTTPReply {
        guard var page = try? JSONSerialization.jsonObject(with: Data(reply.body)) as? [String: Any],
            var changes = page["changes"] as? [[String: Any]]
        else { return reply }
        for index in changes.indices where changes[index]["id"] as? String == id.description {
            guard let text = changes[index]["body"] as? String, var body = Data(base64Encoded: text) else { continue }
            if obstacle == .isOfLaterFormat {
                changes[index]["format"] = "saltern-2"
                continue
            }
            body[body.count - 1] ^= 1
            changes[index]["body"] = body.base64EncodedString()
        }
        page["changes"] = changes
        return HTTPReply(
            head: reply.head, body: Array((try? JSONSerialization.data(withJSONObject: page)) ?? Data()))
    }

    @Test(arguments: [
        "later manifest", "later attachment", "encoding that is not known",
    ])
    func `an item of a later kit keeps every chunk`(kind: String) async throws {
        try await withPhone { _, _, vault in
            let made = try await vault.attach(AttachmentSource(content))
            let manifest = made.body().withUnsafeBytes { String(decoding: $0, as: UTF8.self) }
            let body: SecureBytes =
                switch kind {
                case "later manifest":
                    SecureBytes(copying: manifest.replacing("attachment-1\n", with: "attachment-2\n").utf8)
                case "later attachment":
                    SecureBytes(
                        copying: String(decoding: try JSONEncoder().encode([made]), as: UTF8.self)
                            .replacing(#""saltern-attachment":1"#, with: #""saltern-attachment":2"#).utf8)
                default: SecureBytes(copying: [0xff] + Array("saltern-attachment".utf8) + Array(manifest.utf8))
                }
            try await put(body, vault)
            try await vault.sync()
            for days in [0, 400, 800.0] { #expect(try await sweep(vault, days) == 0) }
            #expect(try await vault.content(of: made) == content)
        }
    }

    @Test func `content that waits here is kept while there is an item in a format that no kit of now writes`()
        async throws
    {
        try await LiveServer.with { server in
            let phone = try Device("phone", server)
            let vault = try await Vault.signUp(phone.settings, userid: userid, password: password)
            phone.link.setUnreachable(true)
            let made = try await vault.attach(AttachmentSource(content))
            let strange = ItemID.random()
            try await vault.keep(strange, format: "saltern-2")
            for days in [0, 40, 80] as [Int64] { try await vault.forgetUnnamedWaiting(at: 1 + days * 86_400) }
            #expect(try await vault.content(of: made) == content)
            try await vault.keep(strange, format: "aes-256-gcm")
            for days in [120, 160] as [Int64] { try await vault.forgetUnnamedWaiting(at: 1 + days * 86_400) }
            #expect(try await vault.attachmentUsage().waitingByteCount == 0)
        }
    }

    @Test func `an upload that was given up is not taken back while there is an item in such a format`() async throws {
        try await withPhone { _, _, vault in
            let id = ItemID.random()
            let made = try await vault.attach(AttachmentSource(content), id: id)
            let strange = ItemID.random()
            try await vault.keep(strange, format: "saltern-2")
            try await vault.abandonAttachment(id)
            #expect(try await vault.content(of: made) == content)
            try await vault.keep(strange, format: "aes-256-gcm")
            try await vault.abandonAttachment(id)
            #expect(try await vault.account().usage.items == 0)
        }
    }

    @Test func `an item in a format that no kit of now writes keeps every chunk, one of other clients does not`()
        async throws
    {
        try await withPhone { _, _, vault in
            let made = try await vault.attach(AttachmentSource(content))
            let strange = ItemID.random()
            try await vault.keep(strange, format: "saltern-2")
            for days in [0, 400, 800.0] { #expect(try await sweep(vault, days) == 0) }
            try await vault.keep(strange, format: "aes-256-gcm")
            #expect(try await sweep(vault, 1_200) == 2)
            #expect(made.chunks.count == 2)
        }
    }

    @Test func `a sync removes a limited number, and the next one goes on`() async throws {
        try await withPhone { server, phone, vault in
            try await server.database.administer("UPDATE saltern.plans SET max_item_bytes = 12000")
            let count = ChunkSweeper.sweepLimit + 20
            let bytes = (0..<(count * 2_048)).map { UInt8(truncatingIfNeeded: $0 / 2_048) }
            let made = try await vault.attach(AttachmentSource(SecureBytes(copying: bytes)))
            #expect(made.pieceCount == count)
            let deleted = Mutex(0)
            phone.link.setAnswer { request in
                if request.method == .delete { deleted.withLock { $0 += 1 } }
                return nil
            }
            let now = Date()
            var counts: [Int] = []
            for days in [0, 40, 40, 40] as [Int64] {
                _ = await vault.sweepWhenDue(
                    at: now.addingTimeInterval(Double(days) * 86_400), age: 1 + days * 86_400)
                counts.append(
                    deleted.withLock { deleted in
                        defer { deleted = 0 }
                        return deleted
                    })
            }
            #expect(counts == [0, ChunkSweeper.sweepLimit, 20, 0])
        }
    }
}

extension Vault {
    /// Replaced versions are removed so many seconds of the store's age later than they would be.
    fileprivate func keepVersionsLonger(by seconds: Int64) throws {
        try store.database.execute(
            "UPDATE aging SET since = since + ? WHERE kind = 'versions'", .integer(seconds))
    }

    fileprivate func emptyTrash() throws { try store.database.execute("DELETE FROM trash") }

    fileprivate func keep(_ id: ItemID, format: String) throws {
        let content = ItemContent(collection: "photos", format: format, body: [UInt8](repeating: 7, count: 96))
        try store.put(StoredItem(id: id, revision: Revision(1), content: content, edit: 0), listing: 0)
    }
}
