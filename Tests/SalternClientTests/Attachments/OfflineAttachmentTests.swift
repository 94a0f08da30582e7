import Cryptography
import Foundation
import SalternTesting
import Synchronization
import Testing

@testable import SalternClient

/// Attachments that are added and read without network, against a real server.
@Suite struct OfflineAttachmentTests {
    private static let piece = SalternClient.Attachment.chunkByteCount
    private let userid = "ada@example.org"
    private let password = Password("password")
    private static let item = ItemID.random()

    /// Content in which no two chunks are equal.
    private func content(pieces: Int, seed: UInt8 = 1) -> SecureBytes {
        var bytes = [UInt8](repeating: seed, count: pieces * Self.piece)
        for piece in 0..<pieces { bytes[piece * Self.piece] = seed &+ UInt8(piece) &+ 1 }
        return SecureBytes(copying: bytes)
    }

    private func withPhone(
        _ storage: AttachmentStorage = AttachmentStorage(), _ body: (LiveServer, Device, Vault) async throws -> Void
    ) async throws {
        try await LiveServer.with { server in
            var phone = try Device("phone", server)
            phone.settings.attachments = storage
            try await body(
                server, phone, try await Vault.signUp(phone.settings, userid: userid, password: password))
        }
    }

    private func laptop(_ server: LiveServer) async throws -> Vault {
        let vault = try await Vault.logIn(Device("laptop", server).settings, userid: userid, password: password)
        try await vault.sync()
        return vault
    }

    private func put(
        _ attachment: SalternClient.Attachment, _ vault: Vault, _ id: ItemID = item
    ) async throws {
        try await vault.put(PlainItem(title: "photo", body: attachment.body()), id, in: "photos")
    }

    private func attachment(_ vault: Vault, _ id: ItemID = item) async throws -> SalternClient.Attachment {
        let item = try await vault.item(id)
        return try #require(item.flatMap { SalternClient.Attachment($0.body) })
    }

    @Test func `what is added without network is read at once, after a start, and on another device after a sync`()
        async throws
    {
        try await withPhone { server, phone, vault in
            let content = content(pieces: 3)
            phone.link.setUnreachable(true)
            let steps = Mutex<[Int64]>([])
            let made = try await vault.attach(AttachmentSource(content)) { progress in
                steps.withLock { $0.append(progress.byteCount) }
            }
            #expect(steps.withLock { $0 } == (1...3).map { Int64($0 * Self.piece) })
            try await put(made, vault)
            #expect(try await vault.content(of: made) == content)
            await #expect(throws: VaultError.self) { try await vault.sync() }
            await vault.end()
            let again = try #require(try await Vault.resume(phone.settings))
            #expect(try await again.content(of: attachment(again)) == content)
            let waiting = try await again.attachmentUsage().waitingByteCount
            #expect(waiting > 3 * Int64(Self.piece))
            phone.link.setUnreachable(false)
            let progress = again.progress()
            #expect(try await again.sync().unsent == 0)
            #expect(try await again.unsentCount() == 0)
            var told: [Int64] = []
            for await step in progress {
                if case .sentContent(let bytes, let total) = step {
                    #expect(total == waiting)
                    told.append(bytes)
                    if bytes == total { break }
                }
            }
            #expect(told.count == 3)
            let usage = try await again.attachmentUsage()
            #expect(usage.waitingByteCount == 0)
            #expect(usage.copiedByteCount == waiting)
            let other = try await laptop(server)
            #expect(try await other.content(of: attachment(other)) == content)
            phone.link.setUnreachable(true)
            #expect(try await again.content(of: attachment(again)) == content)
        }
    }

