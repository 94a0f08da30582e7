import Cryptography
import Foundation
import SalternTesting
import Synchronization
import Testing

@testable import SalternClient

/// What does not open is kept and not written over, and is read when its key comes.
@Suite struct UnreadableVersionTests {
    private let userid = "ada@example.org"
    private let password = Password("correct horse battery staple")

    private func withPhone(_ body: (LiveServer, Device, Vault) async throws -> Void) async throws {
        try await LiveServer.with { server in
            let phone = try Device("phone", server)
            let vault = try await Vault.signUp(phone.settings, userid: userid, password: password)
            try await body(server, phone, vault)
        }
    }

    private func notes(_ vault: Vault) -> VaultCollection<Note> { vault.collection("notes") }

    /// Puts a version on the server under a key that nobody has.
    private func putUnreadable(_ server: LiveServer, _ vault: Vault, _ id: ItemID) async throws -> ItemContent {
        let (api, token) = (try server.api(), try await vault.secrets().token)
        let foreign = Sealer(account: try await vault.account().accountId, keyring: .new())
        let content = try foreign.seal(
            PlainItem(body: SecureBytes(copying: [1])), id, collection: "notes",
            SealedBox.Edit(number: 9, previous: SealedBox.Edit.first.previous))
        let revision = (try? await api.getItem(id, token))?.revision ?? Revision(0)
        _ = try await api.writeBatch([.put(id, content, ifRevision: revision)], token)
        return content
    }

    @Test func `an edit of what is known does not go over a version that nobody here can read`() async throws {
        try await withPhone { server, _, vault in
            let id = try await notes(vault).put(Note(text: "known"))
            try await vault.sync()
            let content = try await putUnreadable(server, vault, id)
            try await vault.sync()
            #expect(try await notes(vault).all() == [id: Note(text: "known")])
            #expect(try await vault.notices().map(\.kind) == [.unreadable])
            try await notes(vault).put(Note(text: "edited"), id)
            try await vault.sync()
            let (api, token) = (try server.api(), try await vault.secrets().token)
            #expect(try await api.getItem(id, token).content == content)
            let copy = try #require(try await vault.notices().compactMap(\.other).first)
            #expect(try await notes(vault).all() == [id: Note(text: "known"), copy: Note(text: "edited")])
            #expect(try await vault.unsentCount() == 0)
            // Nor does a deletion, nor what is sealed anew.
            try await notes(vault).delete(id)
            try await vault.sync()
            #expect(try await vault.notices().contains { $0.kind == .deletionUndone })
            await #expect(throws: VaultError.self) { try await vault.rotateKeys(password: password) }
            #expect(try await api.getItem(id, token).content == content)
            #expect(try await notes(vault)[id] == Note(text: "known"))
            // A listing of everything changes nothing of it.
            try await vault.listAnew()
            try await vault.sync()
            try await notes(vault).put(Note(text: "again"), id)
            try await vault.sync()
            #expect(try await api.getItem(id, token).content == content)
            #expect(try await notes(vault).all().count == 3)
        }
    }

