import CSQLite
import Cryptography
import Foundation
import SalternTesting
import Synchronization
import Testing

@testable import SalternClient

/// What becomes of chunks that were sent for an attachment with which nobody goes on, against a real server.
@Suite struct AttachmentDraftTests {
    private static let piece = SalternClient.Attachment.chunkByteCount
    private let userid = "ada@example.org"
    private let password = Password("password")

    /// Content in which no two chunks are equal.
    private func content(pieces: Int, seed: UInt8 = 1) -> SecureBytes {
        var bytes = [UInt8](repeating: 7, count: pieces * Self.piece)
        for piece in 0..<pieces { bytes[piece * Self.piece] = seed &+ UInt8(piece) }
        return SecureBytes(copying: bytes)
    }

    private func withPhone(_ body: (LiveServer, Device, Vault) async throws -> Void) async throws {
        try await LiveServer.with { server in
            var phone = try Device("phone", server)
            phone.settings.attachments = AttachmentStorage(waitingByteLimit: 0, copiedByteLimit: 0)
            try await body(
                server, phone, try await Vault.signUp(phone.settings, userid: userid, password: password))
        }
    }

    private func put(
        _ attachment: SalternClient.Attachment, _ vault: Vault, _ id: ItemID = .random()
    ) async throws -> ItemID {
        try await vault.put(PlainItem(body: attachment.body()), id, in: "photos")
    }

    private func attachment(_ vault: Vault, _ id: ItemID) async throws -> SalternClient.Attachment {
        let item = try await vault.item(id)
        return try #require(item.flatMap { SalternClient.Attachment($0.body) })
    }

    /// Sends three pieces of four.
    private func interrupt(_ vault: Vault, _ id: ItemID) async {
        let source = AttachmentSource(content(pieces: 4))
        let task = Task {
            try await vault.attach(source, id: id) { progress in
                if progress.byteCount == 3 * Int64(Self.piece) { withUnsafeCurrentTask { $0?.cancel() } }
            }
        }
        await #expect { try await task.value } throws: { ($0 as? VaultError)?.isCancellation == true }
    }

    /// Likewise, and gives it up while the server cannot be reached.
    private func interruptAndAbandon(_ vault: Vault, _ id: ItemID, _ phone: Device) async {
        await interrupt(vault, id)
        phone.link.setUnreachable(true)
        await #expect(throws: VaultError.self) { try await vault.abandonAttachment(id) }
        phone.link.setUnreachable(false)
    }

    private func isNoRoom(_ error: any Error) -> Bool {
        if case .noRoom? = error as? VaultError { true } else { false }
    }

    /// From now on there is no room for another chunk.
    private static func fill(_ server: LiveServer, besides bytes: Int) async {
        try? await server.database.administer("UPDATE saltern.plans SET max_bytes = \(bytes)")
    }

