import SalternClient
import Synchronization
import Testing

/// Many deletions at once wait for somebody, whatever the server says of them and whatever becomes of the process.
@Suite struct HeldDeletionTests {
    private let userid = "ada@example.org"
    private let password = Password("correct horse battery staple")

    /// Items that two devices have, by collection.
    private func withItems(
        _ counts: [String: Int],
        _ body: (_ vault: Vault, _ laptop: inout Device, _ ids: [String: [ItemID]]) async throws -> Void
    ) async throws {
        try await LiveServer.with { server in
            let phone = try Device("phone", server)
            let vault = try await Vault.signUp(phone.settings, userid: userid, password: password)
            var ids: [String: [ItemID]] = [:]
            for (collection, count) in counts {
                for number in 0..<count {
                    let id = try await vault.collection(collection, of: Note.self).put(Note(text: "\(number)"))
                    ids[collection, default: []].append(id)
                }
            }
            try await vault.sync()
            var laptop = try Device("laptop", server)
            try laptop.beginLife()
            var other: Vault? = try await Vault.logIn(laptop.settings, userid: userid, password: password)
            try await other?.sync()
            other = nil
            try await body(vault, &laptop, ids)
            laptop.endLives()
        }
    }

    /// The phone has deleted the first of so many notes, and they wait at the laptop.
    private func withHeld(
        _ deletions: Int, of count: Int,
        _ body: (_ vault: Vault, _ other: Vault, _ deleted: [ItemID], _ last: ItemID) async throws -> Void
    ) async throws {
        try await withItems(["notes": count]) { vault, laptop, ids in
            let notes = try #require(ids["notes"])
            for id in notes.prefix(deletions) { try await vault.delete(id) }
            try await vault.sync()
            let other = try await resume(laptop)
            #expect(try await other.sync().isHeld)
            try await body(vault, other, Array(notes.prefix(deletions)), notes[count - 1])
        }
    }

    private func resume(_ device: Device) async throws -> Vault {
        try #require(try await Vault.resume(device.settings))
    }

    @Test(arguments: [nil, "saltern-chunks"])
    func `it is the items' own collections that count, not those that tombstones name`(_ name: String?) async throws {
        try await withItems(["notes": 40]) { vault, laptop, ids in
            for id in ids["notes"]?.prefix(30) ?? [] { try await vault.delete(id) }
            try await vault.sync()
            let count = Mutex(0)
            laptop.link.setRewrite { request, reply in
                guard request.target.hasPrefix("/v1/changes") else { return reply }
                let text = String(decoding: reply.body, as: UTF8.self).replacing(#/"collection":"notes"/#) { _ in
                    count.withLock { $0 += 1 }
                    return #""collection":"\#(name ?? "c\(count.withLock { $0 })")""#
                }
                return HTTPReply(head: reply.head, body: Array(text.utf8))
            }
            let other = try await resume(laptop)
            #expect(try await other.sync().isHeld)
            #expect(count.withLock { $0 } >= 30)
            #expect(try await other.ids("notes").count == 40)
            #expect(try await other.notices().map(\.kind) == [.massDeletion])
        }
    }