    @Test func `what is new and does not open is there, can be deleted, and is not written over`() async throws {
        try await withPhone { server, _, vault in
            let ids = [ItemID.random(), .random()]
            var contents: [ItemContent] = []
            for id in ids { contents.append(try await putUnreadable(server, vault, id)) }
            #expect(try await vault.sync().changed == Set(ids))
            #expect(try await notes(vault).contents().unreadable == [ids[0]: .doesNotOpen, ids[1]: .doesNotOpen])
            await #expect { try await notes(vault).put(Note(text: "mine"), ids[0]) } throws: {
                if case VaultError.unreadable = $0 { true } else { false }
            }
            // What replaces it is as unreadable, and takes its place.
            contents[0] = try await putUnreadable(server, vault, ids[0])
            try await notes(vault).delete(ids[1])
            try await vault.sync()
            #expect(try await vault.store(ids[0]) == contents[0])
            #expect(try await notes(vault).contents().unreadable == [ids[0]: .doesNotOpen])
            let token = try await vault.secrets().token
            await #expect(throws: APIError.self) { try await server.api().getItem(ids[1], token) }
            // A listing that does not have it loses it no more than anything else.
            _ = try await server.api().writeBatch([.delete(ids[0], ifRevision: nil)], token)
            try await vault.sync()
            #expect(try await notes(vault).contents().unreadable.isEmpty)
        }
    }

    /// How the key comes in the end.
    enum Arrival: CaseIterable { case sync, logIn }

    @Test(arguments: Arrival.allCases)
    func `what was passed by is read when its key comes`(_ arrival: Arrival) async throws {
        try await withPhone { server, phone, vault in
            let old = try await notes(vault).put(Note(text: "old"))
            let kept = try await notes(vault).put(Note(text: "kept"))
            try await vault.sync()
            let (api, token) = (try server.api(), try await vault.secrets().token)
            let rule = StretchingRule.forTests
            let stretched = try await rule.stretch(password, userid: userid, iterations: 10_000)
            let before = try #require(try await api.getKeyring(token))
            let next = try Keyring(sealed: before.keyring.bytes, openedBy: stretched)
                .changed { $0.dataKeys.append(.random()) }
            _ = try await api.putKeyring(next.sealed(under: stretched), .revision(before.revision), token)
            let laptop = try Device("laptop", server)
            let other = try await Vault.logIn(laptop.settings, userid: userid, password: password)
            try await other.sync()
            let new = try await notes(other).put(Note(text: "new"))
            try await notes(other).put(Note(text: "old, edited"), old)
            try await other.sync()

            // The server keeps the later keyring to itself.
            let lie = #""keyring":"\#(Base64.encodeToString(before.keyring.bytes))""#
            phone.link.setRewrite { request, reply in
                guard request.target == "/v1/account/keyring" else { return reply }
                let text = String(decoding: reply.body, as: UTF8.self).replacing(/"keyring":"[^"]*"/, with: lie)
                return HTTPReply(head: reply.head, body: Array(text.utf8))
            }
            try await vault.sync()
            try await vault.sync()
            let contents = try await notes(vault).contents()
            #expect(contents.items == [old: Note(text: "old"), kept: Note(text: "kept")])
            #expect(contents.unreadable == [new: .doesNotOpen])

            switch arrival {
            case .sync: phone.link.setRewrite { $1 }
            case .logIn: try await vault.logInAgain(password: password)
            }
            let changed = try await vault.sync().changed
            #expect(changed == [old, new])
            let all = [new: Note(text: "new"), old: Note(text: "old, edited"), kept: Note(text: "kept")]
            #expect(try await notes(vault).all() == all)
            // It is an edit like any other from now on, and nothing is asked for any more.
            let asked = Mutex(0)
            phone.link.setAnswer { request in
                if request.target == "/v1/account/keyring" { asked.withLock { $0 += 1 } }
                return nil
            }
            try await notes(vault).put(Note(text: "new, edited"), new)
            try await vault.sync()
            #expect(asked.withLock { $0 } == 0)
            try await other.sync()
            #expect(try await notes(other)[new] == Note(text: "new, edited"))
            #expect(try await other.notices().isEmpty)
        }
    }

    @Test func `what is known of a deleted item counts when something unreadable takes its place`() throws {
        let folder = try TemporaryDirectory(.memory)
        let store = try Store(path: folder.path + "/store.sqlite")
        let id = ItemID.random()
        var item = StoredItem(
            id: id, revision: Revision(1), content: ItemContent(collection: "notes", format: "saltern-1", body: [1]),
            edit: 7)
        try store.put(item, listing: 0)
        try store.storeTombstone(id, Revision(2), at: .distantPast)
        item.edit = 0
        try store.put(item, listing: 0)
        #expect(try store.tombstone(id)?.edit == 7)
        try store.storeTombstone(id, Revision(3), at: .distantPast)
        #expect(try store.tombstone(id)?.edit == 7)
    }
}

extension Vault {
    fileprivate func listAnew() throws { try store.beginListing() }

    fileprivate func store(_ id: ItemID) throws -> ItemContent? { try store.item(id)?.content }
}
