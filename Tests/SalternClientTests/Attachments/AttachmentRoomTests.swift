import Cryptography
import Foundation
import SalternTesting
import Synchronization
import Testing

@testable import SalternClient

/// Long content and a plan that is too small for it, against a real server.
@Suite struct AttachmentRoomTests {
    private static let piece = SalternClient.Attachment.chunkByteCount
    private let password = Password("password")
    private static let item = ItemID.random()

    private func withPhone(_ body: (Vault, Device, LiveServer, SentChunks) async throws -> Void) async throws {
        try await LiveServer.with { server in
            var phone = try Device("phone", server)
            phone.settings.attachments = AttachmentStorage(waitingByteLimit: 0, copiedByteLimit: 0)
            let vault = try await Vault.signUp(phone.settings, userid: "ada@example.org", password: password)
            try await body(vault, phone, server, SentChunks(phone.link))
        }
    }

    /// What makes the plan have room for so much beside what is there.
    private func leave(
        _ server: LiveServer, _ vault: Vault, items: Int64 = 1_000, itemBytes: Int64 = 1_048_576,
        bytes: Int64 = 100_000_000
    ) async throws {
        let usage = try await vault.account().usage
        try await server.database.administer(
            """
            UPDATE saltern.plans SET max_items = \(usage.items + items), max_item_bytes = \(itemBytes),
                max_bytes = \(usage.bytes + bytes)
            """)
    }

    /// Content in which no two chunks are equal.
    private func content(pieces: Int, seed: UInt8 = 1) -> SecureBytes {
        var bytes = [UInt8](repeating: 7, count: pieces * Self.piece)
        for piece in 0..<pieces { bytes[piece * Self.piece] = seed &+ UInt8(piece) }
        return SecureBytes(copying: bytes)
    }

    private func shortage(_ body: () async throws -> Void) async -> PlanShortage? {
        do { try await body() } catch VaultError.noRoom(let shortage) { return shortage } catch {
            Issue.record("\(error)")
        }
        return nil
    }

    @Test func `what the plan has no room for is refused before its first chunk, with numbers`() async throws {
        try await withPhone { vault, _, server, sent in
            let source = AttachmentSource(content(pieces: 4))
            try await leave(server, vault, bytes: 2_000_000)
            let bytes = try #require(await shortage { _ = try await vault.attach(source, id: .random()) })
            #expect(bytes.limit == .bytes)
            #expect(bytes.free == 2_000_000)
            #expect((4 * 524_288..<2_300_000).contains(bytes.needed))
            try await leave(server, vault, items: 4)
            let items = try #require(await shortage { _ = try await vault.attach(source) })
            #expect((items.limit, items.needed, items.free) == (.items, 5, 4))
            // A manifest that is longer than an item may be, and items in which no chunk fits.
            try await leave(server, vault, items: 100_000, itemBytes: 12_000)
            let many = AttachmentSource(byteCount: 20_000_000) { SecureBytes(count: $1 + Int($0) * 0) { _ in } }
            let manifest = await shortage { _ = try await vault.attach(many) }
            #expect(manifest?.limit == .itemBytes)
            try await leave(server, vault, itemBytes: 8_000)
            let chunk = await shortage { _ = try await vault.attach(source) }
            #expect(chunk?.limit == .itemBytes)
            #expect(sent.take() == 0)
            #expect(try await vault.account().usage.items == 0)
            // Nothing of it has to be read, nor fit in a number.
            let endless = AttachmentSource(byteCount: .max) { _, _ in throw StoreError.unusable }
            try await leave(server, vault)
            let all = await shortage { _ = try await vault.attach(endless, id: .random()) }
            #expect(all?.needed == .max)
        }
    }

    @Test func `what fits exactly goes up with its manifest`() async throws {
        try await withPhone { vault, _, server, _ in
            let properties = ["name": "\u{1}ä/\"", "empty": ""]
            let size = AttachmentSize(
                of: Int64(3 * Self.piece), chunkByteCount: Self.piece, properties: properties)
            try await leave(server, vault, items: size.itemCount, bytes: size.byteCount)
            let made = try await vault.attach(AttachmentSource(content(pieces: 3)), properties: properties)
            try await vault.put(PlainItem(title: "photo", body: made.body()), Self.item, in: "photos")
            #expect(try await vault.sync().unsent == 0)
            let usage = try await vault.account().usage
            #expect(usage.items == size.itemCount)
            #expect((size.byteCount - 2_000...size.byteCount).contains(usage.bytes))
        }
    }

