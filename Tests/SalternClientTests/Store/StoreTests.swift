import Cryptography
import Foundation
import SalternTesting
import Testing

@testable import SalternClient

struct StoreTests {
    private func content(_ byte: UInt8, collection: String = "notes") -> ItemContent {
        ItemContent(collection: collection, format: "saltern-1", title: [byte, byte], body: [byte])
    }

    @Test func `what was written is there when the store is opened again`() throws {
        let folder = try TemporaryDirectory()
        let path = folder.path + "/store.sqlite"
        let id = ItemID.random()
        do {
            let store = try Store(path: path)
            try store.put(StoredItem(id: id, revision: Revision(7), content: content(1), edit: 3), listing: 0)
            try store.record(id, content: content(2), edit: 4)
            try store.set(.cursor, Array("abc".utf8))
        }
        let store = try Store(path: path)
        #expect(try store.item(id)?.content == content(1))
        #expect(try store.current(id) == content(2))
        let change = try #require(try store.change(id))
        #expect(change.base == Revision(7) && change.edit == 4 && change.sent == nil)
        #expect(change.baseContent?.body == [1])
        #expect(try store.text(.cursor) == "abc")
    }

    @Test func `when everything is removed no table has a row`() throws {
        let folder = try TemporaryDirectory()
        let store = try Store(path: folder.path + "/store.sqlite")
        try store.put(StoredItem(id: .random(), revision: Revision(7), content: content(1), edit: 3), listing: 0)
        try store.record(.random(), content: content(2), edit: 4)
        try store.folders.setFolder(.random(), at: "/folder")
        try store.folders.setGeneration(7, ofFolder: .random())
        try store.note(.conflict)
        try store.removeEverything()
        let tables = try store.database.rows("SELECT name FROM sqlite_schema WHERE type = 'table'") { $0.text(0) ?? "" }
        #expect(tables.count > 10)
        for table in tables {
            #expect(try store.database.rows("SELECT count(*) FROM \(table)") { $0.integer(0) } == [0], "\(table)")
        }
    }

    @Test func `a second process is refused, and a file that others can read`() throws {
        let folder = try TemporaryDirectory()
        let path = folder.path + "/store.sqlite"
        let store = try Store(path: path)
        #expect(throws: StoreError.inUse) { try Store(path: path) }
        #expect(try store.changeCount() == 0)
        let open = folder.path + "/open.sqlite"
        #expect(FileManager.default.createFile(atPath: open, contents: nil, attributes: [.posixPermissions: 0o644]))
        #expect(throws: StoreError.exposedFile(path: open, mode: 0o644)) { try Store(path: open) }
    }

    @Test func `what is committed is on the disk before anything goes on, and what was removed is nowhere`() throws {
        let folder = try TemporaryDirectory()
        let store = try Store(path: folder.path + "/store.sqlite")
        let settings = try ["synchronous", "fullfsync", "journal_mode", "locking_mode", "secure_delete"].map { name in
            try store.database.rows("PRAGMA \(name)") { $0.text(0) ?? "" }.first
        }
        // 2 is FULL.
        #expect(settings == ["2", "1", "wal", "exclusive", "1"])
    }

