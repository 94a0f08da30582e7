import Cryptography
import Foundation
import SalternTesting
import Synchronization
import Testing
import VaultLog

@testable import SalternClient

/// Accepted versions that the lists of managers do not have, or that wait for a list.
@Suite struct SharedVaultWithdrawalTests {
    /// The server withholds items from a device; without one, all notes.
    private func withhold(_ item: ItemID? = nil, from device: PersonDevice, _ cast: SharedVaultCast) {
        let (name, path) = (item?.description, "/v1/vaults/\(cast.id)/changes")
        cast.rewrite(device) { target, reply in
            guard target.hasPrefix(path), let changes = reply["changes"] as? [[String: Any]] else { return }
            reply["changes"] = changes.filter { change in
                name.map { change["id"] as? String != $0 } ?? (change["collection"] as? String != "notes")
            }
        }
    }

    /// The server has forgotten the cursor of a device once, and has no lists for it if they are hidden.
    private func list(_ device: PersonDevice, hidesLists: Bool = false, _ cast: SharedVaultCast) {
        let path = "/v1/vaults/\(cast.id)"
        let isDue = Mutex(true)
        device.link.setAnswer { request in
            guard request.method == .get else { return nil }
            if hidesLists, request.target.hasPrefix(path + "/seals/") {
                return try? MemoryVaults.reply(MemoryVaults.problem(404, "not_found"))
            }
            let isListing = request.target.hasPrefix(path + "/changes") && request.target.contains("since=")
            guard isListing,
                isDue.withLock({ due in
                    defer { due = false }
                    return due
                })
            else { return nil }
            return try? MemoryVaults.reply(MemoryVaults.problem(410, "cursor_expired"))
        }
    }

    /// Ada's device removes Bob and seals without the edits that the server has withheld from it.
    private func removeBob(_ cast: SharedVaultCast, withholding item: ItemID? = nil) async throws {
        withhold(item, from: cast.ada, cast)
        try await cast.shared(cast.ada).remove([cast.member(cast.bob)])
        #expect(try await cast.state(cast.ada).log.unsealed.isEmpty)
        cast.beHonest(to: cast.ada)
    }

    private func items(_ device: PersonDevice, _ cast: SharedVaultCast) throws -> OwnedItems {
        OwnedItems(try device.vault(), of: .vault(cast.id))
    }

    private func kinds(_ device: PersonDevice, _ cast: SharedVaultCast) async throws -> Set<Notice.Kind> {
        Set(try await items(device, cast).notices().map(\.kind))
    }

    // MARK: Complete listings

    @Test func `an edit whose list is missing stays when a complete listing leaves it out`() async throws {
        let cast = try await SharedVaultCast()
        try await cast.write("of Bob", cast.bob)
        try await cast.sync(cast.ada, cast.eve)
        try await cast.shared(cast.ada).remove([cast.member(cast.bob)])
        cast.eve.link.setAnswer { request in
            guard request.method == .get, request.target.contains("/seals/") else { return nil }
            return try? MemoryVaults.reply(MemoryVaults.problem(404, "not_found"))
        }
        try await cast.sync(cast.eve)
        #expect(try await cast.texts(cast.eve) == ["of Bob"])
        list(cast.eve, hidesLists: true, cast)
        withhold(from: cast.eve, cast)
        try await cast.sync(cast.eve)
        #expect(try await cast.texts(cast.eve) == ["of Bob"])
        #expect(try await items(cast.eve, cast).deletedItems().isEmpty)
        // It is not sent before the list has it.
        #expect(try await cast.eve.vault().unsentCount(of: cast.id) == 1)
        #expect(try await kinds(cast.eve, cast).isDisjoint(with: [.refused, .unreadableChange]))
        cast.eve.link.setAnswer { _ in nil }
        cast.beHonest(to: cast.eve)
        try await cast.sync(cast.eve)
        #expect(try await cast.texts(cast.eve) == ["of Bob"])
        #expect(try await cast.eve.vault().unsentCount(of: cast.id) == 0)
    }

    // MARK: Many withdrawals

    /// Bob's notes that Eve's device has accepted.
    private func writeMany(_ cast: SharedVaultCast) async throws -> Set<String> {
        let notes = try cast.bob.notes(cast.id)
        for number in 1...30 { try await notes.put(Note(text: "\(number)")) }
        try await cast.sync(cast.bob, cast.eve)
        return Set((1...30).map { "\($0)" })
    }

