import CSQLite
import Cryptography
import Foundation
import SalternTesting
import Testing

@testable import SalternClient

/// What lists of items, of what was deleted and of shares show, and how far something long has come.
@Suite struct ListingTests {
    private let userid = "ada@example.org"
    private let password = Password("correct horse battery staple")

    private func withVault(_ body: (LiveServer, Vault, Device) async throws -> Void) async throws {
        try await LiveServer.with { server in
            let phone = try Device("phone", server)
            try await body(
                server, try await Vault.signUp(phone.settings, userid: userid, password: password), phone)
        }
    }

    private func item(_ title: String?, _ text: String) -> PlainItem {
        PlainItem(title: title, body: SecureBytes(copying: text.utf8))
    }

    @Test func `items are listed as they are here, sent or not, and so is what was deleted`() async throws {
        try await withVault { _, vault, phone in
            let kept = try await vault.put(item("kept", "1"), .random(), in: "notes")
            let gone = try await vault.put(item("gone", "22"), .random(), in: "notes")
            let edited = try await vault.put(item("edited", "4444"), .random(), in: "notes")
            try await vault.sync()
            phone.link.setFate { .losesRequest }
            let new = try await vault.put(item(nil, "333"), .random(), in: "files")
            try await vault.put(item("edited", "55555"), edited, in: "notes")
            try await vault.delete(gone)

            let items = try await vault.items()
            #expect(items.map(\.id) == [kept, new, edited].sorted())
            #expect(items.first { $0.id == kept }?.isUnsent == false)
            #expect(items.first { $0.id == new }?.isUnsent == true)
            #expect(items.first { $0.id == kept }?.title == "kept")
            #expect(items.first { $0.id == new }?.byteCount == 3)
            #expect(try await vault.items(in: "files").map(\.id) == [new])
            #expect(items.first { $0.id == edited }?.byteCount == 5)
            #expect(try await vault.items(in: "notes").map(\.id) == [kept, edited].sorted())
            #expect(try await vault.collectionCounts() == ["notes": 2, "files": 1])
            #expect(try await vault.summary(of: kept)?.collection == "notes")
            #expect(try await vault.summary(of: gone) == nil)

            let deleted = try await vault.deletedItems()
            #expect(deleted.map(\.id) == [gone])
            #expect(deleted.first?.title == "gone")
            #expect(deleted.first?.removedAt != nil)
            try await vault.restore(gone)
            #expect(try await vault.deletedItems().isEmpty)
        }
    }

