import Cryptography
import Foundation
import Testing
import VaultLog

@testable import SalternClient

/// Items that several members read and write, and versions that do not count.
@Suite struct SharedItemTests {
    private func notes(_ vault: SalternClient.Vault, _ id: SharedVaultID) async throws -> VaultCollection<Note> {
        try await vault.shared(id).collection("notes", of: Note.self)
    }

    @Test func `members read each other's items, and keep both versions of a conflict`() async throws {
        let people = SharedVaultPeople()
        let ada = try await people.device("ada")
        let bob = try await people.device("bob")
        let family = try await ada.shared.make(name: "Family", as: "Ada")
        _ = try await people.join(family, bob, as: "Bob")
        let (ours, theirs) = (try await notes(ada, family.id), try await notes(bob, family.id))
        let id = ItemID.random()
        try await ours.put(Note(text: "milk"), id)
        try await ada.sync()
        try await bob.sync()
        #expect(try await theirs[id] == Note(text: "milk"))
        try await ours.put(Note(text: "milk, bread"), id)
        try await theirs.put(Note(text: "milk, salt"), id)
        try await ada.sync()
        try await bob.sync()
        try await ada.sync()
        let texts = Set(try await ours.all().values.map(\.text))
        #expect(texts == ["milk, bread", "milk, salt"])
        #expect(try await Set(theirs.all().values.map(\.text)) == texts)
        // The name is an item of the vault, and no item of its members.
        try await family.rename("Household")
        try await ada.sync()
        #expect(try await bob.refreshed(family.id).name == "Household")
        #expect(try await ada.items().isEmpty)
    }

    @Test func `after a removal the edits that count are listed, and later ones are put aside`() async throws {
        let people = SharedVaultPeople()
        let ada = try await people.device("ada")
        let bob = try await people.device("bob")
        let eve = try await people.device("eve")
        let family = try await ada.shared.make(name: "Family", as: "Ada")
        _ = try await people.join(family, bob, as: "Bob")
        _ = try await people.join(family, eve, as: "Eve")
        let (honest, late) = (ItemID.random(), ItemID.random())
        let hers = try await notes(eve, family.id)
        try await hers.put(Note(text: "before"), honest)
        try await eve.sync()
        // Seals under the key and the head of before.
        let sealing = try #require(try await eve.vaultSealing(family.id))
        let member = try #require(try await ada.refreshed(family.id).members.first { $0.name == "Eve" })
        try await family.remove([member.id])
        let forged = try sealing.seal(
            PlainItem(body: SecureBytes(copying: Array(#"{"text":"after"}"#.utf8))), late, collection: "notes", .first)
        try await people.put(forged, late, family.id)
        _ = try await bob.refreshed(family.id)
        let theirs = try await notes(bob, family.id)
        #expect(try await theirs[honest] == Note(text: "before"))
        #expect(try await theirs.contents().items[late] == nil)
        // A device that has no earlier knowledge decides alike.
        let tablet = try await people.device("ada")
        _ = try await tablet.refreshed(family.id)
        let fresh = try await notes(tablet, family.id)
        #expect(try await fresh[honest] == Note(text: "before"))
        #expect(try await fresh.contents().items[late] == nil)
    }

    @Test func `what a reader writes with the server's help does not count`() async throws {
        let people = SharedVaultPeople()
        let ada = try await people.device("ada")
        let eve = try await people.device("eve")
        let family = try await ada.shared.make(name: "Family", as: "Ada")
        let joined = try await people.join(family, eve, as: "Eve", role: .reader)
        #expect(!joined.canWrite)
        let hers = try await notes(eve, family.id)
        await #expect(throws: VaultError.self) { try await hers.put(Note(text: "mine"), ItemID.random()) }
        let state = try #require(try await eve.vaultState(family.id))
        let sealing = VaultSealing(
            id: family.id, log: state.log, keys: state.keys, signer: try state.signer, role: .writer,
            evidence: JudgingEvidence(), refused: [], isStopped: false, lists: SealLists([]), names: [:])
        let id = ItemID.random()
        let forged = try sealing.seal(
            PlainItem(body: SecureBytes(copying: Array(#"{"text":"mine"}"#.utf8))), id, collection: "notes", .first)
        try await people.put(forged, id, family.id)
        try await ada.sync()
        #expect(try await notes(ada, family.id).contents().items.isEmpty)
    }

    @Test func `sealing, signing and judging are exact`() async throws {
        let people = SharedVaultPeople()
        let ada = try await people.device("ada")
        let family = try await ada.shared.make(name: "Family", as: "Ada")
        let sealing = try #require(try await ada.vaultSealing(family.id))
        let id = ItemID.random()
        let item = PlainItem(title: "Title", body: SecureBytes(copying: Array("body".utf8)))
        let content = try sealing.seal(item, id, collection: "notes", .first)
        func verdict(_ content: ItemContent, _ id: ItemID, revision: Int64 = 7) throws -> ItemVerdict {
            sealing.judge(try .made(id, revision, content), content, known: nil)
        }
        #expect(try verdict(content, id).opened?.item == item)
        #expect(try verdict(content, id).opened?.author?.isOwn == true)
        // Another place, another title, an impossible number.
        #expect(try verdict(content, .random()).opened == nil)
        let other = try sealing.seal(
            PlainItem(title: "Other", body: item.body), id, collection: "notes", .first)
        var mixed = content
        mixed.title = other.title
        guard case .putAside(let reason) = try verdict(mixed, id) else {
            Issue.record("a title of another edit counts")
            return
        }
        #expect(reason.rawValue == EditRejection.wrongSignature.rawValue)
        let high = try sealing.seal(
            item, id, collection: "notes", SealedBox.Edit(number: 1 << 40, previous: SealedBox.Edit.first.previous))
        guard case .putAside(let number) = try verdict(high, id) else {
            Issue.record("an impossible number counts")
            return
        }
        #expect(number.rawValue == "number")
        // The same edit under another key.
        try await family.rotate()
        let later = try #require(try await ada.vaultSealing(family.id))
        #expect(later.isOutdated(content) && later.hash(of: content, id) == sealing.hash(of: content, id))
        let renewed = try #require(later.renewed(content, id, from: sealing))
        #expect(!later.isOutdated(renewed) && later.isSameEdit(renewed, as: content, id))
    }
}

extension ItemState {
    fileprivate static func made(_ id: ItemID, _ revision: Int64, _ content: ItemContent) throws -> ItemState {
        var members: [String: Any] = [
            "id": id.description, "revision": revision, "collection": content.collection, "deleted": false,
            "createdAt": "2026-01-01T00:00:00Z", "updatedAt": "2026-01-01T00:00:00Z", "format": content.format,
            "body": Base64.encodeToString(content.body.bytes),
        ]
        members["title"] = content.title.map { Base64.encodeToString($0.bytes) }
        return try SalternAPI.decode(
            ItemState.self, [UInt8](try JSONSerialization.data(withJSONObject: members)))
    }
}

extension SharedVaultPeople {
    /// The server stores content that it should refuse.
    func put(_ content: ItemContent, _ id: ItemID, _ vault: SharedVaultID) async throws {
        let items = vaults.withState { $0.vaults[vault.description]?.items }
        guard let items else { throw VaultError.shared(.unknownVault) }
        _ = try await SalternAPI(items).writeBatch(
            [.put(id, content, ifRevision: nil)], Token(SecureBytes(copying: Array("slt_x".utf8))))
    }
}