    @Test func `what another device has come to is not taken from it`() async throws {
        try await withPhone { server, phone, vault in
            let laptop = try Device("laptop", server)
            let other = try await Vault.logIn(laptop.settings, userid: userid, password: password)
            let id = try await put(try await vault.attach(AttachmentSource(content(pieces: 2))), vault)
            for vault in [vault, other] { try await vault.sync() }
            let known = try await attachment(vault, id)
            let before = try await vault.account().usage
            let two = content(pieces: 2, seed: 100)
            // The plan, two chunks, and the third one.
            phone.link.interrupt(
                LossyTransport.Interruption(exchange: 3, moment: .beforeRequest) {
                    do {
                        try await other.sync()
                        let made = try await other.attach(AttachmentSource(two), id: known.id)
                        _ = try await other.put(PlainItem(body: made.body()), id, in: "photos")
                        try await other.sync()
                    } catch {
                        Issue.record("\(error)")
                    }
                    await Self.fill(server, besides: Int(before.bytes) + 2 * Self.piece + 200_000)
                })
            await #expect {
                try await vault.attach(AttachmentSource(self.content(pieces: 4, seed: 100)), id: known.id)
            } throws: { isNoRoom($0) }
            #expect(phone.link.endInterruption() == nil)
            for vault in [vault, other] {
                try await vault.sync()
                #expect(try await vault.content(of: attachment(vault, id)) == two)
            }
        }
    }

    @Test func `whose process ends while it takes back goes on with that at the next sync`() async throws {
        try await LiveServer.with { server in
            var phone = try Device("phone", server)
            phone.settings.attachments = AttachmentStorage(waitingByteLimit: 0, copiedByteLimit: 0)
            try phone.beginLife()
            defer { phone.endLives() }
            var vault: Vault? = try await Vault.signUp(phone.settings, userid: userid, password: password)
            let made = try #require(try await vault?.attach(AttachmentSource(content(pieces: 2))))
            let id = try #require(try await vault?.put(PlainItem(body: made.body()), .random(), in: "photos"))
            try await vault?.sync()
            let usage = try #require(try await vault?.account().usage)
            var call = 1
            while true {
                try await server.database.administer("UPDATE saltern.plans SET max_bytes = 100000000")
                let (life, seed, end) = (phone.life, UInt8(truncatingIfNeeded: 10 * call), call)
                phone.link.interrupt(
                    LossyTransport.Interruption(exchange: 2, moment: .beforeReply) {
                        await Self.fill(server, besides: Int(usage.bytes) + 2 * Self.piece + 200_000)
                        life.arm(.killBefore, at: end)
                    })
                let source = AttachmentSource(content(pieces: 4, seed: seed))
                await #expect(throws: VaultError.self) {
                    _ = try await vault?.attach(source, id: made.id)
                }
                let hasEnded = life.hasEnded
                vault = nil
                try phone.beginLife()
                vault = try await Vault.resume(phone.settings)
                // What the process knew when it ended may be that it goes on.
                if hasEnded, try await vault?.hasGivenUp() == false {
                    try await server.database.administer("UPDATE saltern.plans SET max_bytes = 100000")
                    await #expect { _ = try await vault?.attach(source, id: made.id) } throws: { isNoRoom($0) }
                }
                try await vault?.sync()
                #expect(try await vault?.account().usage.items == usage.items, "call \(call)")
                let known = try await attachment(#require(vault), id)
                #expect(try await vault?.content(of: known) == content(pieces: 2), "call \(call)")
                if !hasEnded { break }
                call += 1
                try #require(call < 200)
            }
            #expect(call > 3)
        }
    }

    @Test func `what was refused before its first chunk leaves nothing of an earlier time`() async throws {
        try await withPhone { server, _, vault in
            let id = ItemID.random()
            await interrupt(vault, id)
            let usage = try await vault.account().usage
            #expect(usage.items == 3)
            await Self.fill(server, besides: 3 * Self.piece)
            await #expect {
                try await vault.attach(AttachmentSource(self.content(pieces: 4)), id: id)
            } throws: { isNoRoom($0) }
            #expect(try await vault.account().usage.items == 0)
        }
    }

    @Test(arguments: [-40.0, 40, 3_650])
    func `also by a wrong clock nothing is sent again that was sent before`(_ days: Double) async throws {
        try await LiveServer.with { server in
            var phone = try Device("phone", server)
            phone.settings.now = { Date().addingTimeInterval(days * 86_400) }
            let vault = try await Vault.signUp(phone.settings, userid: userid, password: password)
            let id = ItemID.random()
            await interrupt(vault, id)
            let sent = try await vault.chunkRevisions()
            #expect(sent.count == 3)
            let made = try await vault.attach(AttachmentSource(content(pieces: 4)), id: id)
            let all = try await vault.chunkRevisions()
            #expect(all.count == 4 && all.isSuperset(of: sent))
            #expect(try await vault.content(of: made) == content(pieces: 4))
        }
    }

    @Test func `what another device has put is not taken back`() async throws {
        try await withPhone { server, _, vault in
            let laptop = try Device("laptop", server)
            let other = try await Vault.logIn(laptop.settings, userid: userid, password: password)
            let made = try await vault.attach(AttachmentSource(content(pieces: 2)), id: .random())
            _ = try await put(made, other)
            for vault in [other, vault] { try await vault.sync() }
            try await vault.abandonAttachment(made.id)
            #expect(try await other.content(of: made) == content(pieces: 2))
        }
    }

    @Test func `what was in an item once is not taken back, for others may have it in theirs`() async throws {
        try await withPhone { server, _, vault in
            let laptop = try Device("laptop", server)
            let other = try await Vault.logIn(laptop.settings, userid: userid, password: password)
            let made = try await vault.attach(AttachmentSource(content(pieces: 2)), id: .random())
            let id = try await put(made, vault)
            for vault in [vault, other] { try await vault.sync() }
            let copy = try await put(try await attachment(other, id), other)
            try await vault.put(PlainItem(body: SecureBytes(copying: "short".utf8)), id, in: "photos")
            try await vault.sync()
            try await vault.abandonAttachment(made.id)
            try await other.sync()
            #expect(try await other.content(of: attachment(other, copy)) == content(pieces: 2))
        }
    }

    @Test func `who goes on with what was abandoned keeps it`() async throws {
        try await withPhone { _, phone, vault in
            let id = ItemID.random()
            await interruptAndAbandon(vault, id, phone)
            let made = try await vault.attach(AttachmentSource(content(pieces: 4)), id: id)
            try await vault.sync()
            try await vault.sweepChunks()
            let item = try await put(made, vault)
            try await vault.sync()
            #expect(try await vault.content(of: attachment(vault, item)) == content(pieces: 4))
        }
    }

    @Test func `what is given up while another call sends it is kept for that one`() async throws {
        try await withPhone { _, phone, vault in
            let id = ItemID.random()
            // Before the third piece: plan and two pieces come first.
            phone.link.interrupt(
                LossyTransport.Interruption(exchange: 3, moment: .beforeRequest) {
                    await #expect(throws: Never.self) { try await vault.abandonDraft(id) }
                })
            let made = try await vault.attach(AttachmentSource(content(pieces: 4)), id: id)
            #expect(phone.link.endInterruption() == nil)
            try await vault.sync()
            let item = try await put(made, vault)
            try await vault.sync()
            #expect(try await vault.content(of: attachment(vault, item)) == content(pieces: 4))
        }
    }

    @Test func `what could not be taken back is taken back by the next sync`() async throws {
        try await withPhone { _, phone, vault in
            let id = ItemID.random()
            await interruptAndAbandon(vault, id, phone)
            #expect(try await vault.account().usage.items == 3)
            try await vault.sync()
            #expect(try await vault.account().usage.items == 0)
        }
    }

    @Test func `what is new, and what goes on after that, takes the same work however much is here`() async throws {
        try await withPhone { _, _, vault in
            _ = try await put(try await vault.attach(AttachmentSource(content(pieces: 2))), vault)
            var counts: [Int] = []
            for _ in 0..<2 {
                let id = ItemID.random()
                counts.append(
                    try await vault.statementCount {
                        await interrupt(vault, id)
                        _ = try await vault.attach(AttachmentSource(content(pieces: 4)), id: id)
                    })
                for _ in 0..<100 {
                    try await vault.put(PlainItem(body: SecureBytes(copying: "note".utf8)), .random(), in: "notes")
                }
            }
            #expect(counts[0] == counts[1])
        }
    }

    @Test func `an attachment is sent once, however often it is changed and changed back`() async throws {
        try await withPhone { _, _, vault in
            let made = try await vault.attach(AttachmentSource(content(pieces: 2)))
            let id = try await put(made, vault)
            for seed: UInt8 in [50, 1, 50] {
                let next = try await vault.attach(AttachmentSource(content(pieces: 2, seed: seed)), id: made.id)
                _ = try await put(next, vault, id)
                try await vault.sync()
                #expect(try await vault.content(of: attachment(vault, id)) == content(pieces: 2, seed: seed))
            }
            #expect(try await vault.account().usage.items == 5)
        }
    }

    @Test func `an import that runs out of room leaves nothing`() async throws {
        try await withPhone { server, phone, vault in
            let id = try await put(try await vault.attach(AttachmentSource(content(pieces: 3))), vault)
            let file = URL(filePath: phone.folder.path).appending(path: "documents")
            try await vault.exportDocuments(to: file)
            let laptop = try Device("laptop", server)
            let other = try await Vault.signUp(laptop.settings, userid: "eve@example.org", password: password)
            // Each piece before it is sent: registration and plan come before.
            laptop.link.interrupt(
                LossyTransport.Interruption(exchange: 2, moment: .beforeRequest) {
                    await Self.fill(server, besides: 2 * Self.piece)
                })
            await #expect(throws: VaultError.self) { try await other.importDocuments(from: file) }
            #expect(try await other.item(id) == nil)
            #expect(try await other.account().usage.items == 0)
        }
    }
}