    @Test func `many edits that a list leaves out wait for a person`() async throws {
        let cast = try await SharedVaultCast()
        let texts = try await writeMany(cast)
        try await removeBob(cast)
        let report = try #require(try await cast.eve.vault().sync().vaults[cast.id])
        #expect(report.isHeld)
        #expect(try await cast.texts(cast.eve) == texts)
        let items = try items(cast.eve, cast)
        #expect(try await items.heldDeletions().count == 30)
        #expect(try await kinds(cast.eve, cast).contains(.massDeletion))
        // A complete listing without them changes nothing.
        list(cast.eve, cast)
        withhold(from: cast.eve, cast)
        try await cast.sync(cast.eve)
        #expect(try await cast.texts(cast.eve) == texts)
        #expect(try await items.heldDeletions().count == 30)
        cast.beHonest(to: cast.eve)
        _ = try await items.agreeToDeletions()
        #expect(try await cast.texts(cast.eve).isEmpty)
        #expect(try await items.heldDeletions().isEmpty)
        #expect(try await cast.eve.vault().keptTexts(of: cast.id) == texts)
        #expect(try await cast.eve.vault().unsentCount(of: cast.id) == 0)
        #expect(try await !kinds(cast.eve, cast).contains(.massDeletion))
    }

    @Test func `edits that count again are no longer held`() async throws {
        let cast = try await SharedVaultCast()
        let texts = try await writeMany(cast)
        withhold(from: cast.ada, cast)
        let bob = try cast.member(cast.bob)
        try await cast.shared(cast.ada).setRole(bob, to: .reader)
        #expect(try await cast.state(cast.ada).log.unsealed.isEmpty)
        cast.beHonest(to: cast.ada)
        try await cast.sync(cast.eve)
        let items = try items(cast.eve, cast)
        #expect(try await items.heldDeletions().count == 30)
        try await cast.shared(cast.ada).setRole(bob, to: .writer)
        let report = try #require(try await cast.eve.vault().sync().vaults[cast.id])
        #expect(!report.isHeld)
        _ = try await items.agreeToDeletions()
        #expect(try await cast.texts(cast.eve) == texts)
    }

    @Test func `a held edit that a user has changed is that user's`() async throws {
        let cast = try await SharedVaultCast()
        let texts = try await writeMany(cast)
        try await removeBob(cast)
        try await cast.sync(cast.eve)
        let item = try #require(try await cast.eve.texts(cast.id).first { $0.value == "7" }).key
        try await cast.write("of Eve", cast.eve, item)
        let items = try items(cast.eve, cast)
        #expect(try await items.heldDeletions().count == texts.count - 1)
        _ = try await items.agreeToDeletions()
        #expect(try await cast.eve.texts(cast.id) == [item: "of Eve"])
        try await cast.sync(cast.ada)
        #expect(try await cast.ada.texts(cast.id) == [item: "of Eve"])
    }

    // MARK: Versions before refused ones

    @Test func `the version before a refused edit is sent, and no device sends that edit again`() async throws {
        let cast = try await SharedVaultCast()
        let laptop = try await cast.people.person("eve")
        let item = try await cast.write("one", cast.ada)
        try await cast.sync(cast.ada, cast.bob, cast.eve, laptop)
        try await cast.write("of Bob", cast.bob, item)
        try await cast.sync(cast.eve, laptop)
        try await removeBob(cast, withholding: item)
        try await cast.sync(cast.eve)
        let tablet = try await cast.people.person("ada")
        try await cast.sync(tablet)
        #expect(try await cast.texts(tablet) == ["one"])
        // This device still has the log of before.
        #expect(try await cast.texts(laptop) == ["of Bob"])
        try await cast.sync(laptop, cast.eve, cast.ada, tablet)
        for device in [cast.ada, cast.eve, laptop, tablet] {
            #expect(try await device.texts(cast.id) == [item: "one"])
            #expect(try await device.vault().unsentCount(of: cast.id) == 0)
            #expect(try await kinds(device, cast).isDisjoint(with: [.rolledBack, .conflict]))
        }
    }

