import Cryptography
import Foundation
import SalternTesting
import Testing

@testable import SalternClient

/// What a lost device that was unlocked can still do, step by step: "Lost devices" in docs/kit.md.
@Suite struct LostDevicePowersTests {
    private static let userid = "ada@example.org"
    private static let password = Password("correct horse battery staple")
    private static let another = Password("tr0ub4dor&3")

    /// Everything that the device had when it was lost.
    private struct Loot {
        let sealer: Sealer
        let password: KnownPassword
        let token: Token
        let note: ItemID
        let file: ItemID
        let fileBefore: SalternClient.Attachment
        let share: SharedLink
        let shareSealed: [UInt8]

        func opens(_ content: ItemContent, _ id: ItemID) -> Bool { (try? sealer.open(content, id)) != nil }
    }

    /// The first chunk of a file.
    private static func piece(_ seed: UInt8) -> [UInt8] {
        [UInt8](repeating: seed, count: SalternClient.Attachment.chunkByteCount)
    }

    /// A file of two chunks.
    private static func content(_ seed: UInt8) -> SecureBytes { SecureBytes(copying: piece(seed) + [seed]) }

    private static func attachment(_ vault: Vault, _ id: ItemID) async throws -> SalternClient.Attachment {
        let item = try await vault.item(id)
        return try #require(item.flatMap { SalternClient.Attachment($0.body) })
    }

    private static func put(
        _ content: SecureBytes, _ vault: Vault, _ id: ItemID, attachment: ItemID? = nil
    ) async throws {
        let attached = try await vault.attach(AttachmentSource(content), id: attachment)
        try await vault.put(PlainItem(body: attached.body()), id, in: "photos")
        try await vault.sync()
    }