    @Test func `many in one collection hold back no few in another, and each is agreed to by itself`() async throws {
        try await withItems(["notes": 12, "photos": 12]) { vault, laptop, ids in
            for id in ids["notes"]?.prefix(2) ?? [] { try await vault.delete(id) }
            for id in ids["photos"]?.prefix(6) ?? [] { try await vault.delete(id) }
            try await vault.sync()
            let other = try await resume(laptop)
            #expect(try await other.sync().isHeld)
            func counts() async throws -> [Int] {
                try await [other.ids("notes").count, other.ids("photos").count]
            }
            #expect(try await counts() == [10, 12])
            for id in ids["notes"]?.suffix(6) ?? [] { try await vault.delete(id) }
            try await vault.sync()
            #expect(try await other.sync().isHeld)
            let held = try await other.heldDeletions()
            let (notes, photos) = (try #require(ids["notes"]), try #require(ids["photos"]))
            #expect(held.prefix(6).allSatisfy { $0.collection == "notes" })
            #expect(held.dropFirst(6).allSatisfy { $0.collection == "photos" })
            #expect(Set(held.prefix(6).map(\.id)) == Set(notes.suffix(6)))
            #expect(Set(held.dropFirst(6).map(\.id)) == Set(photos.prefix(6)))
            #expect(held.count == 12)
            #expect(try await other.agreeToDeletions(in: "photos").isHeld)
            #expect(try await counts() == [10, 6])
            #expect(try await other.notices().map(\.kind) == [.massDeletion])
            #expect(try await !other.agreeToDeletions(in: "notes").isHeld)
            #expect(try await counts() == [4, 6])
            #expect(try await other.notices().isEmpty)
            #expect(try await other.heldDeletions().isEmpty)
        }
    }

    @Test func `what is no deletion comes while they wait, and many one by one are many`() async throws {
        try await withItems(["notes": 40]) { vault, laptop, ids in
            let other = try await resume(laptop)
            let notes = vault.collection("notes", of: Note.self)
            let last = try #require(ids["notes"]?.last)
            for (number, id) in (ids["notes"] ?? []).prefix(30).enumerated() {
                try await vault.delete(id)
                try await notes.put(Note(text: "new \(number)"), last)
                try await vault.sync()
                #expect(try await other.sync().isHeld == (number >= 13), "\(number)")
            }
            #expect(try await other.ids("notes").count == 27)
            #expect(try await other.collection("notes", of: Note.self)[last] == Note(text: "new 29"))
            #expect(try await other.heldDeletions().count == 17)
            #expect(try await other.agreeToDeletions().removed.count == 17)
            // A person has looked: it begins again.
            try await vault.delete(last)
            try await vault.sync()
            #expect(try await !other.sync().isHeld)
            #expect(try await other.ids("notes") == vault.ids("notes"))
        }
    }

    @Test func `few at a time in several collections are carried out`() async throws {
        try await withItems(["notes": 12, "photos": 12]) { vault, laptop, ids in
            for id in ["notes", "photos"].flatMap({ ids[$0]?.prefix(3) ?? [] }) { try await vault.delete(id) }
            try await vault.sync()
            let other = try await resume(laptop)
            #expect(try await other.sync().removed.count == 6)
        }
    }

    @Test func `what was changed here is sent meanwhile, also where that was deleted elsewhere`() async throws {
        try await withItems(["notes": 40]) { vault, laptop, ids in
            for id in ids["notes"]?.prefix(30) ?? [] { try await vault.delete(id) }
            try await vault.sync()
            let other = try await resume(laptop)
            let there = other.collection("notes", of: Note.self)
            let new = try await there.put(Note(text: "new"))
            let edited = try #require(ids["notes"]?.first)
            try await there.put(Note(text: "edited"), edited)
            #expect(try await other.sync().isHeld)
            #expect(try await other.unsentCount() == 0)
            #expect(try await other.ids("notes").count == 41)
            try await vault.sync()
            let notes = vault.collection("notes", of: Note.self)
            #expect(try await notes[new] == Note(text: "new"))
            #expect(try await notes[edited] == Note(text: "edited"))
            #expect(try await other.agreeToDeletions().removed.count == 29)
            #expect(try await other.ids("notes") == vault.ids("notes"))
            #expect(try await other.notices().map(\.kind) == [.keptAfterDeletion])
        }
    }

    @Test func `an edit that makes them fewer does not let them happen`() async throws {
        try await withHeld(26, of: 90) { vault, other, deleted, last in
            try await other.collection("notes", of: Note.self).put(Note(text: "edited"), deleted[0])
            for _ in 0..<2 { #expect(try await other.sync().isHeld) }
            #expect(try await other.ids("notes").count == 90)
            #expect(try await other.agreeToDeletions().removed.count == 25)
            // Few are carried out again.
            try await vault.sync()
            try await vault.delete(last)
            try await vault.sync()
            #expect(try await other.sync().removed.count == 1)
        }
    }

    @Test func `nothing is said to wait when others have put back what was deleted`() async throws {
        try await withHeld(30, of: 40) { vault, other, deleted, _ in
            for id in deleted { try await vault.restore(id) }
            try await vault.sync()
            #expect(try await !other.sync().isHeld)
            #expect(try await other.notices() == [])
            #expect(try await other.ids("notes").count == 40)
        }
    }

    @Test func `who signs out while they wait is asked`() async throws {
        try await withHeld(30, of: 40) { _, other, _, _ in
            await #expect { try await other.signOut() } throws: {
                if case VaultError.deletionsHeld = $0 { true } else { false }
            }
            let count = try await other.ids("notes").count
            #expect(count == 40)
            let end = try await other.signOut(forgettingHeldDeletions: true)
            #expect(end == .ended)
        }
        try await withHeld(30, of: 40) { _, other, _, _ in
            try await other.agreeToDeletions()
            try await other.signOut()
        }
    }

    @Test func `a consent ends with the process that it was given to`() async throws {
        try await withItems(["notes": 40]) { vault, laptop, ids in
            for id in ids["notes"]?.prefix(30) ?? [] { try await vault.delete(id) }
            try await vault.sync()
            var other: Vault? = try await resume(laptop)
            #expect(try await other?.sync().isHeld == true)
            let life = laptop.life
            laptop.link.interrupt(
                LossyTransport.Interruption(exchange: 0, moment: .beforeReply) { life.arm(.killBefore, at: 1) })
            await #expect(throws: VaultError.self) { try await other?.agreeToDeletions() }
            #expect(life.hasEnded)
            other = nil
            try laptop.beginLife()
            other = try await resume(laptop)
            #expect(try await other?.sync().isHeld == true)
            #expect(try await other?.ids("notes").count == 40)
            #expect(try await other?.agreeToDeletions().removed.count == 30)
            #expect(try await other?.notices().isEmpty == true)
        }
    }
}