extension Vault {
    /// What a call that fails does, when another one is at the same attachment.
    fileprivate func abandonDraft(_ id: ItemID) throws { try store.abandonDraft(id) }

    /// Whether something is to be taken back.
    fileprivate func hasGivenUp() throws -> Bool { try !store.abandonedDrafts().isEmpty }

    /// How many statements the store carries out meanwhile.
    fileprivate func statementCount(_ body: () async throws -> Void) async rethrows -> Int {
        let count = StatementCount()
        sqlite3_trace_v2(
            store.database.handle, UInt32(SQLITE_TRACE_STMT),
            { _, context, _, _ in
                let count = context.map { Unmanaged<StatementCount>.fromOpaque($0).takeUnretainedValue() }
                count?.value.withLock { $0 += 1 }
                return 0
            }, Unmanaged.passUnretained(count).toOpaque())
        defer { sqlite3_trace_v2(store.database.handle, 0, nil, nil) }
        try await body()
        return count.value.withLock { $0 }
    }
}

private final class StatementCount: Sendable {
    let value = Mutex(0)
}

extension Vault {
    /// The revisions of the chunks that the server has, as far as this device knows.
    fileprivate func chunkRevisions() throws -> Set<Revision> { Set(try store.chunks().map(\.revision)) }
}