    @Test func `the version before several refused edits is sent`() async throws {
        let cast = try await SharedVaultCast()
        let item = try await cast.write("one", cast.ada)
        try await cast.sync(cast.ada, cast.bob, cast.eve)
        for text in ["two", "three"] {
            try await cast.write(text, cast.bob, item)
            try await cast.sync(cast.eve)
        }
        try await removeBob(cast, withholding: item)
        try await cast.sync(cast.eve)
        let tablet = try await cast.people.person("ada")
        try await cast.sync(tablet)
        for device in [cast.eve, tablet] { #expect(try await cast.texts(device) == ["one"]) }
    }

    @Test func `a version that other edits may follow is not sent in the place of a refused one`() async throws {
        let cast = try await SharedVaultCast()
        let item = try await cast.write("one", cast.ada)
        try await cast.sync(cast.eve)
        // Eve's device gets no version between those of Ada and of Bob.
        try await cast.write("two", cast.ada, item)
        try await cast.sync(cast.ada, cast.bob)
        try await cast.write("of Bob", cast.bob, item)
        try await cast.sync(cast.eve)
        try await removeBob(cast, withholding: item)
        try await cast.sync(cast.eve, cast.ada)
        #expect(try await cast.texts(cast.eve) == ["one"])
        #expect(try await cast.texts(cast.ada) == ["two"])
        #expect(try await cast.eve.vault().unsentCount(of: cast.id) == 0)
    }

    @Test(arguments: [true, false])
    func `an interrupted sending of the version before a refused edit stops no later change`(
        _ isDeletion: Bool
    ) async throws {
        let cast = try await SharedVaultCast()
        let carol = try await cast.people.person("carol")
        try await cast.people.join(cast.shared(cast.ada), carol.vault(), as: "Carol")
        let item = try await cast.write("one", cast.ada)
        try await cast.sync(cast.ada, cast.bob, cast.eve, carol)
        try await cast.write("of Bob", cast.bob, item)
        try await cast.sync(cast.eve, carol)
        try await removeBob(cast, withholding: item)
        let path = "/v1/vaults/\(cast.id)/items/batch"
        cast.eve.link.setAnswer { request in
            guard request.target.hasPrefix(path) else { return nil }
            return try? MemoryVaults.reply(MemoryVaults.problem(504, "timeout"))
        }
        _ = try await cast.eve.vault().sync()
        #expect(try await cast.texts(cast.eve) == ["one"])
        #expect(try await cast.eve.vault().unsentCount(of: cast.id) == 1)
        cast.eve.link.setAnswer { _ in nil }
        try await cast.sync(carol)
        if isDeletion {
            try await items(carol, cast).delete(item)
            try await cast.sync(carol)
        } else {
            try await cast.write("of Carol", carol, item)
        }
        try await cast.sync(cast.eve, cast.ada)
        for device in [cast.eve, carol, cast.ada] {
            #expect(try await device.texts(cast.id) == (isDeletion ? [:] : [item: "of Carol"]))
            #expect(try await device.vault().unsentCount(of: cast.id) == 0)
        }
    }

    @Test func `the version before a refused edit counts although its author has left since`() async throws {
        let cast = try await SharedVaultCast()
        let carol = try await cast.people.person("carol")
        try await cast.people.join(cast.shared(cast.ada), carol.vault(), as: "Carol")
        try await cast.sync(carol)
        let item = try await cast.write("of Carol", carol)
        try await cast.sync(cast.bob, cast.eve)
        try await cast.write("of Bob", cast.bob, item)
        try await cast.sync(cast.eve)
        try await removeBob(cast, withholding: item)
        try await cast.shared(carol).leave()
        #expect(try #require(cast.people.onServer(cast.id)).log.unsealed.count == 1)
        try await cast.sync(cast.eve)
        #expect(try await cast.texts(cast.eve) == ["of Carol"])
    }

    @Test func `a replaced version keeps the number of the entry at which it was first accepted`() throws {
        let folder = try TemporaryDirectory(.memory)
        let store = try Store(path: folder.path + "/store.sqlite").view(of: .vault(.random()))
        let id = ItemID.random()
        func put(_ byte: UInt8, _ judgedAt: Int64) throws {
            let content = ItemContent(collection: "notes", format: SealedBox.format, body: [byte])
            try store.put(
                StoredItem(id: id, revision: Revision(judgedAt), content: content, edit: 1, judgedAt: judgedAt),
                listing: 0)
        }
        for (byte, judgedAt) in [(1, 3), (2, 5), (1, 7), (2, 9)] as [(UInt8, Int64)] { try put(byte, judgedAt) }
        var numbers: [UInt8: Int64] = [:]
        try store.forEachReplaced(of: id) { numbers[$0.content.body.bytes[0]] = $0.judgedAt }
        #expect(numbers == [1: 3, 2: 5])
    }
}
