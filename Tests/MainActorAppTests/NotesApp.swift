import Foundation
import Observation
import SalternClient

// An app as Xcode's template begins it: without an isolation in any declaration, everything here is of the main actor.

struct Note: Codable, Sendable, Equatable {
    var text: String
    var edited = Date(timeIntervalSince1970: 0)
}

struct Tag: Codable, Equatable { var name: String }

/// A type that the vault itself merges and migrates.
nonisolated struct Counter: Codable, Sendable, Equatable {
    var count: Int
}

nonisolated struct FirstCounter: Codable, Sendable { var number: String }

@Observable final class NotesApp {
    let model: VaultModel
    let notes: CollectionModel<Note>
    var shown: [String] = []

    static let counters = ItemSchema<Counter>(2, from: ItemSchema<FirstCounter>()) {
        Counter(count: Int($0.number) ?? 0)
    }

    init(folder: URL) async throws {
        var settings = VaultSettings(
            folder: folder, transport: SilentServer(),
            stretching: StretchingRule(saltPrefix: SilentServer.saltPrefix, minimumIterations: 10_000))
        settings.merge("counters", of: Counter.self, schema: Self.counters) { _, mine, theirs in
            Counter(count: max(mine.count, theirs.count))
        }
        let vault = try await Vault.signUp(settings, userid: "ada@example.org", password: Password("salt"))
        model = await VaultModel(vault)
        notes = CollectionModel(vault.collection("notes", of: Note.self), sorted: .by(\.text))
    }

    /// What the README does with a collection, and what else there is.
    func useEverything() async throws {
        let vault = model.vault
        let id = try await vault.collection("notes", of: Note.self).put(Note(text: "Buy salt."))
        let changes = await vault.changes(in: "notes")
        let following = Task { await model.keepInSync() }
        guard let note = try await vault.collection("notes", of: Note.self)[id] else { return }
        shown.append(note.text)
        following.cancel()

        let notes = vault.collection("notes", of: Note.self)
        try await notes.put(Note(text: "Buy pepper."), id, title: "list")
        for await ids in changes where ids.contains(id) { break }
        for await contents in notes.observe(sorted: .by(\.edited, descending: true)) {
            shown += contents.values.map(\.text)
            break
        }
        shown += try await notes.contents().entries.compactMap(\.title)
        shown += try await notes.all().values.map(\.text)

        var edits = VaultEdits()
        let other = edits.put(Note(text: "Buy oil."), in: notes)
        edits.put(Tag(name: "shop"), in: vault.collection("tags"))
        edits.delete(id)
        try await vault.apply(edits)
        shown.append(try await notes[other]?.text ?? "")
        shown += try await vault.collection("tags", of: Tag.self).contents().values.map(\.name)

        let counters = vault.collection("counters", of: Counter.self, schema: Self.counters)
        try await counters.put(Counter(count: 7))
        shown.append("\(try await counters.contents().values.map(\.count))")
        // The bytes of an item, without an import of the module that has their type.
        let body = SecureBytes(copying: Array("raw".utf8))
        try await vault.put(PlainItem(title: "raw", body: body), .random(), in: "raw")
        shown.append("\(body.withUnsafeBytes { $0.count }) \(String(body) ?? "")")
        await model.perform { try await vault.lock() }
    }
}
