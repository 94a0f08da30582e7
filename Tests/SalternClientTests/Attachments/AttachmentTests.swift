import Cryptography
import Foundation
import SalternTesting
import Synchronization
import Testing

@testable import SalternClient

/// Long content beside items, against a real server.
@Suite struct AttachmentTests {
    private let password = Password("password")
    private static let item = ItemID.random()

    private func withPair(_ body: (Vault, Vault, Device, Device) async throws -> Void) async throws {
        try await LiveServer.with { server in
            var phone = try Device("phone", server)
            var laptop = try Device("laptop", server)
            // Everything is sent and fetched; ``OfflineAttachmentTests`` has what is kept.
            phone.settings.attachments = AttachmentStorage(waitingByteLimit: 0, copiedByteLimit: 0)
            laptop.settings.attachments = phone.settings.attachments
            let first = try await Vault.signUp(phone.settings, userid: "ada@example.org", password: password)
            let second = try await Vault.logIn(laptop.settings, userid: "ada@example.org", password: password)
            try await body(first, second, phone, laptop)
        }
    }

    /// Content in which no two chunks are equal.
    private func content(_ count: Int, seed: UInt64 = 1) -> SecureBytes {
        var random = SeededGenerator(seed: seed)
        return SecureBytes(count: count) { buffer in
            for offset in stride(from: 0, to: count - 7, by: 8) {
                buffer.storeBytes(of: random.next(), toByteOffset: offset, as: UInt64.self)
            }
        }
    }

    private func put(_ attachment: SalternClient.Attachment, _ vault: Vault, _ id: ItemID = item) async throws {
        try await vault.put(PlainItem(title: "photo", body: attachment.body()), id, in: "photos")
    }

    private func attachment(_ vault: Vault, _ id: ItemID = item) async throws -> SalternClient.Attachment {
        let item = try await vault.item(id)
        return try #require(item.flatMap { SalternClient.Attachment($0.body) })
    }

    @Test func `another device has the manifest, and fetches the content when it wants it`() async throws {
        try await withPair { phone, laptop, _, device in
            let content = content(1_300_000)
            let steps = Mutex<[Int64]>([])
            let made = try await phone.attach(AttachmentSource(content), properties: ["name": "ä"]) { progress in
                steps.withLock { $0.append(progress.byteCount) }
            }
            #expect(steps.withLock { $0 } == [524_288, 1_048_576, 1_300_000])
            try await put(made, phone)
            try await phone.sync()
            try await laptop.sync()
            #expect(try await laptop.chunks().map(\.id).sorted() == made.chunks.sorted())
            #expect(try await laptop.ids(SalternClient.Attachment.chunkCollection).isEmpty)
            #expect(try await laptop.item(made.chunks[0]) == nil)
            let there = try await attachment(laptop)
            #expect(there == made)
            #expect(try await laptop.content(of: there) == content)
            let stored = try FileManager.default.contentsOfDirectory(atPath: device.folder.path).filter {
                $0.hasPrefix("store")
            }
            let plain = content.withUnsafeBytes { Data($0.prefix(64)) }
            for file in stored {
                let bytes = try Data(contentsOf: URL(filePath: device.folder.path + "/" + file))
                #expect(bytes.range(of: plain) == nil)
                #expect(bytes.count < 500_000)
            }
        }
    }