    @Test func `a transaction that throws changes nothing`() throws {
        struct Stop: Error {}
        let folder = try TemporaryDirectory()
        let store = try Store(path: folder.path + "/store.sqlite")
        let id = ItemID.random()
        #expect(throws: Stop.self) {
            try store.transaction {
                try store.record(id, content: content(1), edit: 1)
                throw Stop()
            }
        }
        #expect(try store.change(id) == nil)
    }

    @Test func `a later change keeps the base of the first, and what was sent`() throws {
        let folder = try TemporaryDirectory()
        let store = try Store(path: folder.path + "/store.sqlite")
        let id = ItemID.random()
        try store.put(StoredItem(id: id, revision: Revision(7), content: content(1), edit: 1), listing: 0)
        try store.record(id, content: content(2), edit: 2)
        try store.markSent(store.changes(limit: 10, byteLimit: .max))
        try store.record(id, content: content(3), edit: 3)
        let change = try #require(try store.change(id))
        #expect(change.base == Revision(7))
        #expect(change.baseContent?.body == [1])
        #expect(change.sent == .content(digest: content(2).digest))
        #expect(try store.changes(limit: 10, byteLimit: .max).map(\.id) == [id])
    }

    @Test func `a batch ends where the bytes end, but has one change at least`() throws {
        let folder = try TemporaryDirectory()
        let store = try Store(path: folder.path + "/store.sqlite")
        for _ in 0..<5 {
            try store.record(
                .random(), content: ItemContent(collection: "a", format: "saltern-1", body: SecureRandom.bytes(900)),
                edit: 1)
        }
        #expect(try store.changes(limit: 10, byteLimit: 10).count == 1)
        #expect(try store.changes(limit: 10, byteLimit: 3_200).count == 2)
        #expect(try store.changes(limit: 3, byteLimit: .max).count == 3)
        #expect(try store.changeCount() == 5)
    }

    @Test func `notices are said once and forgotten when they were read`() throws {
        let folder = try TemporaryDirectory()
        let store = try Store(path: folder.path + "/store.sqlite")
        let id = ItemID.random()
        for _ in 0..<3 { try store.note(.conflict, id, other: id) }
        try store.note(.massDeletion)
        let notices = try store.notices()
        #expect(notices.map(\.kind) == [.conflict, .massDeletion])
        for notice in notices { try store.forgetNotice(notice.number) }
        #expect(try store.notices().isEmpty)
    }

    @Test func `a notice of a later kit is left to it`() throws {
        let folder = try TemporaryDirectory()
        let store = try Store(path: folder.path + "/store.sqlite")
        try store.database.execute("INSERT INTO notices (kind, noticed_at) VALUES ('ofTheFuture', 1)")
        try store.note(.massDeletion)
        #expect(try store.notices().map(\.kind) == [.massDeletion])
        #expect(try store.lastNotice() == 2)
    }

    @Test func `the notice of stopped passkeys has a new number each time, and is taken back whole`() throws {
        let folder = try TemporaryDirectory()
        let store = try Store(path: folder.path + "/store.sqlite")
        let ids = (0..<30).map { Base64URLBytes([UInt8($0)]) }
        func state() throws -> [Notice] { try store.notices() }
        try store.noteStopped([ids[0]])
        try store.takeBackStopped()
        #expect(try state().isEmpty)
        try store.noteStopped([ids[0]])
        try store.keepStopped()
        let first = try state()
        #expect(first.map(\.passkeys) == [[ids[0]]])
        // Two requests of one change.
        try store.noteStopped([ids[1]])
        try store.noteStopped([ids[1], ids[2]])
        #expect(try state().map(\.passkeys) == [[ids[0], ids[1], ids[2]]])
        #expect(try state()[0].number > first[0].number)
        try store.takeBackStopped()
        #expect(try state() == first)
        // What was kept is not taken back, and what was read does not return.
        try store.takeBackStopped()
        #expect(try state() == first)
        try store.noteStopped([ids[1]])
        try store.forgetNotice(state()[0].number)
        try store.note(.massDeletion)
        try store.takeBackStopped()
        #expect(try state().map(\.kind) == [.massDeletion])
        for id in ids { try store.noteStopped([id]) }
        #expect(try state().last?.passkeys == Array(ids.suffix(PasskeyKeys.limit)))
    }

    @Test func `the device's key is a file of its owner alone`() throws {
        let folder = try TemporaryDirectory()
        let keys = FileKeyStore(path: folder.path + "/device.key")
        #expect(try keys.load() == nil)
        let key = SecureRandom.secureBytes(32)
        try keys.save(key)
        #expect(try keys.load() == key)
        try FileManager.default.setAttributes([.posixPermissions: 0o640], ofItemAtPath: folder.path + "/device.key")
        #expect(throws: StoreError.exposedFile(path: folder.path + "/device.key", mode: 0o640)) { try keys.load() }
        try keys.remove()
        #expect(try keys.load() == nil)
    }
}
