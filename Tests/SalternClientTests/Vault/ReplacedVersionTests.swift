import Cryptography
import Foundation
import SalternTesting
import Testing

@testable import SalternClient

@Suite struct ReplacedVersionTests {
    private static func item(_ text: String, title: String? = nil) -> PlainItem {
        PlainItem(title: title, body: SecureBytes(copying: Array(text.utf8)))
    }

    private static func texts(of id: ItemID, in vault: Vault) async throws -> [String] {
        var texts: [String] = []
        for version in try await vault.replacedVersions(of: id) {
            let item = try await vault.item(id, replaced: version.number)
            texts.append(item.body.withUnsafeBytes { String(decoding: $0, as: UTF8.self) })
        }
        return texts
    }

    private static func withPhone(
        _ body: (LiveServer, Device, Vault) async throws -> Void
    ) async throws {
        try await LiveServer.with { server in
            let phone = try Device("phone", server)
            let vault = try await Vault.signUp(phone.settings, userid: "ada", password: Password("correct horse"))
            try await body(server, phone, vault)
        }
    }

    @Test func `what is written over is kept and comes back, sent or not`() async throws {
        try await Self.withPhone { _, _, vault in
            let id = ItemID.random()
            try await vault.put(Self.item("first", title: "a title"), id, in: "notes")
            try await vault.sync()
            try await vault.put(Self.item(""), id, in: "notes")
            try await vault.put(Self.item("third"), id, in: "letters")
            #expect(try await Self.texts(of: id, in: vault) == ["", "first"])
            try await vault.sync()
            #expect(try await Self.texts(of: id, in: vault) == ["", "first"])
            let first = try #require(await vault.replacedVersions().last)
            #expect(first.title == "a title")
            #expect(first.collection == "notes")
            #expect(first.byteCount == 5)
            try await vault.restore(id, replaced: first.number)
            #expect(try await vault.item(id) == Self.item("first", title: "a title"))
            #expect(try await vault.summary(of: id)?.collection == "notes")
            #expect(try await Self.texts(of: id, in: vault).first == "third")
            try await vault.sync()
            #expect(try await vault.unsentCount() == 0)
        }
    }

    @Test func `only the title, only the collection: the version before is kept`() async throws {
        try await Self.withPhone { _, _, vault in
            let id = ItemID.random()
            try await vault.put(Self.item("text", title: "one"), id, in: "notes")
            try await vault.put(Self.item("text", title: "two"), id, in: "notes")
            try await vault.put(Self.item("text", title: "two"), id, in: "letters")
            try await vault.put(Self.item("text", title: "two"), id, in: "letters")
            let versions = try await vault.replacedVersions(of: id)
            #expect(versions.map(\.title) == ["two", "one"])
            #expect(versions.map(\.collection) == ["notes", "notes"])
        }
    }

    @Test func `a version from elsewhere replaces one that is kept here`() async throws {
        try await Self.withPhone { server, _, phone in
            let laptop = try await Vault.logIn(
                Device("laptop", server).settings, userid: "ada", password: Password("correct horse"))
            let id = ItemID.random()
            try await phone.put(Self.item("of the phone"), id, in: "notes")
            try await phone.sync()
            try await laptop.sync()
            try await laptop.put(Self.item(""), id, in: "notes")
            try await laptop.sync()
            try await phone.sync()
            #expect(try await phone.item(id) == Self.item(""))
            #expect(try await Self.texts(of: id, in: phone) == ["of the phone"])
        }
    }

    @Test func `a merge keeps both versions that it is made of`() async throws {
        try await LiveServer.with { server in
            let merge: MergeRule = { _, _, _, _ in Self.item("merged") }
            let phone = try await Vault.signUp(
                Device("phone", server, merge: merge).settings, userid: "ada", password: Password("correct horse"))
            let laptop = try await Vault.logIn(
                Device("laptop", server).settings, userid: "ada", password: Password("correct horse"))
            let id = ItemID.random()
            try await phone.put(Self.item("begun"), id, in: "notes")
            try await phone.sync()
            try await laptop.sync()
            try await laptop.put(Self.item("of the laptop"), id, in: "notes")
            try await laptop.sync()
            try await phone.put(Self.item("of the phone"), id, in: "notes")
            try await phone.sync()
            #expect(try await phone.item(id) == Self.item("merged"))
            let texts = try await Self.texts(of: id, in: phone)
            #expect(Set(texts).isSuperset(of: ["begun", "of the laptop", "of the phone"]))
        }
    }

    @Test func `what is deleted again keeps what was deleted before, and versions outlive their item`() async throws {
        try await Self.withPhone { _, _, vault in
            let id = ItemID.random()
            for text in ["first", "second"] {
                try await vault.put(Self.item(text), id, in: "notes")
                try await vault.sync()
                try await vault.delete(id)
                try await vault.sync()
            }
            let first = try #require(await vault.replacedVersions(of: id).last)
            #expect(try await Self.texts(of: id, in: vault) == ["first"])
            try await vault.restore(id, replaced: first.number)
            #expect(try await vault.item(id) == Self.item("first"))
            try await vault.sync()
            #expect(try await vault.unsentCount() == 0)
            await #expect(throws: VaultError.self) { try await vault.item(.random(), replaced: first.number) }
        }
    }

    @Test func `a rotation leaves versions readable, and makes none`() async throws {
        try await Self.withPhone { server, _, phone in
            let laptop = try await Vault.logIn(
                Device("laptop", server).settings, userid: "ada", password: Password("correct horse"))
            let id = ItemID.random()
            try await phone.put(Self.item("first"), id, in: "notes")
            try await phone.sync()
            try await phone.put(Self.item("second"), id, in: "notes")
            try await phone.sync()
            try await laptop.sync()
            try await phone.rotateKeys(password: Password("correct horse"))
            #expect(try await Self.texts(of: id, in: phone) == ["first"])
            try await laptop.logInAgain(password: Password("correct horse"))
            try await laptop.sync()
            #expect(try await laptop.item(id) == Self.item("second"))
            #expect(try await laptop.replacedVersions().isEmpty)
        }
    }

    @Test func `versions of one item are thinned out where they are closest in time, and end with their age`() throws {
        let folder = try TemporaryDirectory()
        let store = try Store(path: folder.path + "/store.sqlite")
        let id = ItemID.random()
        for second in 0..<200 {
            let content = ItemContent(collection: "notes", format: SealedBox.format, body: [UInt8(second)])
            // Ever slower.
            try store.keepReplaced(
                id, content, edit: 1, at: Date(timeIntervalSince1970: TimeInterval(1_000_000 + second * second)))
        }
        var bodies: [UInt8] = []
        try store.forEachReplaced(of: id) { bodies.append($0.content.body.bytes[0]) }
        #expect(bodies.count == Store.versionLimit)
        #expect(bodies.first == 199)
        #expect(bodies.last == 0)
        // What was replaced early, in quick succession, has gone first.
        #expect(bodies.count { $0 >= 100 } > 16)
        for (age, expected) in [
            (1, Store.versionLimit), (Store.keptSeconds, Store.versionLimit), (Store.keptSeconds + 1, 0),
        ] {
            try store.removeAged(at: Int64(age))
            var left = 0
            try store.forEachReplaced(of: id) { _ in left += 1 }
            #expect(left == expected)
        }
    }
}