    @Test func `a change, and what was interrupted, need room for what is missing`() async throws {
        try await withPhone { vault, _, server, sent in
            let id = ItemID.random()
            let task = Task {
                try await vault.attach(AttachmentSource(content(pieces: 4)), id: id) { progress in
                    if progress.byteCount == 3 * Int64(Self.piece) { withUnsafeCurrentTask { $0?.cancel() } }
                }
            }
            await #expect { try await task.value } throws: { ($0 as? VaultError)?.isCancellation == true }
            #expect(sent.take() == 3)
            try await leave(server, vault, bytes: 600_000)
            let made = try await vault.attach(AttachmentSource(content(pieces: 4)), id: id)
            #expect(sent.take() == 1)
            try await vault.put(PlainItem(body: made.body()), Self.item, in: "photos")
            try await vault.sync()
            try await leave(server, vault, bytes: 600_000)
            var bytes = content(pieces: 4).withUnsafeBytes { [UInt8]($0) }
            bytes[600_000] ^= 1
            let next = try await vault.attach(AttachmentSource(SecureBytes(copying: bytes)), id: id)
            #expect(Set(next.chunks).subtracting(made.chunks).count == 1)
            #expect(sent.take() == 1)
            // Two of them are one too many: nothing is sent, and what there is stays.
            try await leave(server, vault, bytes: 600_000)
            for place in [0, 600_000] { bytes[place] ^= 2 }
            let shortage = await shortage {
                _ = try await vault.attach(AttachmentSource(SecureBytes(copying: bytes)), id: id)
            }
            #expect(shortage.map { (1_048_576..<1_200_000).contains($0.needed) } == true)
            #expect(sent.take() == 0)
            #expect(try await vault.content(of: made) == content(pieces: 4))
        }
    }

    @Test func `a change of an item needs no room for another one`() async throws {
        try await withPhone { vault, _, server, _ in
            let made = try await vault.attach(AttachmentSource(content(pieces: 2)))
            try await vault.put(PlainItem(body: made.body()), Self.item, in: "photos")
            try await vault.sync()
            let size = AttachmentSize(of: Int64(Self.piece), chunkByteCount: Self.piece, properties: [:])
            try await leave(server, vault, items: 1, bytes: size.byteCount)
            var bytes = content(pieces: 2).withUnsafeBytes { [UInt8]($0) }
            bytes[600_000] ^= 1
            let next = try await vault.attach(AttachmentSource(SecureBytes(copying: bytes)), id: made.id)
            try await vault.put(PlainItem(body: next.body()), Self.item, in: "photos")
            #expect(try await vault.sync().unsent == 0)
            // As long as the item is not on the server, it does.
            try await leave(server, vault, items: 3)
            let new = try await vault.attach(AttachmentSource(content(pieces: 2, seed: 50)))
            try await vault.put(PlainItem(body: new.body()), .random(), in: "photos")
            let shortage = await shortage {
                _ = try await vault.attach(AttachmentSource(content(pieces: 2, seed: 60)), id: new.id)
            }
            #expect(shortage.map { [$0.needed, $0.free] } == [3, 1])
        }
    }

    @Test(arguments: [true, false])
    func `what runs out of room on its way is taken back`(isResumable: Bool) async throws {
        try await withPhone { vault, device, server, sent in
            // First the plan is asked for.
            device.link.interrupt(
                LossyTransport.Interruption(exchange: 3, moment: .beforeRequest) {
                    try? await server.database.administer("UPDATE saltern.plans SET max_bytes = 1200000")
                })
            let id = isResumable ? ItemID.random() : nil
            let shortage = await shortage {
                _ = try await vault.attach(AttachmentSource(content(pieces: 4)), id: id)
            }
            #expect(shortage?.limit == .bytes)
            #expect(shortage?.free == 1_200_000)
            #expect(sent.take() == 3)
            let usage = try await vault.account().usage
            #expect(usage.items == 0)
            #expect(try await vault.chunksAndDrafts() == [])
        }
    }

