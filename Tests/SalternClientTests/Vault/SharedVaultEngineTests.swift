import Cryptography
import Foundation
import SalternTesting
import Synchronization
import Testing
import VaultLog

@testable import SalternClient

/// What the sync of items does in shared vaults when keys, roles and lists change between an edit and its sending.
@Suite struct SharedVaultEngineTests {
    /// Ada owns a vault in which Bob writes.
    private struct Family {
        let people = SharedVaultPeople()
        let ada: PersonDevice
        let bob: PersonDevice
        let shared: SharedVault

        init(_ role: SharedRole = .writer) async throws {
            ada = try await people.person("ada")
            bob = try await people.person("bob")
            let made = try await ada.vault().shared.make(name: "Family", as: "Ada")
            try await people.join(made, bob.vault(), as: "Bob", role: role)
            shared = try await ada.vault().refreshed(made.id)
        }

        var id: SharedVaultID { shared.id }

        func sync(_ devices: PersonDevice...) async throws {
            for device in devices {
                let report = try await device.vault().sync()
                #expect(report.vaultFailures.isEmpty, "\(device.name)")
            }
        }

        func member(_ name: String) async throws -> SalternClient.MemberID {
            try #require(try await ada.vault().refreshed(id).members.first { $0.name == name }).id
        }

