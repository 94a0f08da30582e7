import Cryptography
import Foundation
import SalternTesting
import Synchronization
import Testing

@testable import SalternClient

/// Several edits that are stored together.
@Suite struct EditsTests {
    private struct Pinned: Codable, Sendable, Equatable {
        var text: String
        var isPinned: Bool?
    }

    private let server = MemoryServer()
    private let folder: TemporaryDirectory
    private let link: LossyTransport

    init() throws {
        folder = try TemporaryDirectory(.memory)
        link = LossyTransport(server)
    }

    private func signUp(_ change: (inout VaultSettings) -> Void = { _ in }) async throws -> Vault {
        var settings = VaultSettings.forTests(folder: folder.path, link, name: "phone")
        change(&settings)
        return try await Vault.signUp(settings, userid: "ada", password: Password("password"))
    }

    /// The ids of each batch that is sent from now on.
    private func batches() -> @Sendable () -> [[String]] {
        let batches = Batches()
        link.setAnswer { request in
            batches.add(request)
            return nil
        }
        return { batches.ids }
    }

    @Test func `edits are stored in their order, reported once, and sent in one batch`() async throws {
        let vault = try await signUp()
        let (notes, tags) = (vault.collection("notes", of: Note.self), vault.collection("tags", of: Note.self))
        let old = try await notes.put(Note(text: "old"), title: "kept")
        try await vault.sync()
        var changes = vault.changes().makeAsyncIterator()
        var edits = VaultEdits()
        #expect(edits.isEmpty)
        let new = edits.put(Note(text: "new"), in: notes)
        let tag = edits.put(Note(text: "tag"), title: "title", in: tags)
        edits.put(Note(text: "changed"), old, in: notes)
        let brief = edits.put(Note(text: "brief"), in: notes)
        edits.delete(brief)
        edits.put(PlainItem(title: "raw", body: SecureBytes(copying: "raw".utf8)), new, in: "other")
        edits.put(PlainItem(body: SecureBytes(copying: #"{"text":"last"}"#.utf8)), new, in: "notes")
        let missing = ItemID.random()
        edits.delete(missing)
        #expect(edits.count == 8)
        #expect(try await vault.apply(edits) == [new, tag, old, brief, new, new])
        #expect(await changes.next() == [new, tag, old, brief, missing])
        let contents = try await notes.contents()
        #expect(contents.items == [new: Note(text: "last"), old: Note(text: "changed")])
        #expect(contents.titles == [old: "kept"])
        #expect(try await tags.contents().titles == [tag: "title"])

        let sent = batches()
        try await vault.sync()
        #expect(sent().map { Set($0) } == [Set([new, tag, old].map(\.description))])
        #expect(try await vault.unsentCount() == 0)
    }

    @Test func `an edit that cannot be stored keeps all others from being stored`() async throws {
        let vault = try await signUp()
        let notes = vault.collection("notes", of: Note.self)
        let old = try await notes.put(Note(text: "old"))
        let other = try await vault.put(PlainItem(body: SecureBytes(copying: "{}".utf8)), .random(), in: "notes")
        var good = VaultEdits()
        good.put(Note(text: "new"), in: notes)
        good.put(Note(text: "changed"), old, in: notes)
        good.delete(old)
        func expectNothing(of bad: VaultEdits, _ isExpected: (VaultError) -> Bool) async throws {
            await #expect { try await vault.apply(bad) } throws: { ($0 as? VaultError).map(isExpected) ?? false }
            #expect(try await notes.contents().items == [old: Note(text: "old")])
            #expect(try await vault.deletedItems().isEmpty)
        }
        var bad = good
        bad.put(Note(text: "over what cannot be read"), other, in: notes)
        try await expectNothing(of: bad) { if case .unreadable = $0 { true } else { false } }
        bad = good
        bad.put(Note(text: "nowhere"), in: vault.collection("No name"))
        try await expectNothing(of: bad) { if case .invalidCollection("No name") = $0 { true } else { false } }
        bad = good
        bad.put(PlainItem(body: SecureBytes(count: 7 << 20) { _ in }), .random(), in: "notes")
        try await vault.note(
            AccountDescription.Limits(
                deletedDays: 30, items: 100, itemBytes: 1 << 20, bytes: 1 << 30, sessions: 10, shares: 10))
        try await expectNothing(of: bad) { if case .noRoom = $0 { true } else { false } }
        try await vault.apply(good)
        #expect(try await notes.contents().values == [Note(text: "new")])
        try await vault.lock()
        await #expect { try await vault.apply(good) } throws: { if case VaultError.locked = $0 { true } else { false } }
    }

    @Test func `what a type does not know stays, also between two edits of one item, and what was seen is compared`()
        async throws
    {
        let vault = try await signUp()
        let (pinned, notes) = (vault.collection("notes", of: Pinned.self), vault.collection("notes", of: Note.self))
        let id = try await pinned.put(Pinned(text: "old", isPinned: true))
        let seen = try #require(await notes.version(of: id))
        var edits = VaultEdits()
        edits.put(Note(text: "first"), id, in: notes)
        edits.put(Note(text: "second"), id, in: notes)
        try await vault.apply(edits)
        #expect(try await pinned[id] == Pinned(text: "second", isPinned: true))
        edits = VaultEdits()
        edits.put(Note(text: "late"), id, in: notes, over: seen)
        let places = try await vault.apply(edits)
        #expect(places.count == 1 && places[0] != id)
        #expect(try await pinned[id] == Pinned(text: "second", isPinned: true))
        #expect(try await notes[places[0]] == Note(text: "late"))
    }

    @Test func `an item that is written while the edits are made is not written over unread`() async throws {
        let vault = try await signUp()
        let (pinned, notes) = (vault.collection("notes", of: Pinned.self), vault.collection("notes", of: Note.self))
        let id = try await notes.put(Note(text: "old"))
        let interrupted = vault.collection("notes", of: InterruptedNote.self)
        let other = InterruptedNote(text: "new") {
            let hasWritten = DispatchSemaphore(value: 0)
            Task {
                try await pinned.put(Pinned(text: "between", isPinned: true), id)
                hasWritten.signal()
            }
            hasWritten.wait()
        }
        var edits = VaultEdits()
        edits.put(Note(text: "other"), in: notes)
        edits.put(other, id, in: interrupted)
        try await vault.apply(edits)
        #expect(try await pinned[id] == Pinned(text: "new", isPinned: true))
        #expect(try await notes.contents().entries.count == 2)
    }

    @Test func `edits that were stored together stay together in the batches, as far as one has room`() async throws {
        let vault = try await signUp { $0.limits.batch = 4 }
        let notes = vault.collection("notes", of: Note.self)
        func group(_ count: Int) async throws -> [String] {
            var edits = VaultEdits()
            let ids = (0..<count).map { edits.put(Note(text: "\($0)"), in: notes) }
            try await vault.apply(edits)
            return ids.map(\.description)
        }
        let alone = try await [notes.put(Note(text: "a")), notes.put(Note(text: "b"))].map(\.description)
        let first = try await group(3)
        let second = try await group(4)
        let long = try await group(5)
        let last = try await notes.put(Note(text: "c")).description
        let sent = batches()
        try await vault.sync()
        #expect(sent() == [alone, first, second, Array(long[..<4]), [long[4], last]])
    }

    @Test(arguments: MortalDevice.ends)
    func `after a crash at any call all edits are stored, or none`(end: WriteFault) async throws {
        let phone = try await MortalDevice("phone", server, isFirst: true)
        let (kept, removed) = (ItemID.random(), ItemID.random())
        try await phone.put("0", kept)
        try await phone.put("0", removed)
        var old: Set<String> = ["0"]
        for call in 1..<1_000 {
            let isDone = try await phone.attempt(end, at: call) { device in
                let notes = try device.vault().collection("notes", of: Note.self)
                var edits = VaultEdits()
                edits.put(Note(text: "\(call)"), kept, in: notes)
                for id in try await device.vault().ids("notes") where id != kept { edits.delete(id) }
                for _ in 0..<3 { edits.put(Note(text: "\(call)"), in: notes) }
                try await device.vault().apply(edits)
            }
            let hasFailed = phone.life.hasFailed
            try await phone.startAgain()
            let texts = try await phone.vault().collection("notes", of: Note.self).contents().values.map(\.text)
            let count = Set(texts) == ["0"] ? 2 : 4
            #expect(texts.count == count && Set(texts).count == 1, "call \(call)")
            #expect(Set(texts) == ["\(call)"] || !isDone && Set(texts) == old, "call \(call)")
            old = Set(texts)
            if !hasFailed {
                #expect(call > 3)
                return
            }
        }
        Issue.record("it never comes to its end")
    }
}

/// A note that lets something happen when it is encoded for the first time.
private struct InterruptedNote: Codable, Sendable {
    private enum CodingKeys: CodingKey { case text }

    var text: String
    private let interruption: (@Sendable () -> Void)?
    private let isOver = OneTime()

    init(text: String, _ interruption: @escaping @Sendable () -> Void) {
        self.text = text
        self.interruption = interruption
    }

    init(from decoder: any Decoder) throws {
        text = try decoder.container(keyedBy: CodingKeys.self).decode(String.self, forKey: .text)
        interruption = nil
    }

    func encode(to encoder: any Encoder) throws {
        if let interruption, isOver.begin() { interruption() }
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(text, forKey: .text)
    }
}

private final class OneTime: Sendable {
    private let hasBegun = Mutex(false)

    func begin() -> Bool {
        hasBegun.withLock { hasBegun in
            defer { hasBegun = true }
            return !hasBegun
        }
    }
}

/// The ids of the operations of each batch.
private final class Batches: Sendable {
    private struct Batch: Decodable {
        struct Operation: Decodable { var id: String }
        var operations: [Operation]
    }

    private let found = Mutex<[[String]]>([])

    var ids: [[String]] { found.withLock { $0 } }

    func add(_ request: HTTPRequest) {
        guard request.target == "/v1/items/batch", let body = request.body,
            let batch = try? JSONDecoder().decode(Batch.self, from: body.withUnsafeBytes { Data($0) })
        else { return }
        found.withLock { $0.append(batch.operations.map(\.id)) }
    }
}
