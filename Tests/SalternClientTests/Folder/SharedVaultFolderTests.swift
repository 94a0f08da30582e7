import Foundation
import SalternTesting
import Synchronization
import Testing

@testable import SalternClient

/// Folders with the items of a shared vault.
@Suite struct SharedVaultFolderTests {
    private struct Family {
        let people = SharedVaultPeople()
        let ada: PersonDevice
        let bob: PersonDevice
        let id: SharedVaultID
        let here: TemporaryDirectory
        let there: TemporaryDirectory

        init(_ role: SharedRole) async throws {
            ada = try await people.person("ada")
            bob = try await people.person("bob")
            let family = try await ada.vault().shared.make(name: "Family", as: "Ada")
            try await people.join(family, bob.vault(), as: "Bob", role: role)
            id = family.id
            (here, there) = (try TemporaryDirectory(), try TemporaryDirectory())
        }

        func folder(_ device: PersonDevice, _ directory: TemporaryDirectory) throws -> FolderSync {
            FolderSync(
                try OwnedItems(device.vault(), of: .vault(id)), root: URL(filePath: directory.path),
                settings: FolderSettings())
        }
    }

    private func write(_ text: String, _ name: String, _ directory: TemporaryDirectory) throws {
        try Data(text.utf8).write(to: URL(filePath: directory.path).appending(path: name))
    }

    private func read(_ name: String, _ directory: TemporaryDirectory) -> String? {
        (try? Data(contentsOf: URL(filePath: directory.path).appending(path: name))).map {
            String(decoding: $0, as: UTF8.self)
        }
    }

    @Test func `an account and a vault have a folder each`() async throws {
        let family = try await Family(.writer)
        let own = try TemporaryDirectory()
        try write("mine", "mine.txt", own)
        try write("ours", "ours.txt", family.here)
        let mine = FolderSync(vault: try family.ada.vault(), root: URL(filePath: own.path))
        #expect(try await mine.run().uploaded.map(\.text) == ["mine.txt"])
        #expect(try await family.folder(family.ada, family.here).run().uploaded.map(\.text) == ["ours.txt"])
        #expect(try await mine.run().uploaded.isEmpty)
        let other = try TemporaryDirectory()
        await #expect(throws: FolderError.self) { try await family.folder(family.ada, other).run() }
    }

    @Test func `a reader's changes stay in the folder, and the vault's arrive`() async throws {
        let family = try await Family(.reader)
        try write("salt", "list.txt", family.here)
        _ = try await family.folder(family.ada, family.here).run()
        let folder = try family.folder(family.bob, family.there)
        #expect(try await folder.run().downloaded.map(\.text) == ["list.txt"])
        try write("own", "own.txt", family.there)
        try write("pepper", "list.txt", family.here)
        try write("flour", "other.txt", family.here)
        _ = try await family.folder(family.ada, family.here).run()
        let report = try await folder.run()
        #expect(Set(report.downloaded.map(\.text)) == ["list.txt", "other.txt"])
        #expect(report.uploaded.isEmpty && report.warnings.map(\.kind) == [.readOnly])
        #expect(read("own.txt", family.there) == "own" && read("list.txt", family.there) == "pepper")
    }

    @Test func `a file whose unsent item was withdrawn stays in the folder`() async throws {
        let family = try await Family(.writer)
        let folder = try family.folder(family.bob, family.there)
        _ = try await folder.run()
        try write("own", "own.txt", family.there)
        family.bob.link.setUnreachable(true)
        #expect(try await folder.run().isOffline)
        let ada = try family.ada.vault()
        let shared = try await ada.refreshed(family.id)
        let bob = try #require(shared.members.first { $0.name == "Bob" })
        try await shared.setRole(bob.id, to: .reader)
        family.bob.link.setUnreachable(false)
        for _ in 0..<2 { _ = try await folder.run() }
        #expect(read("own.txt", family.there) == "own")
        #expect(try await OwnedItems(family.bob.vault(), of: .vault(family.id)).unsentCount() == 0)
    }

    @Test func `files that are missing when a forgotten vault returns are no deletions`() async throws {
        let family = try await Family(.writer)
        for name in ["one.txt", "two.txt"] { try write(name, name, family.here) }
        _ = try await family.folder(family.ada, family.here).run()
        _ = try await family.folder(family.bob, family.there).run()
        try await family.bob.vault().shared(family.id).leave()
        try await family.bob.vault().shared(family.id).forget()
        try FileManager.default.removeItem(atPath: family.there.path + "/one.txt")
        try write("changed", "two.txt", family.there)
        try await family.people.join(family.ada.vault().shared(family.id), family.bob.vault(), as: "Bob")
        let report = try await family.folder(family.bob, family.there).run()
        #expect(report.deletedThere.isEmpty && report.downloaded.map(\.text).contains("one.txt"))
        _ = try await family.folder(family.ada, family.here).run()
        #expect(read("one.txt", family.here) == "one.txt" && read("one.txt", family.there) == "one.txt")
        for directory in [family.here, family.there] {
            let names = try FileManager.default.contentsOfDirectory(atPath: directory.path).filter {
                $0.hasPrefix("two")
            }
            #expect(Set(names.compactMap { read($0, directory) }) == ["two.txt", "changed"])
        }
    }

