import Cryptography
import Foundation
import SalternTesting
import Testing

@testable import SalternClient

/// The changes of one collection among those of others, and the order in which a collection is listed.
@Suite struct CollectionChangesTests {
    private let server = MemoryServer()
    private let folders: [TemporaryDirectory]

    init() throws { folders = try [TemporaryDirectory(.memory), TemporaryDirectory(.memory)] }

    private func devices() async throws -> (phone: Vault, laptop: Vault) {
        let settings = ["phone", "laptop"].enumerated().map { index, name in
            VaultSettings.forTests(folder: folders[index].path, server, name: name)
        }
        let phone = try await Vault.signUp(settings[0], userid: "ada", password: Password("password"))
        return (phone, try await Vault.logIn(settings[1], userid: "ada", password: Password("password")))
    }

    private func item(_ text: String) -> PlainItem {
        PlainItem(body: SecureBytes(copying: "{\"text\":\"\(text)\"}".utf8))
    }

    private func next(_ changes: AsyncStream<Set<ItemID>>) async -> Set<ItemID>? {
        for await ids in changes { return ids }
        return nil
    }

    @Test func `an item of another collection is none of its changes, and one that leaves the collection is`()
        async throws
    {
        let (phone, laptop) = try await devices()
        let old = try await phone.put(item("old"), .random(), in: "notes")
        try await phone.sync()
        try await laptop.sync()
        for (vault, other) in [(phone, laptop), (laptop, phone)] {
            let here = await vault.changes(in: "notes")
            let there = await other.changes(in: "notes")
            func expect(_ ids: Set<ItemID>, _ comment: Comment) async throws {
                #expect(await next(here) == ids, comment)
                try await vault.sync()
                try await other.sync()
                #expect(await next(there) == ids, comment)
            }
            try await vault.put(item("other"), .random(), in: "tags")
            let new = try await vault.put(item("new"), .random(), in: "notes")
            try await expect([new], "written")
            let tag = try await vault.put(item("tag"), .random(), in: "tags")
            try await vault.put(item("tag"), tag, in: "notes")
            try await expect([tag], "moved into it")
            try await vault.put(item("tag"), new, in: "tags")
            try await expect([new], "moved out of it")
            try await vault.put(item("once more"), new, in: "tags")
            try await vault.delete(tag)
            try await expect([tag], "deleted")
            try await vault.restore(tag)
            try await expect([tag], "restored")
            try await vault.put(item("old \(vault === phone)"), old, in: "notes")
            try await expect([old], "written over")
        }
    }

    @Test func `the changes of a collection end after a sign-out, also those that begin later`() async throws {
        let (phone, _) = try await devices()
        let changes = await phone.changes(in: "notes")
        let contents = phone.collection("notes", of: Note.self).observe()
        try await phone.signOut()
        for await _ in changes { Issue.record("nothing has changed") }
        for await _ in contents { Issue.record("there are no contents") }
        for await _ in await phone.changes(in: "notes") { Issue.record("nothing can change") }
    }

    @Test func `contents are in the order that was asked for, and equal ones in that of their ids`() async throws {
        let (phone, _) = try await devices()
        let notes = phone.collection("notes", of: Note.self)
        let titles: [String?] = ["b", nil, "a", "a"]
        var ids: [ItemID] = []
        for (index, title) in titles.enumerated() {
            ids.append(try await notes.put(Note(text: "\(index / 2)"), title: title))
        }
        func sorted(_ ids: [ItemID]) -> [ItemID] { ids.sorted() }
        let byTitle = sorted([ids[2], ids[3]]) + [ids[0], ids[1]]
        #expect(try await notes.contents().entries.map(\.id) == byTitle)
        let byText = sorted([ids[0], ids[1]]) + sorted([ids[2], ids[3]])
        #expect(try await notes.contents(sorted: .by(\.text)).entries.map(\.id) == byText)
        let descending = try await notes.contents(sorted: .by(\.text, descending: true))
        #expect(descending.values.map(\.text) == ["1", "1", "0", "0"])
        #expect(descending.entries.map(\.id) == sorted([ids[2], ids[3]]) + sorted([ids[0], ids[1]]))
        let own = CollectionOrder<Note> { ($0.title ?? "") > ($1.title ?? "") }
        for await contents in notes.observe(sorted: own) {
            #expect(contents.entries.map(\.title) == ["b", "a", "a", nil])
            break
        }
    }
}
