import Cryptography
import SalternTesting
import Testing

@testable import SalternClient

/// What an app sees of a collection in which one item cannot be read, and that it cannot lose it unasked.
@Suite struct CollectionContentsTests {
    private func withNotes(_ body: (Vault, VaultCollection<Note>) async throws -> Void) async throws {
        try await LiveServer.with { server in
            let phone = try Device("phone", server)
            let vault = try await Vault.signUp(
                phone.settings, userid: "ada@example.org", password: Password("password"))
            try await body(vault, vault.collection("notes"))
        }
    }

    private func isUnreadable(_ error: any Error) -> Bool {
        if case VaultError.unreadable = error { true } else { false }
    }

    @Test func `what can be read is listed, beside what cannot and why`() async throws {
        try await withNotes { vault, notes in
            let good = try await notes.put(Note(text: "Buy salt."))
            let damaged = try await notes.put(Note(text: "Buy oil."))
            let other = PlainItem(body: SecureBytes(copying: #"{"lines":[]}"#.utf8))
            let later = try await vault.put(other, .random(), in: "notes")
            try await vault.sync()
            try await vault.damage(damaged)

            let contents = try await notes.contents()
            #expect(contents.items == [good: Note(text: "Buy salt.")])
            #expect(contents.unreadable == [damaged: .doesNotOpen, later: .isOfAnotherType])
            await #expect { try await notes.all() } throws: { isUnreadable($0) }
        }
    }

    @Test func `what cannot be read is not written over unasked, and is in the trash when deleted`() async throws {
        try await withNotes { vault, notes in
            let other = PlainItem(body: SecureBytes(copying: #"{"lines":[]}"#.utf8))
            let later = try await vault.put(other, .random(), in: "notes")
            let damaged = try await notes.put(Note(text: "Buy oil."))
            try await vault.sync()
            try await vault.damage(damaged)
            for id in [later, damaged] {
                await #expect { try await notes.put(Note(text: "new"), id) } throws: { isUnreadable($0) }
            }
            #expect(try await vault.item(later) == other)
            try await notes.delete(later)
            #expect(try await notes.contents().unreadable == [damaged: .doesNotOpen])
            try await notes.restore(later)
            #expect(try await vault.item(later) == other)
            // Who names the version means it.
            try await notes.put(Note(text: "new"), later, over: try await notes.version(of: later))
            #expect(try await notes.contents().items == [later: Note(text: "new")])
        }
    }
}

extension Vault {
    /// Changes a byte of what is stored.
    func damage(_ id: ItemID) throws {
        guard var item = try store.item(id) else { throw StoreError.damaged }
        var body = item.content.body.bytes
        body[body.count - 1] ^= 1
        item.content = ItemContent(
            collection: item.content.collection, format: item.content.format, title: nil, body: body)
        try store.put(item, listing: 0)
    }
}