    @Test func `what was deleted is in the trash for 30 days`() async throws {
        try await withVault { _, vault, _ in
            let ids = [ItemID.random(), .random()]
            for id in ids {
                try await vault.put(item(nil, "1"), id, in: "notes")
                try await vault.delete(id)
            }
            // It ages from the first confirmed reading of the clock on.
            for age in [1, Store.keptSeconds] {
                try await vault.removeAged(at: age)
                #expect(try await vault.deletedItems().count == 2, "\(age)")
            }
            try await vault.removeAged(at: Store.keptSeconds + 1)
            #expect(try await vault.deletedItems().isEmpty)
            await #expect { try await vault.restore(ids[1]) } throws: {
                if case VaultError.notFound = $0 { true } else { false }
            }
        }
    }

    @Test func `what is in the trash and here again is not listed as deleted`() async throws {
        try await withVault { _, vault, _ in
            let id = try await vault.put(item("a", "1"), .random(), in: "notes")
            try await vault.delete(id)
            try await vault.put(item("a", "2"), id, in: "notes")
            #expect(try await vault.deletedItems().isEmpty)
        }
    }

    @Test func `a list is one query, and one for the plan, however many items there are`() async throws {
        try await withVault { _, vault, _ in
            var ids: [ItemID] = []
            for number in 0..<9 {
                ids.append(try await vault.put(item("\(number)", "1"), .random(), in: number < 6 ? "notes" : "files"))
            }
            try await vault.sync()
            try await vault.put(item("0", "22"), ids[0], in: "notes")
            try await vault.delete(ids[1])
            try await vault.delete(ids[8])
            #expect(try await vault.counted { try $0.items().count } == Counted(items: 7, statements: 2))
            #expect(try await vault.counted { try $0.items(in: "notes").count } == Counted(items: 5, statements: 2))
            #expect(try await vault.counted { try $0.items("files").opened.count } == Counted(items: 2, statements: 1))
            #expect(try await vault.counted { try $0.deletedItems().count } == Counted(items: 2, statements: 1))
        }
    }

    @Test func `shares are listed and ended, and a link needs no account`() async throws {
        try await withVault { server, vault, _ in
            let payload = SecureBytes(copying: Array("secret".utf8))
            let base = try #require(URL(string: server.base))
            let link = try await vault.share(payload, base: base, maxViews: 5)
            #expect(try await SharedLink.open(link.url, over: CurlTransport(server.address())) == payload)
            let shares = try await vault.shares()
            #expect(shares.map(\.id) == [link.id])
            #expect(shares.first?.views == 1)
            try await vault.endShare(link.id)
            #expect(try await vault.shares().isEmpty)
            for id in [link.id, "nothing"] {
                await #expect { try await vault.endShare(id) } throws: {
                    if case VaultError.notFound = $0 { true } else { false }
                }
            }
        }
    }

    @Test func `who asks hears how far syncing, a rotation, an export and an import have come`() async throws {
        try await withVault { server, vault, phone in
            for number in 0..<3 { try await vault.put(item(nil, "\(number)"), .random(), in: "notes") }
            var steps = vault.progress().makeAsyncIterator()
            try await vault.sync()
            #expect(await steps.next() == .fetched(0))
            #expect(await steps.next() == .sent(3, of: 3))
            try await vault.export(to: URL(filePath: phone.folder.path + "/export"), password: password)
            // So that there is another step in the place of one that is missing.
            try await vault.sync()
            guard case .exported(let bytes)? = await steps.next() else {
                Issue.record("the export told nothing")
                return
            }
            #expect(bytes > 0)
            let documents = URL(filePath: phone.folder.path + "/documents")
            try await vault.exportDocuments(to: documents)
            let size = try Data(contentsOf: documents).count
            var imports = vault.progress().makeAsyncIterator()
            try await vault.importDocuments(from: documents)
            try await vault.sync()
            #expect(await imports.next() == .imported(size, of: size))

            let laptop = try Device("laptop", server)
            let other = try await Vault.logIn(laptop.settings, userid: userid, password: password)
            var others = other.progress().makeAsyncIterator()
            try await other.sync()
            #expect(await others.next() == .fetched(3))
            try await other.rotateKeys(password: password)
            try await other.sync()
            #expect(await others.next() == .fetched(0))
            #expect(await others.next() == .sealedAnew(3, of: 3))
        }
    }
}

/// How many items a call has given, and how many statements the store has carried out for it.
private struct Counted: Equatable {
    var items = 0
    var statements = 0
}

extension Vault {
    fileprivate func counted(_ body: @Sendable (isolated Vault) throws -> Int) throws -> Counted {
        try withUnsafeTemporaryAllocation(of: Int.self, capacity: 1) { statements in
            statements.initialize(repeating: 0)
            _ = sqlite3_trace_v2(
                store.database.handle, UInt32(SQLITE_TRACE_STMT),
                { _, statements, _, _ in
                    statements?.assumingMemoryBound(to: Int.self).pointee += 1
                    return 0
                }, statements.baseAddress)
            defer { _ = sqlite3_trace_v2(store.database.handle, 0, nil, nil) }
            let items = try body(self)
            return Counted(items: items, statements: statements[0])
        }
    }
}

extension Vault {
    fileprivate func removeAged(at age: Int64) throws { try store.removeAged(at: age) }
}
