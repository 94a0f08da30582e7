import Cryptography
import Foundation
import SalternTesting
import Testing

@testable import SalternClient

/// Changing an item by a function, and comparing versions of items in a list.
@Suite struct ItemEditTests {
    private struct Counter: Codable, Sendable, Equatable {
        var count: Int
    }

    private let folder: TemporaryDirectory
    private let server = MemoryServer()
    private let password = Password("password")

    init() throws { folder = try TemporaryDirectory(.memory) }

    private func signUp() async throws -> Vault {
        try await Vault.signUp(
            .forTests(folder: folder.path, server, name: "phone"), userid: "ada", password: password)
    }

    @Test func `edits that come at once are all made`() async throws {
        let vault = try await signUp()
        let counters = vault.collection("counters", of: Counter.self)
        let id = try await counters.put(Counter(count: 0))
        try await withThrowingTaskGroup { group in
            for _ in 0..<8 {
                group.addTask { for _ in 0..<25 { try await counters.edit(id) { $0.count += 1 } } }
            }
            // What a sync does with the item in between is kept, too.
            group.addTask { for _ in 0..<5 { try await vault.sync() } }
            try await group.waitForAll()
        }
        #expect(try await counters.all() == [id: Counter(count: 200)])
        #expect(try await vault.notices().isEmpty)
    }

    @Test func `an edit goes on from what a sync has brought since the item was shown`() async throws {
        let other = try TemporaryDirectory(.memory)
        let vaults = [
            try await signUp(),
            try await Vault.logIn(
                .forTests(folder: other.path, server, name: "laptop"), userid: "ada", password: password),
        ]
        let counters = vaults.map { $0.collection("counters", of: Counter.self) }
        let id = try await counters[0].put(Counter(count: 1))
        for vault in vaults { try await vault.sync() }
        let shown = try #require(try await counters[0].entry(id))
        #expect(try await counters[1].edit(id) { $0.count += 10 } == Counter(count: 11))
        for vault in vaults.reversed() { try await vault.sync() }
        #expect(try await counters[0].edit(id) { $0.count += 100 } == Counter(count: 111))
        for vault in vaults { try await vault.sync() }
        for counters in counters { #expect(try await counters.all() == [id: Counter(count: 111)]) }
        // What was made of the entry is kept beside it.
        let copy = try await counters[0].put(Counter(count: 2), id, over: shown.version)
        #expect(copy != id)
        #expect(try await counters[0].all() == [id: Counter(count: 111), copy: Counter(count: 2)])
        #expect(try await vaults[0].notices().map(\.kind) == [.conflict])
    }

    @Test func `an edit keeps title, collection and unknown members, and one that changes nothing writes nothing`()
        async throws
    {
        let vault = try await signUp()
        let counters = vault.collection("counters", of: Counter.self)
        let id = ItemID.random()
        try await vault.put(PlainItem(title: "steps", text: #"{"count":1,"unit":"m"}"#), id, in: "archive")
        try await counters.edit(id) { $0.count = 2 }
        #expect(try await vault.summary(of: id)?.collection == "archive")
        let item = try await vault.item(id)
        #expect(item?.title == "steps" && item?.text == #"{"count":2,"unit":"m"}"#)
        let version = try await counters.version(of: id)
        #expect(try await counters.edit(id) { _ in } == Counter(count: 2))
        #expect(try await counters.version(of: id) == version)
    }

    @Test func `an edit that fails leaves the item as it is`() async throws {
        let vault = try await signUp()
        let counters = vault.collection("counters", of: Counter.self)
        let id = try await counters.put(Counter(count: 1))
        await #expect {
            try await counters.edit(id) { counter throws(VaultError) in
                counter.count = 2
                throw .notFound
            }
        } throws: { if case VaultError.notFound = $0 { true } else { false } }
        #expect(try await counters[id] == Counter(count: 1))
        await #expect { try await counters.edit(.random()) { $0.count = 2 } } throws: {
            if case VaultError.notFound = $0 { true } else { false }
        }
        let other = try await vault.collection("notes", of: Note.self).put(Note(text: "no counter"))
        await #expect { try await counters.edit(other) { $0.count = 2 } } throws: {
            if case VaultError.unreadable = $0 { true } else { false }
        }
    }

    @Test func `a put keeps the title, and no other device misses one; nil removes it`() async throws {
        let other = try TemporaryDirectory(.memory)
        let vaults = [
            try await signUp(),
            try await Vault.logIn(
                .forTests(folder: other.path, server, name: "laptop"), userid: "ada", password: password),
        ]
        let counters = vaults.map { $0.collection("counters", of: Counter.self) }
        let id = try await counters[0].put(Counter(count: 1), title: "steps")
        for vault in vaults { try await vault.sync() }
        var entry = try #require(try await counters[1].entry(id))
        entry.value.count = 2
        #expect(try await counters[1].put(entry.value, id, over: entry.version) == id)
        for vault in vaults.reversed() { try await vault.sync() }
        #expect(try await counters[0].contents().titles == [id: "steps"])
        #expect(try await counters[0].all() == [id: Counter(count: 2)])
        for vault in vaults { #expect(try await vault.notices().isEmpty) }
        try await counters[0].put(Counter(count: 3), id, title: nil)
        for vault in vaults { try await vault.sync() }
        for counters in counters {
            #expect(try await counters.contents().titles.isEmpty)
            #expect(try await counters.all() == [id: Counter(count: 3)])
        }
    }

    @Test func `an entry has its item's version, which each edit replaces`() async throws {
        let vault = try await signUp()
        let counters = vault.collection("counters", of: Counter.self)
        let ids = [try await counters.put(Counter(count: 1)), try await counters.put(Counter(count: 1))]
        let before = try await counters.contents().entries
        for entry in before {
            #expect(try await counters.version(of: entry.id) == entry.version)
            #expect(try await counters.entry(entry.id) == entry)
        }
        #expect(Set(before.map(\.version)).count == 2)
        #expect(
            try await counters.put(Counter(count: 2), ids[0], over: before.first { $0.id == ids[0] }?.version) == ids[0]
        )
        let after = try await counters.contents().entries
        for id in ids {
            #expect((after.first { $0.id == id } == before.first { $0.id == id }) == (id == ids[1]))
        }
        #expect(try await counters.entry(.random()) == nil)
    }
}