    @Test func `short content is in the manifest and needs no network`() async throws {
        try await withPair { phone, laptop, device, _ in
            device.link.setFate { .losesRequest }
            for count in [0, 1, 4_096, 100_000, 524_288] {
                let made = try await phone.attach(AttachmentSource(content(count)))
                #expect(made.pieceCount == 1)
                #expect(SalternClient.Attachment(made.body()) == made)
                #expect(try await phone.content(of: made) == content(count))
            }
            await #expect(throws: VaultError.self) {
                try await phone.attach(AttachmentSource(self.content(524_289)))
            }
            #expect(SalternClient.Attachment(SecureBytes(copying: Array("a note".utf8))) == nil)
        }
    }

    /// Counts the chunks that are sent.
    private func countPuts(_ link: LossyTransport) -> @Sendable () -> [String] {
        let sent = Recorder()
        link.setAnswer { request in
            if request.method == .put { sent.add(request.target) }
            return nil
        }
        return { sent.take() }
    }

    @Test(arguments: [16, 1_300_000])
    func `other content from a source keeps the properties and the id of a manifest`(_ count: Int) async throws {
        try await withPair { phone, _, _, _ in
            let made = try await phone.attach(AttachmentSource(content(16)), properties: ["executable": "1"])
            let source = AttachmentSource(content(count, seed: 2))
            let body = try await phone.body(holding: source, insteadOf: made.body())
            let read = SalternClient.Attachment(body)
            let next = try #require(read)
            #expect(next.id == made.id && next.properties == made.properties)
            #expect(try await phone.content(of: next) == content(count, seed: 2))
            let plain = SecureBytes(copying: Array("note".utf8))
            #expect(try await phone.body(holding: AttachmentSource(plain), insteadOf: content(16)) == plain)
        }
    }

    @Test func `what was cancelled or lost goes on with what is missing`() async throws {
        try await withPair { phone, laptop, device, _ in
            let content = content(5 * 524_288)
            let sent = countPuts(device.link)
            let id = ItemID.random()
            let task = Task {
                try await phone.attach(AttachmentSource(content), id: id) { progress in
                    if progress.byteCount == 2 * 524_288 { withUnsafeCurrentTask { $0?.cancel() } }
                }
            }
            await #expect { try await task.value } throws: { ($0 as? VaultError)?.isCancellation == true }
            #expect(sent().count == 2)
            // Now and then the retry is lost too, and all begins again.
            let random = Mutex(SeededGenerator(seed: 1))
            device.link.setFate {
                random.withLock { random in
                    switch Int.random(in: 0..<6, using: &random) {
                    case 0, 1: .losesReply
                    case 2: .losesRequest
                    default: .passes
                    }
                }
            }
            var made: SalternClient.Attachment?
            for _ in 0..<100 where made == nil {
                made = try? await phone.attach(AttachmentSource(content), id: id)
            }
            device.link.setFate { .passes }
            let attachment = try #require(made)
            #expect(Set(sent()).count <= 3)
            // All of it is there.
            _ = try await phone.attach(AttachmentSource(content), id: id)
            #expect(sent().isEmpty)
            try await put(attachment, phone)
            try await phone.sync()
            try await laptop.sync()
            #expect(try await laptop.content(of: self.attachment(laptop)) == content)
            // A change in one place sends one chunk.
            var bytes = content.withUnsafeBytes { [UInt8]($0) }
            bytes[600_000] ^= 1
            _ = sent()
            let next = try await laptop.attach(AttachmentSource(SecureBytes(copying: bytes)), id: id)
            #expect(zip(next.chunks, attachment.chunks).map { $0 == $1 } == [true, false, true, true, true])
            let again = try await phone.attach(AttachmentSource(SecureBytes(copying: bytes)), id: id)
            #expect(again == next)
            // It is there, and written anew: who has sent it may take it back.
            #expect(sent().count == 2)
        }
    }

    @Test func `equal content in two attachments shares nothing`() async throws {
        try await withPair { phone, _, _, _ in
            let content = content(600_000)
            let first = try await phone.attach(AttachmentSource(content))
            let second = try await phone.attach(AttachmentSource(content))
            #expect(Set(first.chunks).isDisjoint(with: second.chunks))
        }
    }

    @Test func `a plan that allows little in an item has smaller chunks`() async throws {
        try await withPair { phone, _, device, _ in
            device.link.setRewrite { request, reply in
                guard request.target == "/v1/account" else { return reply }
                let text = String(decoding: reply.body, as: UTF8.self)
                    .replacing(#/"itemBytes":\d+/#, with: #""itemBytes":100000"#)
                return HTTPReply(head: reply.head, body: Array(text.utf8))
            }
            let content = content(200_000)
            let made = try await phone.attach(AttachmentSource(content))
            #expect(made.chunkByteCount == 65_536)
            #expect(made.pieceCount == 4)
            #expect(try await phone.content(of: made) == content)
        }
    }

    @Test func `a chunk is removed when nothing has named it for long enough, and not before`() async throws {
        try await withPair { phone, laptop, device, _ in
            let made = try await phone.attach(AttachmentSource(content(600_000)))
            let now = Date()
            func sweep(_ days: Double) async throws -> Int {
                try await phone.sweepChunks(
                    at: now.addingTimeInterval(days * 86_400), age: 1 + Int64(days * 86_400))
            }
            // Not yet named: the manifest comes last.
            #expect(try await sweep(0) == 0)
            try await put(made, phone)
            // Named by what is unsent, then by what the server has.
            #expect(try await sweep(400) == 0)
            #expect(try await sweep(800) == 0)
            // By what was changed from.
            device.link.setAnswer { request in
                request.target == "/v1/items/batch"
                    ? HTTPReply(head: HTTPReplyHead(status: 503, fields: []), body: []) : nil
            }
            try await phone.put(PlainItem(body: SecureBytes(copying: Array("x".utf8))), Self.item, in: "photos")
            #expect(try await phone.hasBase(Self.item))
            await #expect(throws: VaultError.self) { try await sweep(1_200) }
            device.link.setAnswer { _ in nil }
            try await put(made, phone)
            try await phone.sync()
            // By the trash.
            try await phone.delete(Self.item)
            try await phone.sync()
            #expect(try await sweep(1_600) == 0)
            #expect(try await sweep(2_000) == 0)
            try await phone.emptyTrash(of: Self.item)
            #expect(try await sweep(2_400) == 0)
            #expect(try await sweep(2_400 + 29) == 0)
            // What does not open may be a manifest.
            let strange = try await phone.keepWhatDoesNotOpen()
            #expect(try await sweep(2_800) == 0)
            try await phone.removeWhatDoesNotOpen(strange)
            #expect(try await sweep(2_800) == 2)
            #expect(try await phone.chunks().isEmpty)
            try await laptop.sync()
            #expect(try await laptop.chunks().isEmpty)
            await #expect { try await laptop.piece(0, of: made) } throws: {
                if case .missingChunk? = $0 as? VaultError { true } else { false }
            }
            // The same content can be brought again.
            _ = try await laptop.attach(AttachmentSource(self.content(600_000)), id: made.id)
            #expect(try await laptop.content(of: made) == self.content(600_000))
        }
    }

    @Test func `content is there after the keys were rotated`() async throws {
        try await withPair { phone, laptop, _, _ in
            let made = try await phone.attach(AttachmentSource(content(600_000)))
            try await put(made, phone)
            try await phone.sync()
            try await phone.rotateKeys(password: password)
            try await phone.sync()
            #expect(try await phone.content(of: made) == content(600_000))
            try await laptop.logInAgain(password: password)
            try await laptop.sync()
            #expect(try await laptop.content(of: self.attachment(laptop)) == content(600_000))
            #expect(try await laptop.notices().isEmpty)
        }
    }

    @Test func `a server that gives one chunk for another is refused`() async throws {
        try await withPair { phone, _, device, _ in
            let made = try await phone.attach(AttachmentSource(content(1_000_000)))
            let names = made.chunks.map(\.description)
            let first = Recorder()
            device.link.setRewrite { request, reply in
                guard request.target.hasPrefix("/v1/items/"),
                    var object = try? JSONSerialization.jsonObject(with: Data(reply.body)) as? [String: Any]
                else { return reply }
                if request.target.hasSuffix(names[0]) { first.add(object["body"] as? String ?? "") }
                guard request.target.hasSuffix(names[1]) else { return reply }
                object["body"] = first.take().first
                let changed = (try? JSONSerialization.data(withJSONObject: object)) ?? Data()
                return HTTPReply(head: reply.head, body: [UInt8](changed))
            }
            _ = try await phone.piece(0, of: made)
            await #expect { try await phone.piece(1, of: made) } throws: {
                if case .damagedChunk? = $0 as? VaultError { true } else { false }
            }
        }
    }
}

/// What was seen, until somebody asks.
private final class Recorder: Sendable {
    private let seen = Mutex<[String]>([])

    func add(_ text: String) { seen.withLock { $0.append(text) } }

    func take() -> [String] {
        seen.withLock { seen in
            defer { seen = [] }
            return seen
        }
    }
}

extension Vault {
    fileprivate func chunks() throws -> [StoredChunk] { try store.chunks() }

    fileprivate func hasBase(_ id: ItemID) throws -> Bool { try store.change(id)?.baseContent != nil }

    fileprivate func emptyTrash(of id: ItemID) throws { try store.removeFromTrash(id) }

    fileprivate func keepWhatDoesNotOpen() throws -> ItemID {
        let content = ItemContent(
            collection: "photos", format: "saltern-1", body: [1] + [UInt8](repeating: 7, count: 96))
        let id = ItemID.random()
        try store.put(StoredItem(id: id, revision: Revision(1), content: content, edit: 1), listing: 0)
        return id
    }

    fileprivate func removeWhatDoesNotOpen(_ id: ItemID) throws { try store.removeItem(id) }
}