    @Test func `what a change has sent is taken back, and what the version before has is not`() async throws {
        try await withPhone { vault, device, server, sent in
            let made = try await vault.attach(AttachmentSource(content(pieces: 2)))
            try await vault.put(PlainItem(body: made.body()), Self.item, in: "photos")
            try await vault.sync()
            let usage = try await vault.account().usage
            device.link.interrupt(
                LossyTransport.Interruption(exchange: 2, moment: .beforeRequest) {
                    try? await server.database.administer(
                        "UPDATE saltern.plans SET max_bytes = \(usage.bytes + 600_000)")
                })
            _ = sent.take()
            let other = AttachmentSource(content(pieces: 3, seed: 100))
            let shortage = await shortage { _ = try await vault.attach(other, id: made.id) }
            #expect(shortage != nil)
            #expect(sent.take() == 2)
            #expect(try await vault.account().usage.items == usage.items)
            try await vault.abandonAttachment(made.id)
            #expect(try await vault.account().usage.items == usage.items)
            #expect(try await vault.content(of: made) == content(pieces: 2))
        }
    }

    @Test func `without an id nobody can go on, so what was sent is taken back, at the latest with the next one`()
        async throws
    {
        try await withPhone { vault, device, server, sent in
            func cancelled(_ onStep: @escaping @Sendable () -> Void = {}) async {
                let task = Task {
                    try await vault.attach(AttachmentSource(content(pieces: 4))) { progress in
                        guard progress.byteCount == 3 * Int64(Self.piece) else { return }
                        onStep()
                        withUnsafeCurrentTask { $0?.cancel() }
                    }
                }
                await #expect { try await task.value } throws: { ($0 as? VaultError)?.isCancellation == true }
            }
            await cancelled()
            #expect(try await vault.account().usage.items == 0)
            #expect(sent.take() == 3)
            await cancelled { device.link.setUnreachable(true) }
            device.link.setUnreachable(false)
            #expect(try await vault.account().usage.items == 3)
            // It is what has no room for the next one.
            try await leave(server, vault, bytes: 2_000_000)
            _ = try await vault.attach(AttachmentSource(content(pieces: 4)))
            #expect(try await vault.account().usage.items == 4)
            try await leave(server, vault)
            await cancelled { device.link.setUnreachable(true) }
            device.link.setUnreachable(false)
            #expect(try await vault.account().usage.items == 7)
            try await vault.sweepChunks()
            #expect(try await vault.account().usage.items == 4)
        }
    }

    @Test func `a reply that was lost hides no chunk from who takes it back`() async throws {
        try await withPhone { vault, device, _, _ in
            let id = ItemID.random()
            device.link.setFateFromSecond(.losesReply)
            await #expect(throws: VaultError.self) {
                try await vault.attach(AttachmentSource(self.content(pieces: 2)), id: id)
            }
            device.link.setFate { .passes }
            #expect(try await vault.account().usage.items == 1)
            try await vault.abandonAttachment(id)
            #expect(try await vault.account().usage.items == 0)
            #expect(try await vault.chunksAndDrafts() == [])
        }
    }
}

/// Counts the chunks that are sent.
private final class SentChunks: Sendable {
    private let count = Mutex(0)

    init(_ link: LossyTransport) {
        link.setAnswer { [self] request in
            if request.method == .put, request.target.contains("/body?") { count.withLock { $0 += 1 } }
            return nil
        }
    }

    func take() -> Int {
        count.withLock { count in
            defer { count = 0 }
            return count
        }
    }
}

extension Vault {
    /// What is known to be on the server, and what was noted before it was sent.
    fileprivate func chunksAndDrafts() throws -> [ItemID] {
        try store.chunks().map(\.id)
            + store.database.rows("SELECT chunk FROM draft_chunks") { try Store.id($0, 0) }
    }
}
