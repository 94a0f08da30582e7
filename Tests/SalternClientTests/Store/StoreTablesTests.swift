import SalternTesting
import Testing

@testable import SalternClient

/// The items of an account and of its shared vaults are in one store, and never mixed.
struct StoreTablesTests {
    private func content(_ byte: UInt8, collection: String = "notes") -> ItemContent {
        ItemContent(collection: collection, format: "saltern-1", title: [byte, byte], body: [byte])
    }

    private func names(_ store: Store) throws -> Set<String> {
        Set(
            try store.database.rows("SELECT name FROM sqlite_schema WHERE type IN ('table', 'index')") {
                $0.text(0) ?? ""
            })
    }

    @Test func `items, changes and cursors with equal ids are separate for each owner`() throws {
        let folder = try TemporaryDirectory()
        let path = folder.path + "/store.sqlite"
        let (first, second, id) = (SharedVaultID.random(), SharedVaultID.random(), ItemID.random())
        do {
            let store = try Store(path: path)
            for (number, owner) in [ItemOwner.account, .vault(first), .vault(second)].enumerated() {
                let view = try store.view(of: owner)
                let byte = UInt8(number + 1)
                try view.put(StoredItem(id: id, revision: Revision(7), content: content(byte), edit: 3), listing: 0)
                try view.record(id, content: content(byte + 10), edit: 4)
                try view.set(.cursor, Array("cursor \(number)".utf8))
                try view.note(.conflict, id)
            }
            try store.view(of: .vault(first)).removeItem(id)
            try store.view(of: .vault(first)).forgetChange(id)
            try store.view(of: .vault(second)).set(.userid, Array("ada".utf8))
        }
        let store = try Store(path: path)
        #expect(try store.vaults() == [first, second])
        #expect(try store.item(id)?.content == content(1))
        #expect(try store.current(id) == content(11))
        #expect(try store.view(of: .vault(first)).current(id) == nil)
        #expect(try store.view(of: .vault(second)).current(id) == content(13))
        #expect(try store.view(of: .vault(second)).text(.cursor) == "cursor 2")
        #expect(try store.text(.cursor) == "cursor 0")
        #expect(try store.notices().count == 1)
        // The account's facts are those of the whole store.
        #expect(try store.text(.userid) == "ada")
        #expect(try store.views().map { try $0.changeCount() } == [1, 0, 1])
    }

    @Test func `a store of the format before keeps its items and gets no further tables of items`() throws {
        let folder = try TemporaryDirectory()
        let path = folder.path + "/store.sqlite"
        let id = ItemID.random()
        let before: Set<String>
        do {
            let file = StoreTables(try SQLiteDatabase(path: path))
            try StoreSchema.prepare(file, Array(StoreSchema.steps.prefix(16)))
            try file.execute(
                """
                INSERT INTO items (id, revision, collection, format, title, body, edit)
                VALUES (?, 7, 'notes', 'saltern-1', ?, ?, 3)
                """, .blob(id.bytes), .blob([1, 1]), .blob([1]))
            before = try names(Store(file))
            file.close()
        }
        let store = try Store(path: path)
        #expect(try store.item(id) == StoredItem(id: id, revision: Revision(7), content: content(1), edit: 3))
        let added = try names(store).subtracting(before).filter { !$0.hasPrefix("sqlite") }
        #expect(added.contains("vaults") && added.allSatisfy { $0.hasPrefix("vault") || $0 == "set_aside" }, "\(added)")
    }

    @Test func `a later step changes the tables of every owner`() throws {
        let folder = try TemporaryDirectory()
        let store = try Store(path: folder.path + "/store.sqlite")
        let view = try store.view(of: .vault(.random()))
        try StoreSchema.prepare(store.database, StoreSchema.steps + ["ALTER TABLE items ADD COLUMN later INTEGER"])
        #expect(try view.database.rows("SELECT later FROM items") { _ in true } == [])
        #expect(try store.database.rows("SELECT later FROM items") { _ in true } == [])
    }

    @Test func `a removed vault leaves no table, and comes back empty`() throws {
        let folder = try TemporaryDirectory()
        let store = try Store(path: folder.path + "/store.sqlite")
        let before = try names(store)
        let (id, item) = (SharedVaultID.random(), ItemID.random())
        try store.view(of: .vault(id)).record(item, content: content(1), edit: 1)
        #expect(try names(store) != before)
        try store.removeTables(of: id)
        #expect(try names(store) == before)
        #expect(try store.view(of: .vault(id)).changeCount() == 0)
        try store.removeEverything()
        #expect(try names(store) == before)
        #expect(try store.vaults() == [])
    }

    @Test func `a copied store marks the unsent edits of every owner`() throws {
        let folder = try TemporaryDirectory()
        let store = try Store(path: folder.path + "/store.sqlite")
        let (view, id) = (try store.view(of: .vault(.random())), ItemID.random())
        try view.record(id, content: content(1), edit: 1)
        try store.renewIdentity()
        #expect(try view.change(id)?.sent != nil)
    }

    @Test func `texts in quotes keep the names of tables`() {
        let tables = StoreTables.named("SELECT 'items', changed FROM items i JOIN unread_items u ON i.id = u.id", 3)
        #expect(tables == "SELECT 'items', changed FROM items_v3 i JOIN unread_items_v3 u ON i.id = u.id")
    }
}