    /// Signs up on a laptop and logs in on a phone, which is lost.
    private static func withLoot(
        _ body: (LiveServer, Device, Vault, RecoveryCode, Loot) async throws -> Void
    ) async throws {
        try await LiveServer.with { server in
            let (phone, laptop) = (try Device("phone", server), try Device("laptop", server))
            let vault = try await Vault.signUp(laptop.settings, userid: userid, password: password)
            let code = try await vault.makeRecoveryCode(password: password)
            let (note, file) = (ItemID.random(), ItemID.random())
            try await vault.collection("notes", of: Note.self).put(Note(text: "known"), note)
            try await put(content(1), vault, file)
            let share = try await vault.share(
                SecureBytes(copying: Array("shared".utf8)), base: #require(URL(string: server.base)))
            let lost = try await Vault.logIn(phone.settings, userid: userid, password: password)
            try await lost.sync()
            let keys = try await lost.keys()
            let loot = try await Loot(
                sealer: keys.sealer, password: keys.password, token: keys.token, note: note, file: file,
                fileBefore: attachment(lost, file), share: share,
                shareSealed: server.api().openShare(share.id).sealed.bytes)
            try await body(server, laptop, vault, code, loot)
        }
    }

    /// An item as the server has it.
    private static func stored(_ server: LiveServer, _ vault: Vault, _ id: ItemID) async throws -> ItemContent {
        try await #require(server.api().getItem(id, vault.secrets().token).content)
    }

    private static func keyring(_ server: LiveServer, _ vault: Vault) async throws -> [UInt8] {
        try await #require(server.api().getKeyring(vault.secrets().token)).keyring.bytes
    }

    /// A keyring that the device makes for a printed code, with a data key of its own.
    private static func forged(_ loot: Loot) throws -> [UInt8] {
        let forged = loot.sealer.keyring.changed {
            $0.counter += 1_000
            $0.dataKeys = [.random()]
        }
        return try #require(loot.sealer.keyring.recovery).sealedKeyring(forged, account: loot.sealer.account)
    }

    private static func opens(_ forged: [UInt8], _ code: RecoveryCode, _ loot: Loot) async -> Bool {
        let stretched = await code.stretched(by: .forTests)
        return (try? RecoveryKeys.open(forged, with: stretched, account: loot.sealer.account)) != nil
    }

    private static func hasSession(_ server: LiveServer, _ loot: Loot) async throws -> Bool {
        do {
            _ = try await server.api().getAccount(loot.token)
            return true
        } catch let error as APIError where error.code == .unauthenticated {
            return false
        }
    }

    @Test func `ending its session alone leaves the device everything but the session`() async throws {
        try await Self.withLoot { server, _, vault, code, loot in
            try await vault.endOtherSessions()
            #expect(try await !Self.hasSession(server, loot))
            try await vault.collection("notes", of: Note.self).put(Note(text: "later"), loot.note)
            try await vault.sync()
            #expect(try await loot.opens(Self.stored(server, vault, loot.note), loot.note))
            let sealed = try await Self.keyring(server, vault)
            #expect((try? Keyring(sealed: sealed, openedBy: loot.password)) != nil)
            #expect(await Self.opens(try Self.forged(loot), code, loot))
        }
    }

    @Test func `a new password alone closes the keyring and leaves the data keys`() async throws {
        try await Self.withLoot { server, _, vault, code, loot in
            try await vault.changePassword(from: Self.password, to: Self.another)
            #expect(try await !Self.hasSession(server, loot))
            let sealed = try await Self.keyring(server, vault)
            #expect(throws: Keyring.Failure.notAuthentic) { try Keyring(sealed: sealed, openedBy: loot.password) }
            try await vault.collection("notes", of: Note.self).put(Note(text: "later"), loot.note)
            try await vault.sync()
            #expect(try await loot.opens(Self.stored(server, vault, loot.note), loot.note))
            #expect(await Self.opens(try Self.forged(loot), code, loot))
        }
    }

    @Test func `new data keys alone are in a keyring that the device opens`() async throws {
        try await Self.withLoot { server, _, vault, code, loot in
            try await vault.rotateKeys(password: Self.password)
            #expect(try await !Self.hasSession(server, loot))
            let sealed = try await Self.keyring(server, vault)
            let keyring = try Keyring(sealed: sealed, openedBy: loot.password)
            let key = try await vault.secrets().keyring.currentKey
            #expect(keyring.currentKey == key)
            #expect(await Self.opens(try Self.forged(loot), code, loot))
            #expect(try await vault.notices().map(\.kind) == [.recoveryCodeOutdated])
        }
    }

    @Test func `once it is shut out, it reads, writes and forges nothing that the other devices go on with`()
        async throws
    {
        try await Self.withLoot { server, _, vault, code, loot in
            let new = try #require(
                try await vault.shutOutLostDevice(password: Self.password, newPassword: Self.another))
            #expect(try await !Self.hasSession(server, loot))
            let sealed = try await Self.keyring(server, vault)
            #expect(throws: Keyring.Failure.notAuthentic) { try Keyring(sealed: sealed, openedBy: loot.password) }
            // It reads neither what is new nor what is sealed anew.
            #expect(try await !loot.opens(Self.stored(server, vault, loot.note), loot.note))
            let notes = vault.collection("notes", of: Note.self)
            try await notes.put(Note(text: "later"), loot.note)
            try await vault.sync()
            let later = try await Self.stored(server, vault, loot.note)
            #expect(!loot.opens(later, loot.note))
            // What it seals is taken by no device, even if the server puts it there.
            let planted = try loot.sealer.seal(
                PlainItem(body: SecureBytes(copying: Array(#"{"text":"planted"}"#.utf8))), loot.note,
                collection: "notes", SealedBox.Edit(number: 1_000, previous: SealedBox.Edit.first.previous))
            let state = try await server.api().getItem(loot.note, vault.secrets().token)
            _ = try await server.api().putItem(
                loot.note, planted, .revision(state.revision), vault.secrets().token)
            try await vault.sync()
            #expect(try await notes[loot.note] == Note(text: "later"))
            // The new code takes no keyring of its making. The previous one does, and no longer opens the account.
            let forged = try Self.forged(loot)
            #expect(await !Self.opens(forged, new, loot))
            #expect(await Self.opens(forged, code, loot))
            let tablet = try Device("tablet", server)
            await #expect(throws: VaultError.self) {
                try await Vault.recover(tablet.settings, userid: Self.userid, code: code, newPassword: Self.password)
            }
        }
    }

    @Test func `what it keeps: a comparison with later versions of files that it had, and links`() async throws {
        try await Self.withLoot { server, _, vault, _, loot in
            _ = try await vault.shutOutLostDevice(password: Self.password, newPassword: Self.another)
            // A later version of a file goes on under the attachment's id: a guess of its content can be compared.
            try await Self.put(Self.content(2), vault, loot.file, attachment: loot.fileBefore.id)
            let after = try await Self.attachment(vault, loot.file)
            #expect(after.id == loot.fileBefore.id)
            let guess = loot.sealer.chunkID(loot.fileBefore.id, 0, SecureBytes(copying: Self.piece(2)))
            #expect(after.chunks.first == guess)
            // The content stays closed.
            let chunk = try await Self.stored(server, vault, guess)
            #expect(throws: SealedBox.Failure.self) { try loot.sealer.openChunk(chunk, guess) }
            // A file that is added later has an id that the device does not know.
            let added = ItemID.random()
            try await Self.put(Self.content(2), vault, added)
            let other = try await Self.attachment(vault, added)
            #expect(other.id != loot.fileBefore.id)
            #expect(!other.chunks.isEmpty && !other.chunks.contains(guess))
            // Links are not the account's: who has one opens it, and its manage token deletes it.
            #expect(try await server.api().openShare(loot.share.id).sealed.bytes == loot.shareSealed)
            try await server.api().deleteShare(loot.share.id, loot.share.manageToken)
            await #expect(throws: APIError.self) { try await server.api().openShare(loot.share.id) }
        }
    }
}

extension Vault {
    /// What an open vault has at hand.
    fileprivate func keys() throws -> (sealer: Sealer, password: KnownPassword, token: Token) {
        let opened = try open
        return (opened.sealer, opened.password, opened.token)
    }
}
