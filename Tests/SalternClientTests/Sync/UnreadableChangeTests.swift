import Cryptography
import Foundation
import Testing

@testable import SalternClient

/// What only this device has and does not open, because a key is missing or the store is damaged: it goes over nothing that
/// others can read, holds nothing up, is said, and is sent when it opens again.
@Suite struct UnreadableChangeTests {
    private func notes(_ vault: Vault) -> VaultCollection<Note> { vault.collection("notes") }

    private func texts(_ vault: Vault) async throws -> [String] {
        try await notes(vault).all().values.map(\.text).sorted()
    }

    private func isUnreadable(_ vault: Vault, _ id: ItemID) async -> Bool {
        do throws(VaultError) {
            _ = try await vault.item(id)
            return false
        } catch {
            if case .unreadable = error { return true } else { return false }
        }
    }

    /// The first device has changed a note, and its change does not open; the second has changed it, too, or has not.
    private func withDamage(
        isDisputed: Bool, _ body: (_ vaults: [Vault], _ id: ItemID, _ theirs: String) async throws -> Void
    ) async throws {
        let person = try await RestoredPerson()
        let vaults = try (0..<3).map { try person.vault($0) }
        let id = try await notes(vaults[0]).put(Note(text: "first"))
        for vault in vaults { try await vault.sync() }
        if isDisputed {
            try await notes(vaults[1]).put(Note(text: "theirs"), id)
            try await vaults[1].sync()
        }
        try await notes(vaults[0]).put(Note(text: "mine"), id)
        try await vaults[0].damageChange(id)
        let other = try await notes(vaults[0]).put(Note(text: "other"))
        for _ in 0..<2 {
            #expect(try await vaults[0].sync().unsent == 1)
            #expect(try await vaults[0].unsentCount() == 1)
            #expect(try await vaults[0].notices().map(\.kind) == [.unreadableChange])
            #expect(await isUnreadable(vaults[0], id))
        }
        // The device that has it is the only one that knows of it, and everything else goes on.
        let theirs = isDisputed ? "theirs" : "first"
        for vault in vaults[1...] {
            try await vault.sync()
            #expect(try await notes(vault).all() == [id: Note(text: theirs), other: Note(text: "other")])
            #expect(try await vault.notices().isEmpty)
        }
        try await body(vaults, id, theirs)
    }

    @Test(arguments: [true, false])
    func `what does not open is not sent, and who gives it up has what the server has`(isDisputed: Bool) async throws {
        try await withDamage(isDisputed: isDisputed) { vaults, id, theirs in
            await #expect(throws: VaultError.self) { try await notes(vaults[0]).put(Note(text: "again"), id) }
            try await vaults[0].delete(id)
            for vault in vaults {
                #expect(try await vault.sync().unsent == 0)
                #expect(try await notes(vault)[id] == Note(text: theirs))
                #expect(try await vault.unsentCount() == 0)
            }
            // It is not gone: its key may come.
            try await vaults[0].damageTrash(id)
            try await vaults[0].restore(id)
            for vault in vaults {
                try await vault.sync()
                #expect(try await notes(vault)[id] == Note(text: "mine"))
            }
        }
    }

    @Test(arguments: [true, false])
    func `what opens again is sent, beside what others have written meanwhile`(isDisputed: Bool) async throws {
        try await withDamage(isDisputed: isDisputed) { vaults, id, theirs in
            try await vaults[0].damageChange(id)
            for vault in vaults {
                try await vault.sync()
                #expect(try await texts(vault) == (isDisputed ? ["mine", "other", "theirs"] : ["mine", "other"]))
                #expect(try await notes(vault)[id] == Note(text: isDisputed ? "theirs" : "mine"))
            }
        }
    }

    @Test func `what is held and does not open goes over nothing when time went back`() async throws {
        let person = try await RestoredPerson()
        let vaults = try (0..<3).map { try person.vault($0) }
        let id = try await notes(vaults[0]).put(Note(text: "kept"))
        try await vaults[0].sync()
        let backup = person.server.backUp()
        try await notes(vaults[0]).put(Note(text: "lost"), id)
        for vault in vaults { try await vault.sync() }
        try await vaults[0].damage(id)
        person.server.restore(backup)
        try await vaults[0].sync()
        #expect(await isUnreadable(vaults[0], id))
        #expect(try await vaults[0].notices().map(\.kind) == [.timeWentBack, .unreadableChange])
        try await vaults[1].sync()
        #expect(try await texts(vaults[1]) == ["kept", "lost"])
        try await vaults[0].delete(id)
        for vault in vaults {
            try await vault.sync()
            #expect(try await texts(vault) == ["kept", "lost"])
        }
    }
}

extension Vault {
    /// Changes one bit of it, so that it does not open; or changes it back.
    fileprivate func damageChange(_ id: ItemID) throws {
        guard var change = try store.change(id), let content = change.content else { throw StoreError.damaged }
        change.content = content.damaged
        try store.write(change)
    }

    fileprivate func damageTrash(_ id: ItemID) throws {
        guard var item = try store.trashed(id) else { throw StoreError.damaged }
        item.content = item.content.damaged
        try store.trash(item, at: .now)
    }
}

extension ItemContent {
    fileprivate var damaged: ItemContent {
        var bytes = body.bytes
        bytes[bytes.count - 1] ^= 1
        return ItemContent(
            collection: collection, format: format, iterations: iterations, title: title?.bytes, body: bytes)
    }
}