    @Test func `a file whose item was deleted here without a connection is deleted`() async throws {
        let family = try await Family(.writer)
        let folder = try family.folder(family.bob, family.there)
        try write("sent", "sent.txt", family.there)
        _ = try await folder.run()
        family.bob.link.setUnreachable(true)
        let items = try OwnedItems(family.bob.vault(), of: .vault(family.id))
        let ids = try await items.perform { store, _ in try store.stamps("files").keys.map(\.self) }
        #expect(ids.count == 1)
        for id in ids { try await items.delete(id) }
        for _ in 0..<2 { #expect(try await folder.run().isOffline) }
        family.bob.link.setUnreachable(false)
        for _ in 0..<2 { _ = try await folder.run() }
        #expect(read("sent.txt", family.there) == nil)
        #expect(try await items.perform { store, _ in try store.stamps("files").isEmpty })
        #expect(try await items.unsentCount() == 0)
    }

    @Test func `a file whose item a sync has withdrawn does not become a new item`() async throws {
        let family = try await Family(.writer)
        let eve = try await family.people.person("eve")
        let (ada, bob) = (try family.ada.vault(), try family.bob.vault())
        try await family.people.join(ada.shared(family.id), eve.vault(), as: "Eve")
        for _ in 0..<2 { try await ada.sync() }
        try write("of Eve", "eve.txt", family.here)
        _ = try await family.folder(eve, family.here).run()
        let folder = try family.folder(family.bob, family.there)
        #expect(try await folder.run().downloaded.map(\.text) == ["eve.txt"])
        // The server withholds the item from Ada's device, so its list of Eve's edits is empty.
        family.ada.link.setRewrite { [id = family.id] request, reply in
            guard request.target.hasPrefix("/v1/vaults/\(id)/changes"),
                var page = try? JSONSerialization.jsonObject(with: Data(reply.body)) as? [String: Any],
                page["changes"] != nil
            else { return reply }
            page["changes"] = [Any]()
            let body = (try? JSONSerialization.data(withJSONObject: page)) ?? Data()
            return HTTPReply(head: reply.head, body: [UInt8](body))
        }
        let member = try #require(try await ada.refreshed(family.id).members.first { $0.name == "Eve" })
        try await ada.shared(family.id).remove([member.id])
        family.ada.link.setRewrite { $1 }
        for _ in 0..<3 { _ = try await folder.run() }
        #expect(read("eve.txt", family.there) == nil)
        let items = OwnedItems(bob, of: .vault(family.id))
        #expect(try await items.perform { store, _ in try store.stamps("files").isEmpty })
        #expect(try await items.unsentCount() == 0)
    }

    @Test func `waiting deletions in the folder of a removed vault do not hold up a sign-out`() async throws {
        let family = try await Family(.writer)
        let bob = try family.bob.vault()
        let folder = try family.folder(family.bob, family.there)
        let names = (0..<12).map { "\($0).txt" }
        for name in names { try write("in \(name)", name, family.there) }
        _ = try await folder.run()
        for name in names.dropFirst() {
            try FileManager.default.removeItem(at: URL(filePath: family.there.path).appending(path: name))
        }
        #expect(try await folder.run().held.there > 0)
        #expect(try await OwnedItems(bob).ownersHoldingDeletions() == [.vault(family.id)])
        func isHeld(_ error: any Error) -> Bool { if case VaultError.deletionsHeld = error { true } else { false } }
        await #expect { try await bob.signOut() } throws: { isHeld($0) }
        try await bob.shared(family.id).forget(evenAsMember: true)
        try await bob.sync()
        #expect(try await OwnedItems(bob).ownersHoldingDeletions().isEmpty)
        #expect(try await !bob.areDeletionsHeld())
        // The folder stays that of the vault, with its files.
        await #expect { try await folder.run() } throws: { error in
            if case FolderError.vault(let error) = error { error.isShared(.unknownVault) } else { false }
        }
        #expect(read(names[0], family.there) == "in \(names[0])")
        try await bob.signOut()
    }

    @Test func `a plan sends nothing`() async throws {
        let family = try await Family(.writer)
        try write("salt", "list.txt", family.there)
        let folder = try family.folder(family.bob, family.there)
        _ = try await folder.run()
        try write("pepper", "list.txt", family.there)
        let ada = try family.ada.vault()
        try await ada.shared(family.id).rotate()
        try await VaultCollection<Note>(
            name: "notes", vault: ada, owner: .vault(family.id), schema: ItemSchema()
        ).put(Note(text: "under the new key"))
        try await ada.sync()
        let count = Mutex(0)
        family.bob.link.setAnswer { request in
            if request.method != .get { count.withLock { $0 += 1 } }
            return nil
        }
        let plan = try await folder.plan()
        #expect(plan.uploaded.map(\.text) == ["list.txt"])
        #expect(count.withLock { $0 } == 0)
    }
}