        /// Bob gives the vault an item that a reader has signed with the help of the server.
        func forged(_ text: String, by device: PersonDevice, _ item: ItemID) async throws -> ItemContent {
            let state = try #require(try await device.vault().vaultState(id))
            let sealing = VaultSealing(
                id: id, log: state.log, keys: state.keys, signer: try state.signer, role: .writer,
                evidence: JudgingEvidence(), refused: [], isStopped: false, lists: SealLists([]), names: [:])
            let body = SecureBytes(copying: Array(#"{"text":"\#(text)"}"#.utf8))
            return try sealing.seal(PlainItem(body: body), item, collection: "notes", .first)
        }
    }

    // MARK: Unsent edits

    @Test func `an edit before a rotation on the same device is sent under the new key`() async throws {
        let family = try await Family()
        let item = ItemID.random()
        try await family.ada.notes(family.id).put(Note(text: "before"), item)
        try await family.shared.rotate()
        try await family.sync(family.ada, family.bob)
        #expect(try await family.ada.vault().unsentCount(of: family.id) == 0)
        #expect(try await family.bob.texts(family.id) == [item: "before"])
    }

    @Test func `an edit before a rotation by another device is sent in the same sync`() async throws {
        let family = try await Family()
        let (first, second) = (ItemID.random(), ItemID.random())
        try await family.bob.notes(family.id).put(Note(text: "first"), first)
        try await family.shared.rotate()
        try await family.bob.notes(family.id).put(Note(text: "second"), second)
        let report = try #require(try await family.bob.vault().sync().vaults[family.id])
        #expect(report.sent == 2 && report.unsent == 0)
        try await family.sync(family.ada)
        #expect(try await family.ada.texts(family.id) == [first: "first", second: "second"])
    }

    @Test func `an edit whose reply was lost before a rotation exists once`() async throws {
        let family = try await Family()
        let item = ItemID.random()
        try await family.bob.notes(family.id).put(Note(text: "one"), item)
        family.bob.link.setRewrite { request, reply in
            request.target.contains("/items/batch") ? Self.problem(504, "timeout") : reply
        }
        #expect(try await family.bob.vault().sync().vaultFailures[family.id] != nil)
        family.bob.link.setRewrite { $1 }
        try await family.shared.rotate()
        try await family.sync(family.bob, family.ada)
        #expect(try await family.ada.texts(family.id) == [item: "one"])
        #expect(try await family.bob.vault().unsentCount(of: family.id) == 0)
    }

    @Test func `an edit that former keys have signed is signed again`() async throws {
        let family = try await Family()
        let laptop = try await family.people.person("bob")
        try await family.sync(family.bob, laptop)
        let item = ItemID.random()
        try await laptop.notes(family.id).put(Note(text: "before"), item)
        try await family.bob.vault().replaceVaultKeys()
        try await family.sync(laptop, family.ada, family.bob)
        #expect(try await family.ada.texts(family.id) == [item: "before"])
        #expect(try await family.bob.texts(family.id) == [item: "before"])
    }

    @Test func `what a server with another idea of the keys leaves is counted as unsent`() async throws {
        let family = try await Family()
        try await family.bob.notes(family.id).put(Note(text: "one"), .random())
        let count = Mutex(0)
        family.bob.link.setAnswer { request in
            guard request.method == .post, request.target.contains("/items/batch") else { return nil }
            count.withLock { $0 += 1 }
            return Self.problem(409, "stale_generation")
        }
        let report = try #require(try await family.bob.vault().sync().vaults[family.id])
        #expect(report.unsent == 1 && count.withLock { $0 } < 4)
    }

    private static func problem(_ status: Int, _ code: String) -> HTTPReply {
        let body = #"{"type":"about:blank","title":"No","status":\#(status),"code":"\#(code)"}"#
        return HTTPReply(head: HTTPReplyHead(status: status, fields: []), body: Array(body.utf8))
    }

    @Test func `an item of an earlier generation that a restored server has lost comes back`() async throws {
        let family = try await Family()
        let backup = family.people.vaults.backUp()
        let item = ItemID.random()
        try await family.bob.notes(family.id).put(Note(text: "kept"), item)
        try await family.sync(family.bob, family.ada)
        try await family.shared.rotate()
        try await family.sync(family.bob, family.ada)
        family.people.vaults.restore(backup)
        for _ in 0..<3 {
            _ = try await family.ada.vault().sync()
            _ = try await family.bob.vault().sync()
        }
        let tablet = try await family.people.person("ada")
        try await family.sync(tablet)
        #expect(try await tablet.texts(family.id) == [item: "kept"])
        #expect(try await family.ada.vault().unsentCount(of: family.id) == 0)
        // Its author and its signature are those of Bob.
        let author = try await OwnedItems(tablet.vault(), of: .vault(family.id)).perform { _, items in
            try items.author(of: item)
        }
        #expect(author?.name == "Bob" && author?.isOwn == false)
    }

    // MARK: Readers

    @Test func `a conflict of a lowered member ends no sync, and both versions are kept`() async throws {
        let family = try await Family()
        let item = ItemID.random()
        try await family.ada.notes(family.id).put(Note(text: "one"), item)
        try await family.sync(family.ada, family.bob)
        try await family.bob.notes(family.id).put(Note(text: "of Bob"), item)
        let new = ItemID.random()
        try await family.bob.notes(family.id).put(Note(text: "new of Bob"), new)
        try await family.shared.setRole(try await family.member("Bob"), to: .reader)
        try await family.ada.notes(family.id).put(Note(text: "of Ada"), item)
        try await family.sync(family.ada, family.bob)
        #expect(try await family.bob.texts(family.id) == [item: "of Ada"])
        let bob = try family.bob.vault()
        #expect(try await bob.unsentCount(of: family.id) == 0)
        #expect(try await bob.keptTexts(of: family.id).isSuperset(of: ["of Bob", "new of Bob"]))
        let kept = try await OwnedItems(bob, of: .vault(family.id)).deletedItem(new)
        #expect(kept.body.withUnsafeBytes { String(decoding: $0, as: UTF8.self) }.contains("new of Bob"))
    }

    @Test func `a reader that has seen an edit after the backup goes on`() async throws {
        let family = try await Family(.reader)
        let item = ItemID.random()
        try await family.ada.notes(family.id).put(Note(text: "one"), item)
        let tablet = try await family.people.person("ada")
        try await family.sync(family.ada, family.bob, tablet)
        let backup = family.people.vaults.backUp()
        try await family.ada.notes(family.id).put(Note(text: "two"), item)
        try await family.sync(family.ada, family.bob)
        family.people.vaults.restore(backup)
        // Another device of Ada has the state of the backup, and makes another edit of it.
        try await family.sync(tablet)
        try await tablet.notes(family.id).put(Note(text: "three"), item)
        try await family.sync(tablet)
        try await family.sync(family.bob)
        #expect(try await family.bob.texts(family.id)[item] == "three")
        #expect(try await family.bob.vault().keptTexts(of: family.id).contains("two"))
    }

    // MARK: Versions that are not judged

    @Test func `nothing opens a version before it is judged`() async throws {
        let family = try await Family()
        let eve = try await family.people.person("eve")
        try await family.people.join(family.shared, eve.vault(), as: "Eve", role: .reader)
        try await family.sync(family.ada, family.bob, eve)
        try await family.shared.rotate()
        try await family.sync(family.ada, eve)
        let (honest, forged) = (ItemID.random(), ItemID.random())
        try await family.ada.notes(family.id).put(Note(text: "honest"), honest)
        try await family.sync(family.ada)
        try await family.people.put(family.forged("forged", by: eve, forged), forged, family.id)
        // The server withholds Bob's box of the new generation.
        let id = try await family.member("Bob")
        let bob = VaultLog.MemberID(id)
        let box = family.people.onServer(family.id)?.boxes[bob]
        family.people.change(family.id) { $0.boxes[bob] = nil }
        _ = try await family.bob.vault().sync()
        #expect(try await family.bob.texts(family.id).isEmpty)
        family.people.change(family.id) { $0.boxes[bob] = box }
        for _ in 0..<2 { try await family.sync(family.bob) }
        #expect(try await family.bob.texts(family.id) == [honest: "honest"])
        let items = try OwnedItems(family.bob.vault(), of: .vault(family.id))
        #expect(try await items.items(in: "notes").map(\.id) == [honest])
        #expect(try await family.bob.vault().unsentCount(of: family.id) == 0)
    }

    @Test func `a key that arrives by a sync of the account opens the items that waited for it`() async throws {
        let family = try await Family()
        try await family.sync(family.ada, family.bob)
        try await family.shared.rotate()
        let item = ItemID.random()
        try await family.ada.notes(family.id).put(Note(text: "new"), item)
        try await family.sync(family.ada)
        let bob = VaultLog.MemberID(try await family.member("Bob"))
        let box = family.people.onServer(family.id)?.boxes[bob]
        family.people.change(family.id) { $0.boxes[bob] = nil }
        _ = try await family.bob.vault().sync()
        #expect(try await family.bob.texts(family.id).isEmpty)
        family.people.change(family.id) { $0.boxes[bob] = box }
        // Another device of Bob changes an item of the account.
        let tablet = try await family.people.person("bob")
        try await tablet.vault().collection("notes", of: Note.self).put(Note(text: "mine"))
        try await tablet.vault().sync()
        try await family.bob.vault().shared.withService { service throws(VaultError) in
            _ = try await service.syncing.sync(only: [.account])
        }
        #expect(try await family.bob.texts(family.id) == [item: "new"])
    }

    @Test func `a key that arrives by a sync of the account lets an edit be sent that waited for it`() async throws {
        let family = try await Family()
        let item = ItemID.random()
        try await family.bob.notes(family.id).put(Note(text: "of Bob"), item)
        try await family.shared.rotate()
        let bob = VaultLog.MemberID(try await family.member("Bob"))
        let box = family.people.onServer(family.id)?.boxes[bob]
        family.people.change(family.id) { $0.boxes[bob] = nil }
        _ = try await family.bob.vault().sync()
        #expect(try await family.bob.vault().unsentCount(of: family.id) == 1)
        family.people.change(family.id) { $0.boxes[bob] = box }
        let tablet = try await family.people.person("bob")
        try await tablet.vault().collection("notes", of: Note.self).put(Note(text: "mine"))
        try await tablet.vault().sync()
        try await family.bob.vault().shared.withService { service throws(VaultError) in
            _ = try await service.syncing.sync(only: [.account])
        }
        #expect(try await family.bob.vault().unsentCount(of: family.id) == 0)
        try await family.sync(family.ada)
        #expect(try await family.ada.texts(family.id) == [item: "of Bob"])
    }

    @Test func `a refused version costs no request later, and its item can be edited`() async throws {
        let family = try await Family()
        let eve = try await family.people.person("eve")
        try await family.people.join(family.shared, eve.vault(), as: "Eve", role: .reader)
        let item = ItemID.random()
        try await family.ada.notes(family.id).put(Note(text: "one"), item)
        try await family.sync(family.ada, family.bob, eve)
        try await family.people.put(family.forged("forged", by: eve, item), item, family.id)
        try await family.sync(family.bob)
        #expect(try await family.bob.texts(family.id) == [item: "one"])
        let path = "/v1/vaults/\(family.id)"
        let count = Mutex(0)
        family.bob.link.setAnswer { request in
            if request.target == path { count.withLock { $0 += 1 } }
            return nil
        }
        try await family.sync(family.bob)
        let usual = count.withLock { $0 }
        try await family.bob.notes(family.id).put(Note(text: "two"), item)
        try await family.sync(family.bob)
        #expect(usual <= 1 && count.withLock { $0 } <= 2 * usual + 1)
        try await family.sync(family.ada)
        #expect(try await family.ada.texts(family.id) == [item: "two"])
        #expect(try await family.bob.vault().unsentCount(of: family.id) == 0)
    }

    @Test func `the edits of a writer that has left count, also with later entries on the same page`() async throws {
        let family = try await Family()
        let carol = try await family.people.person("carol")
        try await family.people.join(family.shared, carol.vault(), as: "Carol")
        try await family.sync(family.ada, family.bob, carol)
        let (last, later) = (ItemID.random(), ItemID.random())
        try await family.bob.notes(family.id).put(Note(text: "last"), last)
        try await family.sync(family.bob)
        try await family.bob.vault().shared(family.id).leave()
        try await carol.vault().sync()
        try await carol.notes(family.id).put(Note(text: "later"), later)
        try await carol.vault().sync()
        // Ada's device seals after a minute.
        for _ in 0..<3 {
            try await family.sync(family.ada)
            family.people.advance(70)
        }
        let texts = [last: "last", later: "later"]
        #expect(try await family.ada.texts(family.id) == texts)
        let tablet = try await family.people.person("ada")
        try await family.sync(tablet)
        #expect(try await tablet.texts(family.id) == texts)
    }

    // MARK: Failures

    @Test func `a vault that fails is in the report, and stops nothing else`() async throws {
        let family = try await Family()
        let ada = try family.ada.vault()
        let other = try await ada.shared.make(name: "Other", as: "Ada")
        let own = try await ada.collection("notes", of: Note.self).put(Note(text: "mine"))
        try await family.ada.notes(family.id).put(Note(text: "one"), .random())
        try await family.ada.notes(other.id).put(Note(text: "two"), .random())
        for reply in [Self.problem(422, "strange"), HTTPReply(head: HTTPReplyHead(status: 200, fields: []), body: [])] {
            family.ada.link.setAnswer { [id = family.id] request in
                request.target.hasPrefix("/v1/vaults/\(id)/changes") ? reply : nil
            }
            let report = try await ada.sync()
            #expect(Array(report.vaultFailures.keys) == [family.id])
            #expect(report.vaults[other.id] != nil && report.vaults[family.id] == nil)
        }
        #expect(try await ada.unsentCount(of: other.id) == 0)
        #expect(try await ada.item(own) != nil)
        #expect(try await ada.unsentCount() == 0)
        if case .failed = await ada.state {} else { Issue.record("the state hides the failure") }
        family.ada.link.setAnswer { _ in nil }
        try await family.sync(family.ada)
        if case .failed = await ada.state { Issue.record("the failure is over") }
    }

    @Test func `each vault that fails is synced again after a wait of its own`() {
        let (first, second) = (SharedVaultID.random(), SharedVaultID.random())
        let repeats = VaultRepeats()
        var report = SyncReport()
        report.vaultFailures = [first: .shared(.busy)]
        #expect(Set(repeats.begin(after: report, Retries()).keys) == [first])
        // It waits already. Another vault that fails in the meantime waits, too.
        report.vaultFailures = [first: .shared(.busy), second: .unavailable(.transport(.connectionLost))]
        let waits = repeats.begin(after: report, Retries())
        #expect(Set(waits.keys) == [second] && waits.values.allSatisfy { $0 < .seconds(600) })
        repeats.end(first)
        #expect(Set(repeats.begin(after: report, Retries()).keys) == [first])
        #expect(repeats.begin(after: SyncReport(), Retries()).isEmpty)
    }

    @Test func `an unknown vault gets no tables`() async throws {
        let family = try await Family()
        let ada = try family.ada.vault()
        let unknown = OwnedItems(ada, of: .vault(.random()))
        await #expect { try await unknown.unsentCount() } throws: { $0.isShared(.unknownVault) }
        #expect(try await unknown.vault.perform { store, _ in try store.vaults() } == [family.id])
    }

    @Test func `the number of removed tables is not used again`() throws {
        let folder = try TemporaryDirectory(.memory)
        let store = try Store(path: folder.path + "/store.sqlite")
        let (one, two) = (SharedVaultID.random(), SharedVaultID.random())
        let former = try store.view(of: .vault(one)).database.number
        try store.removeTables(of: one)
        #expect(try store.view(of: .vault(two)).database.number != former)
    }

    @Test func `the revision before a removal is also that of chunks and refused versions`() throws {
        let folder = try TemporaryDirectory(.memory)
        let store = try Store(path: folder.path + "/store.sqlite")
        let view = try store.view(of: .vault(.random()))
        try view.setAside(.random(), Revision(7))
        #expect(try view.highestRevision() == Revision(7))
        try view.noteChunk(.random(), Revision(9), storedAt: Date())
        #expect(try view.highestRevision() == Revision(9))
    }

    @Test func `a listing keeps what is known of the versions that wait, and forgets those that it lacks`() throws {
        let folder = try TemporaryDirectory(.memory)
        let store = try Store(path: folder.path + "/store.sqlite")
        let view = try store.view(of: .vault(.random()))
        let (id, author) = (ItemID.random(), [UInt8](repeating: 1, count: 16))
        let content = ItemContent(collection: "notes", format: "saltern-1", body: [1])
        let other = ItemContent(collection: "notes", format: "saltern-1", body: [2])
        try view.setAside(id, Revision(7), awaitingSealOf: author, held: (content, 3))
        // A withdrawn version is an earlier one.
        try view.setAside(id, Revision(5))
        try view.listSetAsideAgain()
        #expect(try view.itemsSetAside(limit: 1).isEmpty && view.isSetAside(id) && view.hasItemsSetAside())
        #expect(try view.authorsAwaitingSeals() == [author])
        #expect(try view.heldSince(id, content) == 3 && view.heldSince(id, other) == nil)
        try view.forgetUnlistedSetAside()
        #expect(try view.heldSince(id, content) == nil && !view.hasItemsSetAside())
    }

    @Test func `changed items whose versions wait are taken in turn`() throws {
        let folder = try TemporaryDirectory(.memory)
        let store = try Store(path: folder.path + "/store.sqlite")
        let view = try store.view(of: .vault(.random()))
        let ids = (0..<3).map { _ in ItemID.random() }.sorted { $0.bytes.lexicographicallyPrecedes($1.bytes) }
        for id in ids {
            try view.record(id, content: ItemContent(collection: "notes", format: "saltern-1", body: [1]), edit: 1)
            try view.setAside(id, Revision(7))
        }
        #expect(try view.changedItemsSetAside(after: [], limit: 2).map(\.0) == [ids[0], ids[1]])
        #expect(try view.changedItemsSetAside(after: ids[1].bytes, limit: 2).map(\.0) == [ids[2], ids[0]])
        #expect(try view.changedItemsSetAside(after: ids[2].bytes, limit: 9).map(\.0) == ids)
    }

    @Test func `an earlier version of the server that a reader has invented is not shown`() async throws {
        let family = try await Family()
        let eve = try await family.people.person("eve")
        try await family.people.join(family.shared, eve.vault(), as: "Eve", role: .reader)
        let item = ItemID.random()
        try await family.ada.notes(family.id).put(Note(text: "one"), item)
        try await family.sync(family.ada, family.bob, eve)
        try await family.ada.notes(family.id).put(Note(text: "two"), item)
        try await family.sync(family.ada, family.bob)
        let forged = try await family.forged("invented", by: eve, item)
        family.bob.link.setAnswer { request in
            guard request.target.contains("/versions/") else { return nil }
            let state: [String: Any] = [
                "id": item.description, "revision": 1, "collection": "notes", "deleted": false,
                "createdAt": "2026-01-01T00:00:00Z", "updatedAt": "2026-01-01T00:00:00Z", "format": forged.format,
                "body": Base64.encodeToString(forged.body.bytes),
            ]
            let body = (try? JSONSerialization.data(withJSONObject: state)) ?? Data()
            return HTTPReply(head: HTTPReplyHead(status: 200, fields: []), body: Array(body))
        }
        let error = await #expect(throws: VaultError.self) {
            try await family.bob.vault().use(.vault(family.id)) { (parts) async throws(VaultError) in
                _ = try await ServerVersions(parts.scope, parts.items).item(item, at: Revision(1))
            }
        }
        guard case .unreadable? = error else {
            Issue.record("\(error as Any)")
            return
        }
    }

    @Test func `an account that owns vaults is deleted with them, or not at all`() async throws {
        let family = try await Family()
        let bodies = Mutex<[String]>([])
        family.ada.link.setAnswer { request in
            guard request.method == .delete, request.target == "/v1/account" else { return nil }
            let body = request.body.map { $0.withUnsafeBytes { String(decoding: $0, as: UTF8.self) } } ?? ""
            bodies.withLock { $0.append(body) }
            if body.contains("\"vaults\":\"delete\"") {
                return HTTPReply(head: HTTPReplyHead(status: 204, fields: []), body: [])
            }
            return Self.problem(409, "owns_vaults")
        }
        let ada = try family.ada.vault()
        await #expect { try await ada.leave(password: SharedVaultPeople.password) } throws: { $0.isShared(.ownsVaults) }
        #expect(try await ada.shared(family.id).isOwner)
        try await ada.leave(password: SharedVaultPeople.password, deletingVaults: true)
        #expect(bodies.withLock { $0.count } == 2)
    }
}
