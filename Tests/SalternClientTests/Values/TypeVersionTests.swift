import Cryptography
import Foundation
import SalternTesting
import Testing

@testable import SalternClient

/// One type in three versions of an app, as `VaultCollection` reads and writes it.
private enum Versions {
    struct Label: Codable, Sendable, Equatable { var id: Int; var name: String }
    struct ColouredLabel: Codable, Sendable, Equatable { var id: Int; var name: String; var hue: Int? }
    struct Place: Codable, Sendable, Equatable { var town: String }
    struct PlaceWithStreet: Codable, Sendable, Equatable { var town: String; var street: String? }

    struct First: Codable, Sendable, Equatable {
        var text: String
        var labels: [Label]
    }

    struct Second: Codable, Sendable, Equatable {
        var text: String
        var labels: [Label]
        var isPinned: Bool?
        var place: Place?
    }

    struct Third: Codable, Sendable, Equatable {
        var text: String
        var labels: [ColouredLabel]
        var isPinned: Bool?
        var place: PlaceWithStreet?
        var score: Int?
    }
}

@Suite struct TypeVersionTests {
    private static let password = Password("correct horse")

    @Test func `an older version of an app keeps what a newer one has written`() async throws {
        try await LiveServer.with { server in
            let vault = try await Vault.signUp(Device("phone", server).settings, userid: "ada", password: Self.password)
            let id = try await vault.collection("notes", of: Versions.Third.self).put(
                .init(
                    text: "new", labels: [.init(id: 1, name: "a", hue: 7)], isPinned: true,
                    place: .init(town: "Cadiz", street: "Calle Sal"), score: 3), title: "kept")
            let first = vault.collection("notes", of: Versions.First.self)
            var note = try #require(await first[id])
            note.text = "edited"
            note.labels[0].name = "b"
            try await first.put(note, id)
            let third = try #require(await vault.collection("notes", of: Versions.Third.self)[id])
            #expect(
                third
                    == .init(
                        text: "edited", labels: [.init(id: 1, name: "b", hue: 7)], isPinned: true,
                        place: .init(town: "Cadiz", street: "Calle Sal"), score: 3))
            // Writing the same again is no change.
            let version = try await vault.version(of: id)
            try await first.put(note, id)
            #expect(try await vault.version(of: id) == version)
            #expect(try await first.contents().titles == [id: "kept"])
            try await first.put(note, id, title: nil)
            #expect(try await first.title(of: id) == nil)
            // A member that the type knows can be removed.
            let second = vault.collection("notes", of: Versions.Second.self)
            var pinned = try #require(await second[id])
            pinned.isPinned = nil
            pinned.place = nil
            try await second.put(pinned, id)
            let rest = try #require(await vault.collection("notes", of: Versions.Third.self)[id])
            #expect(rest.isPinned == nil && rest.place == nil && rest.score == 3)
        }
    }

    @Test func `a migration reads what was written before, and what cannot be read has its reason`() async throws {
        struct Old: Codable, Sendable { var text: String }
        struct New: Codable, Sendable, Equatable { var body: String }
        try await LiveServer.with { server in
            let vault = try await Vault.signUp(Device("phone", server).settings, userid: "ada", password: Self.password)
            let old = vault.collection("notes", of: Old.self)
            let schema = ItemSchema<New>(3) { json, number in
                #expect(number == 1)
                let before = try JSONDecoder().decode(Old.self, from: json)
                return try JSONEncoder().encode(New(body: before.text))
            }
            let new = vault.collection("notes", of: New.self, schema: schema)
            let id = try await old.put(Old(text: "from before"))
            #expect(try await new.contents().items == [id: New(body: "from before")])
            try await new.put(New(body: "from now"), id)
            #expect(try await new[id] == New(body: "from now"))
            let contents = try await old.contents()
            #expect(contents.unreadable == [id: .isOfLaterSchema(3)])
            #expect(contents.decodingErrors[id] is DecodingError)
            await #expect(throws: VaultError.self) { try await old.put(Old(text: "lost"), id) }
            let other = try await vault.put(PlainItem(body: SecureBytes(copying: "[]".utf8)), .random(), in: "notes")
            let errors = try await old.contents()
            #expect(errors.unreadable[other] == .isOfAnotherType)
            #expect(errors.decodingErrors[other] is DecodingError)
        }
    }

    @Test func `a migration of values carries over what the earlier type does not know`() async throws {
        struct Old: Codable, Sendable { var text: String }
        struct Between: Codable, Sendable, Equatable { var lines: [String] }
        struct New: Codable, Sendable, Equatable { var paragraphs: [String] }
        let between = ItemSchema<Between>(2, from: ItemSchema<Old>()) { .init(lines: [$0.text]) }
        let new = ItemSchema<New>(4, from: between) { .init(paragraphs: $0.lines) }
        let store = try TemporaryDirectory()
        let vault = try await Self.vault(store)
        for number in 1...2 {
            let before =
                number == 1
                ? #"{"text":"salt","by":{"a":1.50},"old":[]}"#
                : #"{"lines":["salt"],"by":{"a":1.50},"saltern-schema":2}"#
            let id = try await vault.put(PlainItem(body: SecureBytes(copying: before.utf8)), .random(), in: "notes")
            let notes = vault.collection("notes", of: New.self, schema: new)
            #expect(try await notes[id] == New(paragraphs: ["salt"]))
            try await notes.put(New(paragraphs: ["salt", "oil"]), id)
            let text = try #require(await vault.item(id)?.text)
            #expect(
                text
                    == (number == 1
                        ? #"{"by":{"a":1.50},"old":[],"paragraphs":["salt","oil"],"saltern-schema":4}"#
                        : #"{"by":{"a":1.50},"paragraphs":["salt","oil"],"saltern-schema":4}"#))
        }
    }

    @Test func `a value that is no object is migrated once`() async throws {
        let store = try TemporaryDirectory()
        let vault = try await Self.vault(store)
        let old = vault.collection("notes", of: [Int].self)
        let schema = ItemSchema<[String]>(2, from: ItemSchema<[Int]>()) { $0.map { "\($0)" } }
        let new = vault.collection("notes", of: [String].self, schema: schema)
        let id = try await old.put([1, 2])
        #expect(try await new[id] == ["1", "2"])
        try await new.put(["one"], id)
        #expect(try await new[id] == ["one"])
        try await new.put(["one", "two"], id)
        #expect(try await new.contents().items == [id: ["one", "two"]])
        #expect(try await old.contents().unreadable == [id: .isOfLaterSchema(2)])
    }

    @Test func `what a type does not know goes through a conflict copy, an export and an import`() async throws {
        let body = #"{"labels":[{"hue":1.0,"id":1,"name":"a"}],"place":{"street":"Calle Sal","town":"Cadiz"},"text":"#
        let server = MemoryServer()
        let folders = try ["phone", "laptop"].map { _ in try TemporaryDirectory() }
        let phone = try await Vault.signUp(
            .forTests(folder: folders[0].path, server, name: "phone"), userid: "ada", password: Self.password)
        let laptop = try await Vault.logIn(
            .forTests(folder: folders[1].path, server, name: "laptop"), userid: "ada", password: Self.password)
        let id = try await phone.put(
            PlainItem(title: "kept", body: SecureBytes(copying: (body + #""new"}"#).utf8)), .random(), in: "notes")
        for vault in [phone, laptop] { try await vault.sync() }
        for vault in [phone, laptop] {
            let notes = vault.collection("notes", of: Versions.First.self)
            var note = try #require(await notes[id])
            note.text = vault === phone ? "of the phone" : "of the laptop"
            try await notes.put(note, id)
        }
        for vault in [phone, laptop, phone] { try await vault.sync() }
        let file = URL(filePath: folders[0].path + "/documents")
        try await phone.exportDocuments(to: file)
        let store = try TemporaryDirectory()
        let other = try await Self.vault(store)
        try await other.importDocuments(from: file)
        for vault in [phone, laptop, other] {
            var items: Set<String> = []
            for (item, _) in try await vault.items("notes").opened.values {
                items.insert((item.title ?? "") + item.text)
            }
            #expect(items == ["kept" + body + #""of the phone"}"#, "kept" + body + #""of the laptop"}"#])
        }
    }

    private static func vault(_ folder: TemporaryDirectory) async throws -> Vault {
        try await Vault.signUp(
            .forTests(folder: folder.path, MemoryServer(), name: "any"), userid: "ada",
            password: password)
    }

    @Test func `a merge of an older version carries over what a newer one has added, with a type and without`()
        async throws
    {
        for isTyped in [true, false] {
            try await LiveServer.with { server in
                var phone = try Device("phone", server)
                if isTyped {
                    phone.settings.merge("notes", of: Versions.First.self) { _, mine, theirs in
                        .init(text: mine.text + theirs.text, labels: theirs.labels)
                    }
                } else {
                    phone.settings.merge = { _, _, mine, theirs in
                        let (mine, theirs) = (mine.first, theirs.first)
                        guard let mine, let theirs else { return nil }
                        let merged = Versions.First(text: mine.text + theirs.text, labels: theirs.labels)
                        return (try? JSONEncoder().encode(merged)).map {
                            PlainItem(body: SecureBytes(copying: [UInt8]($0)))
                        }
                    }
                }
                let old = try await Vault.signUp(phone.settings, userid: "ada", password: Self.password)
                let new = try await Vault.logIn(
                    Device("laptop", server).settings, userid: "ada", password: Self.password)
                let first = old.collection("notes", of: Versions.First.self)
                let third = new.collection("notes", of: Versions.Third.self)
                let id = try await first.put(.init(text: "", labels: [.init(id: 1, name: "a")]))
                try await old.sync()
                try await new.sync()
                var note = try #require(await third[id])
                note.text = "b"
                note.score = 5
                note.labels[0].hue = 7
                try await third.put(note, id)
                try await new.sync()
                try await first.put(.init(text: "a", labels: [.init(id: 1, name: "a")]), id)
                try await old.sync()
                try await new.sync()
                let merged = try #require(await third[id])
                #expect(merged.text == "ab")
                #expect(merged.score == 5)
                #expect(merged.labels == [.init(id: 1, name: "a", hue: 7)])
            }
        }
    }

    @Test func `a folder is not kept in sync with a collection whose name no collection can have`() async throws {
        let store = try TemporaryDirectory()
        let vault = try await Self.vault(store)
        let folder = try TemporaryDirectory()
        let settings = FolderSettings(collection: "My Files")
        await #expect {
            try await FolderSync(vault: vault, root: URL(filePath: folder.path), settings: settings).run()
        } throws: {
            if case FolderError.vault(.invalidCollection("My Files")) = $0 { true } else { false }
        }
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path).isEmpty)
    }

    @Test func `what is too long for the plan or for a batch is refused at once, title and body together`() async throws
    {
        let store = try TemporaryDirectory()
        let vault = try await Self.vault(store)
        let notes = vault.collection("notes", of: Note.self)
        func expectNoRoom(_ body: () async throws -> Void) async {
            await #expect { try await body() } throws: { if case VaultError.noRoom = $0 { true } else { false } }
        }
        let long = String(repeating: "a", count: 7 << 20)
        await expectNoRoom { try await notes.put(Note(text: long)) }
        await expectNoRoom { try await notes.put(Note(text: "short"), title: long) }
        let half = String(repeating: "a", count: 7 << 19)
        await expectNoRoom { try await notes.put(Note(text: half), title: half) }
        #expect(try await vault.unsentCount() == 0)
        let id = try await notes.put(Note(text: half))
        await expectNoRoom { try await notes.put(Note(text: half), id, title: half) }
        #expect(try await notes[id] == Note(text: half))
    }

    @Test func `a merge that makes what is too long to be sent keeps both versions`() async throws {
        let server = MemoryServer()
        let folders = try ["phone", "laptop"].map { _ in try TemporaryDirectory() }
        var settings = VaultSettings.forTests(folder: folders[0].path, server, name: "phone")
        settings.merge("notes", of: Note.self) { _, mine, theirs in Note(text: mine.text + theirs.text) }
        let phone = try await Vault.signUp(settings, userid: "ada", password: Self.password)
        let laptop = try await Vault.logIn(
            .forTests(folder: folders[1].path, server, name: "laptop"), userid: "ada", password: Self.password)
        let id = try await phone.collection("notes", of: Note.self).put(Note(text: ""))
        for vault in [phone, laptop] { try await vault.sync() }
        let half = [phone, laptop].map { String(repeating: $0 === phone ? "p" : "l", count: 7 << 19) }
        for (vault, text) in zip([phone, laptop], half) {
            try await vault.collection("notes", of: Note.self).put(Note(text: text), id)
        }
        for vault in [laptop, phone, laptop] { try await vault.sync() }
        for vault in [phone, laptop] {
            #expect(try await vault.unsentCount() == 0)
            let texts = try await vault.collection("notes", of: Note.self).all().values.map(\.text)
            #expect(texts.sorted() == half.sorted())
        }
    }

    @Test(arguments: [
        "Notes", "my notes", "", String(repeating: "a", count: 33), "nötes", "a_b", Attachment.chunkCollection,
    ])
    func `a name that no collection can have is refused at once`(_ name: String) async throws {
        let folder = try TemporaryDirectory()
        let transport = MemoryServer()
        let vault = try await Vault.signUp(
            .forTests(folder: folder.path, transport, name: "phone"), userid: "ada", password: Self.password)
        await #expect {
            try await vault.collection(name, of: Note.self).put(Note(text: "a"))
        } throws: { error in
            if case VaultError.invalidCollection(name) = error { true } else { false }
        }
        #expect(try await vault.unsentCount() == 0)
    }
}

extension PlainItem {
    fileprivate var text: String { String(decoding: body.withUnsafeBytes { [UInt8]($0) }, as: UTF8.self) }

    fileprivate var first: Versions.First? {
        try? JSONDecoder().decode(Versions.First.self, from: body.withUnsafeBytes { Data($0) })
    }
}
