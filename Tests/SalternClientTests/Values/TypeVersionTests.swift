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

    // MARK: Many turns

    /// How many scenarios there are; a scenario is its seed.
    private static let seeds: ClosedRange<UInt64> = 1...60

    /// What all devices have in the end, as the third version writes it.
    private struct Model: Equatable {
        var text = ""
        var hues: [Int: Int] = [:]
        var isPinned: Bool?
        var street: String?
        var score: Int?
    }

    @Test func `three versions that edit in turn on several devices lose nothing of each other`() async throws {
        try await LiveServer.with { server in
            let phone = try await Vault.signUp(Device("phone", server).settings, userid: "ada", password: Self.password)
            let vaults = [
                phone,
                try await Vault.logIn(Device("laptop", server).settings, userid: "ada", password: Self.password),
                try await Vault.logIn(Device("tablet", server).settings, userid: "ada", password: Self.password),
            ]
            for seed in Self.seeds {
                var random = SeededGenerator(seed: seed)
                var model = Model()
                let id = ItemID.random(using: &random)
                let labels = (0..<4).map { Versions.Label(id: $0, name: "label \($0)") }
                try await vaults[0].collection("notes", of: Versions.First.self).put(
                    .init(text: "", labels: labels), id)
                try await vaults[0].sync()
                for turn in 0..<10 {
                    // Any device may have any version.
                    let vault = vaults[Int.random(in: 0..<3, using: &random)]
                    try await vault.sync()
                    try await Self.edit(id, in: vault, turn, &model, &random)
                    try await vault.sync()
                }
                for vault in vaults {
                    try await vault.sync()
                    let note = try #require(await vault.collection("notes", of: Versions.Third.self)[id])
                    var found = Model(
                        text: note.text, isPinned: note.isPinned, street: note.place?.street, score: note.score)
                    for label in note.labels { found.hues[label.id] = label.hue }
                    #expect(found == model, "seed \(seed)")
                }
            }
        }
    }

    private static func edit(
        _ id: ItemID, in vault: Vault, _ turn: Int, _ model: inout Model, _ random: inout SeededGenerator
    ) async throws {
        let text = "turn \(turn)"
        switch Int.random(in: 0..<3, using: &random) {
        case 0:
            let notes = vault.collection("notes", of: Versions.First.self)
            var note = try #require(await notes[id])
            note.text = text
            note.labels.shuffle(using: &random)
            try await notes.put(note, id)
        case 1:
            let notes = vault.collection("notes", of: Versions.Second.self)
            var note = try #require(await notes[id])
            note.text = text
            note.isPinned = [nil, true, false].randomElement(using: &random) ?? nil
            model.isPinned = note.isPinned
            if random.chance(4) {
                note.place = nil
                model.street = nil
            } else {
                note.place = .init(town: "town of \(text)")
            }
            try await notes.put(note, id)
        default:
            let notes = vault.collection("notes", of: Versions.Third.self)
            var note = try #require(await notes[id])
            note.text = text
            note.score = random.chance(3) ? nil : turn
            model.score = note.score
            let index = Int.random(in: 0..<4, using: &random)
            note.labels[index].hue = turn
            model.hues[note.labels[index].id] = turn
            note.place = .init(town: "Cadiz", street: text)
            model.street = text
            try await notes.put(note, id)
        }
        model.text = text
    }
}

extension PlainItem {
    fileprivate var first: Versions.First? {
        try? JSONDecoder().decode(Versions.First.self, from: body.withUnsafeBytes { Data($0) })
    }
}