    @Test func `what was read is read again without network, from where it was cut off`() async throws {
        try await withPhone { server, phone, vault in
            let other = try await laptop(server)
            let content = content(pieces: 3)
            try await put(try await other.attach(AttachmentSource(content)), other)
            try await other.sync()
            try await vault.sync()
            let known = try await attachment(vault)
            _ = try await vault.piece(0, of: known)
            phone.link.setUnreachable(true)
            await #expect {
                _ = try await vault.content(of: known)
            } throws: { if case VaultError.unavailable = $0 { true } else { false } }
            #expect(try await vault.piece(0, of: known).count == Self.piece)
            phone.link.setUnreachable(false)
            let fetched = Mutex(0)
            phone.link.setAnswer { request in
                if request.target.hasPrefix("/v1/items/") { fetched.withLock { $0 += 1 } }
                return nil
            }
            #expect(try await vault.content(of: known) == content)
            #expect(fetched.withLock { $0 } == 2)
            await vault.end()
            phone.link.setUnreachable(true)
            let again = try #require(try await Vault.resume(phone.settings))
            #expect(try await again.content(of: attachment(again)) == content)
            try await again.removeAttachmentCopies()
            #expect(try await again.attachmentUsage().copiedByteCount == 0)
            await #expect(throws: VaultError.self) { try await again.content(of: known) }
        }
    }

    @Test func `copies stay within their limit, those that were used last`() async throws {
        let three = AttachmentStorage(waitingByteLimit: 0, copiedByteLimit: 3 * Int64(Self.piece) + 400_000)
        try await withPhone(three) { server, phone, vault in
            var made: [SalternClient.Attachment] = []
            for seed: UInt8 in 1...2 {
                made.append(try await vault.attach(AttachmentSource(content(pieces: 2, seed: 50 * seed))))
            }
            #expect(try await vault.attachmentUsage().copiedByteCount <= three.copiedByteLimit)
            phone.link.setUnreachable(true)
            #expect(try await vault.content(of: made[1]) == content(pieces: 2, seed: 100))
            await #expect(throws: VaultError.self) { try await vault.content(of: made[0]) }
            // What is longer than all copies may be displaces none.
            phone.link.setUnreachable(false)
            let long = try await vault.attach(AttachmentSource(content(pieces: 4, seed: 150)))
            _ = try await vault.content(of: long)
            phone.link.setUnreachable(true)
            #expect(try await vault.content(of: made[1]) == content(pieces: 2, seed: 100))
            await #expect { try await vault.attach(AttachmentSource(self.content(pieces: 2))) } throws: {
                if case VaultError.unavailable = $0 { true } else { false }
            }
        }
    }

    @Test func `what has no room to wait is refused, and leaves nothing`() async throws {
        let two = AttachmentStorage(waitingByteLimit: 2 * Int64(Self.piece) + 200_000, copiedByteLimit: 0)
        try await withPhone(two) { _, phone, vault in
            phone.link.setUnreachable(true)
            await #expect {
                _ = try await vault.attach(AttachmentSource(self.content(pieces: 3)), id: .random())
            } throws: { error in
                guard case .noRoom(let shortage)? = error as? VaultError else { return false }
                return shortage.limit == .waitingBytes && shortage.free == two.waitingByteLimit
            }
            #expect(try await vault.attachmentUsage() == AttachmentUsage(waitingByteCount: 0, copiedByteCount: 0))
            let made = try await vault.attach(AttachmentSource(content(pieces: 2)))
            try await put(made, vault)
            await #expect(throws: VaultError.self) {
                try await vault.attach(AttachmentSource(self.content(pieces: 2, seed: 9)))
            }
            // A later version takes the place of what nothing else names.
            let id = ItemID.random()
            try await put(made, vault)
            try await vault.abandonAttachment(made.id)
            #expect(try await vault.content(of: made) == content(pieces: 2))
            phone.link.setUnreachable(false)
            try await vault.sync()
            phone.link.setUnreachable(true)
            for seed: UInt8 in [20, 30] {
                let next = try await vault.attach(AttachmentSource(content(pieces: 2, seed: seed)), id: id)
                #expect(try await vault.content(of: next) == content(pieces: 2, seed: seed))
            }
            try await vault.abandonAttachment(id)
            #expect(try await vault.attachmentUsage().waitingByteCount == 0)
        }
    }

    @Test func `when the line is lost on the way the rest waits`() async throws {
        try await withPhone { server, phone, vault in
            let content = content(pieces: 4)
            phone.link.interrupt(
                LossyTransport.Interruption(exchange: 2, moment: .beforeReply) { phone.link.setUnreachable(true) })
            let made = try await vault.attach(AttachmentSource(content))
            #expect(try await vault.content(of: made) == content)
            try await put(made, vault)
            phone.link.setUnreachable(false)
            try await vault.sync()
            let other = try await laptop(server)
            #expect(try await other.content(of: attachment(other)) == content)
            #expect(try await vault.account().usage.items == 5)
        }
    }

    @Test func `no item is sent before its chunks, and a sync that is cut off goes on`() async throws {
        try await withPhone { server, phone, vault in
            phone.link.setUnreachable(true)
            try await put(try await vault.attach(AttachmentSource(content(pieces: 3))), vault)
            try await vault.put(PlainItem(body: SecureBytes(copying: [1])), .random(), in: "notes")
            phone.link.setUnreachable(false)
            let sent = Mutex(0)
            let fails = Mutex(true)
            phone.link.setAnswer { request in
                guard request.method == .put else { return nil }
                return sent.withLock { sent in
                    sent += 1
                    let isCut = sent > 1 && fails.withLock(\.self)
                    return isCut ? HTTPReply(head: HTTPReplyHead(status: 503, fields: []), body: []) : nil
                }
            }
            await #expect(throws: VaultError.self) { try await vault.sync() }
            fails.withLock { $0 = false }
            let before = sent.withLock(\.self)
            let other = try await laptop(server)
            // What waits for nothing is there.
            #expect(try await other.ids("notes").count == 1)
            #expect(try await other.ids("photos").isEmpty)
            #expect(try await vault.sync().unsent == 0)
            #expect(sent.withLock { $0 } == before + 2)
            try await other.sync()
            #expect(try await other.content(of: attachment(other)) == content(pieces: 3))
        }
    }

    @Test func `a plan without room holds up nothing else, and the item follows when there is room`() async throws {
        try await withPhone { server, phone, vault in
            phone.link.setUnreachable(true)
            try await put(try await vault.attach(AttachmentSource(content(pieces: 3))), vault)
            let note = try await vault.put(PlainItem(body: SecureBytes(copying: [1])), .random(), in: "notes")
            phone.link.setUnreachable(false)
            try await server.database.administer("UPDATE saltern.plans SET max_bytes = \(2 * Self.piece)")
            #expect(try await vault.sync().unsent == 1)
            #expect(try await vault.unsentItems().map(\.id) == [Self.item])
            #expect(try await vault.notices().map(\.kind) == [.quotaExceeded])
            let other = try await laptop(server)
            #expect(try await other.item(note) != nil)
            #expect(try await other.item(Self.item) == nil)
            await #expect { try await vault.signOut() } throws: { error in
                if case .unsentEdits? = error as? VaultError { true } else { false }
            }
            try await server.database.administer("UPDATE saltern.plans SET max_bytes = 100000000")
            #expect(try await vault.sync().unsent == 0)
            #expect(try await vault.notices().isEmpty)
            try await other.sync()
            #expect(try await other.content(of: attachment(other)) == content(pieces: 3))
        }
    }

    @Test func `a lock leaves nothing readable, and a sign-out nothing`() async throws {
        try await withPhone { _, phone, vault in
            let read = content(pieces: 2, seed: 10)
            let copy = try await vault.attach(AttachmentSource(read))
            phone.link.setUnreachable(true)
            let waiting = content(pieces: 2, seed: 60)
            try await put(try await vault.attach(AttachmentSource(waiting)), vault)
            try await vault.lock()
            let key = try phone.settings.deviceKey.load()
            let files = try StoreFiles(folder: phone.folder.path, key: key)
            for content in [read, waiting] {
                let part = content.withUnsafeBytes { SecureBytes(copying: [UInt8]($0[100..<164])) }
                #expect(!files.reveal(part))
            }
            await #expect { try await vault.content(of: copy) } throws: { error in
                if case .locked? = error as? VaultError { true } else { false }
            }
            try await vault.unlock(password)
            #expect(try await vault.content(of: copy) == read)
            #expect(try await vault.content(of: attachment(vault)) == waiting)
            let sealed = try await vault.sealed(copy.chunks[0])
            try await vault.signOut(discardingUnsentEdits: true)
            let left = try StoreFiles(folder: phone.folder.path, key: nil)
            #expect(!left.reveal(SecureBytes(copying: sealed.suffix(64))))
            let sizes = try FileManager.default.contentsOfDirectory(atPath: phone.folder.path).map {
                try Data(contentsOf: URL(filePath: phone.folder.path + "/" + $0)).count
            }
            #expect(sizes.reduce(0, +) < 500_000)
        }
    }

    @Test func `what waits and what is copied is sealed anew when another device rotates the keys`() async throws {
        try await withPhone { server, phone, vault in
            let copied = try await vault.attach(AttachmentSource(content(pieces: 2, seed: 90)))
            try await put(copied, vault, .random())
            try await vault.sync()
            let other = try await laptop(server)
            phone.link.setUnreachable(true)
            try await put(try await vault.attach(AttachmentSource(content(pieces: 2))), vault)
            try await other.rotateKeys(password: password)
            phone.link.setUnreachable(false)
            try await vault.logInAgain(password: password)
            try await vault.sync()
            try await other.sync()
            #expect(try await other.content(of: attachment(other)) == content(pieces: 2))
            phone.link.setUnreachable(true)
            #expect(try await vault.content(of: attachment(vault)) == content(pieces: 2))
            #expect(try await vault.content(of: copied) == content(pieces: 2, seed: 90))
            #expect(try await vault.notices().isEmpty)
        }
    }

    @Test func `what the server has lost comes back from the copies of a device`() async throws {
        try await withPhone { server, _, vault in
            let made = try await vault.attach(AttachmentSource(content(pieces: 3)))
            try await put(made, vault)
            try await vault.sync()
            let other = try await laptop(server)
            try await other.remove(made.chunks[1])
            await #expect(throws: VaultError.self) { try await other.content(of: made) }
            try await vault.sync()
            try await other.sync()
            #expect(try await other.content(of: made) == content(pieces: 3))
        }
    }

    @Test func `an item that is deleted before it was sent sends no chunks, and they go with the trash`() async throws {
        try await withPhone { _, phone, vault in
            phone.link.setUnreachable(true)
            try await put(try await vault.attach(AttachmentSource(content(pieces: 2))), vault)
            try await vault.delete(Self.item)
            phone.link.setUnreachable(false)
            try await vault.sync()
            #expect(try await vault.account().usage.items == 0)
            try await vault.restore(Self.item)
            #expect(try await vault.content(of: attachment(vault)) == content(pieces: 2))
            try await vault.delete(Self.item)
            for days in [0, 29, 58] as [Int64] {
                if days > 0 { try await vault.emptyTrash(of: Self.item) }
                #expect(try await vault.attachmentUsage().waitingByteCount > 0)
                try await vault.forgetUnnamedWaiting(at: 1 + days * 86_400)
            }
            #expect(try await vault.attachmentUsage().waitingByteCount > 0)
            try await vault.forgetUnnamedWaiting(at: 1 + 60 * 86_400)
            #expect(try await vault.attachmentUsage().waitingByteCount == 0)
        }
    }

    /// Content whose chunks have 2 KiB, for which the plan has to allow little in an item.
    private func shortContent(_ seed: Int) -> SecureBytes {
        SecureBytes(copying: (0..<5_000).map { UInt8(truncatingIfNeeded: $0 / 2_048 + 3 * seed) })
    }

    @Test(arguments: [WriteFault.killBefore, .killWithin, .killAfter], [true, false])
    func `a process that is killed while it adds or sends loses nothing that was acknowledged`(
        end: WriteFault, sends: Bool
    ) async throws {
        try await LiveServer.with { server in
            var phone = try Device("phone", server)
            try phone.beginLife()
            defer { phone.endLives() }
            var vault: Vault? = try await Vault.signUp(phone.settings, userid: userid, password: password)
            try await server.database.administer("UPDATE saltern.plans SET max_item_bytes = 12000")
            _ = try await vault?.account()
            let other = try await laptop(server)
            let id = ItemID.random()
            var call = 1
            while true {
                let content = shortContent(call)
                if !sends { phone.life.arm(end, at: call) }
                phone.link.setUnreachable(true)
                var isPut = false
                do {
                    if let vault {
                        let made = try await vault.attach(AttachmentSource(content), id: id)
                        #expect(made.pieceCount == 3)
                        try await put(made, vault)
                        isPut = true
                    }
                } catch  where phone.life.hasFailed {}
                phone.link.setUnreachable(false)
                if sends {
                    phone.life.arm(end, at: call)
                    do { try await vault?.sync() } catch  where phone.life.hasFailed {}
                }
                let hasFailed = phone.life.hasFailed
                vault = nil
                try phone.beginLife()
                vault = try await Vault.resume(phone.settings)
                let present = try #require(vault)
                if !isPut { try await put(try await present.attach(AttachmentSource(content), id: id), present) }
                #expect(try await present.content(of: attachment(present)) == content, "call \(call)")
                #expect(try await present.sync().unsent == 0, "call \(call)")
                #expect(try await present.attachmentUsage().waitingByteCount < 8_000, "call \(call)")
                try await other.sync()
                #expect(try await other.content(of: attachment(other)) == content, "call \(call)")
                if !hasFailed { break }
                call += PropertyTests.count < 1_000 ? 5 : 1
                try #require(call < 400)
            }
            #expect(call > 6)
        }
    }

    @Test func `a call without an id that ended with its process leaves nothing after the next sync`() async throws {
        try await LiveServer.with { server in
            var phone = try Device("phone", server)
            try phone.beginLife()
            defer { phone.endLives() }
            var vault: Vault? = try await Vault.signUp(phone.settings, userid: userid, password: password)
            phone.link.setUnreachable(true)
            let life = phone.life
            await #expect(throws: VaultError.self) {
                _ = try await vault?.attach(AttachmentSource(self.content(pieces: 4))) { progress in
                    if progress.byteCount == 2 * Int64(Self.piece) { life.arm(.killBefore, at: 1) }
                }
            }
            vault = nil
            try phone.beginLife()
            phone.link.setUnreachable(false)
            let again = try #require(try await Vault.resume(phone.settings))
            #expect(try await again.attachmentUsage().waitingByteCount > 0)
            try await again.sync()
            #expect(try await again.attachmentUsage().waitingByteCount == 0)
        }
    }
}

extension Vault {
    /// The process is over; another one opens the store.
    fileprivate func end() { store.close() }

    fileprivate func sealed(_ chunk: ItemID) throws -> [UInt8] {
        try #require(try store.chunkContent(chunk)).body.bytes
    }

    fileprivate func emptyTrash(of id: ItemID) throws { try store.removeFromTrash(id) }

    /// The server has the chunk no more, as after a restore.
    fileprivate func remove(_ chunk: ItemID) async throws {
        _ = try await api.deleteItem(chunk, .present, open.token)
    }
}
