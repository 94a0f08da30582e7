import Foundation
import SalternTesting
import Synchronization
import Testing

@testable import SalternClient

/// What a server acknowledges, its next listing shows. Where it does not, the sync fails, and what was acknowledged is unsent
/// again.
@Suite struct ConfirmationTests {
    /// What a listing has in the place of an acknowledged edit.
    enum Hiding: CaseIterable {
        case nothing, versionBefore, versionBeforeAtThatRevision, tombstoneAtThatRevision, chunk, headAlone
    }

    /// What a listing has in the place of an acknowledged deletion.
    enum Undeletion: CaseIterable {
        case nothing, itemBefore, itemAtThatRevision
    }

    private func notes(_ vault: Vault) -> VaultCollection<Note> { vault.collection("notes") }

    private func expectUnexpectedReply(_ vault: Vault) async {
        await #expect {
            try await vault.sync()
        } throws: {
            if case VaultError.unavailable(.unexpectedReply) = $0 { true } else { false }
        }
    }

    /// Everybody has this, nobody has been told of anything, and nothing is left to do.
    private func expectEverywhere(_ expected: [ItemID: Note], _ person: RestoredPerson) async throws {
        try await person.converge()
        for vault in person.vaults.compactMap(\.self) {
            #expect(try await notes(vault).all() == expected)
            #expect(try await vault.unsentCount() == 0)
            #expect(try await vault.notices().isEmpty)
            #expect(try await vault.confirmations().isEmpty)
        }
    }

    @Test(arguments: Hiding.allCases, [false, true])
    func `an acknowledged edit that is hidden is noticed, and sent again`(
        hiding: Hiding, startsAgain: Bool
    ) async throws {
        let person = try await RestoredPerson()
        let id = try await notes(person.vault(0)).put(Note(text: "first"))
        let before = try await shown(id, person)
        try await notes(person.vault(0)).put(Note(text: "second"), id)
        try await person.vault(0).sync()
        if startsAgain { try await person.startAgain(0) }
        let phone = try person.vault(0)
        person.links[0].setChanges { changes in
            changes.compactMap { item in
                guard item["id"] as? String == id.description else { return item }
                return switch hiding {
                case .nothing: nil
                case .versionBefore: before.members
                case .versionBeforeAtThatRevision: before.members.with("revision", item["revision"])
                case .tombstoneAtThatRevision: item.head.with("deleted", true)
                case .chunk: item.with("collection", "saltern-chunks")
                case .headAlone: item.head
                }
            }
        }
        await expectUnexpectedReply(phone)
        #expect(try await notes(phone).all() == [id: Note(text: "second")])
        #expect(try await phone.unsentCount() == 1)
        person.links[0].setRewrite { $1 }
        try await phone.sync()
        try await expectEverywhere([id: Note(text: "second")], person)
    }

    @Test(arguments: Undeletion.allCases, [false, true])
    func `an acknowledged deletion that is hidden is noticed, and sent again`(
        undeletion: Undeletion, startsAgain: Bool
    ) async throws {
        let person = try await RestoredPerson()
        let id = try await notes(person.vault(0)).put(Note(text: "first"))
        let before = try await shown(id, person)
        try await person.vault(0).delete(id)
        try await person.vault(0).sync()
        if startsAgain { try await person.startAgain(0) }
        let phone = try person.vault(0)
        person.links[0].setChanges { changes in
            changes.compactMap { item in
                guard item["id"] as? String == id.description else { return item }
                return switch undeletion {
                case .nothing: nil
                case .itemBefore: before.members
                case .itemAtThatRevision: before.members.with("revision", item["revision"])
                }
            }
        }
        await expectUnexpectedReply(phone)
        #expect(try await notes(phone).all().isEmpty)
        #expect(try await phone.deletedItems().map(\.id) == [id])
        person.links[0].setRewrite { $1 }
        try await phone.sync()
        try await expectEverywhere([:], person)
    }

    @Test(arguments: ["new", "edited", "edited twice", "deleted"], [Int64(0), 1_000_000])
    func `what is acknowledged and thrown away is noticed, and sent again`(what: String, above: Int64) async throws {
        let person = try await RestoredPerson()
        let phone = try person.vault(0)
        let id = try await notes(phone).put(Note(text: "first"))
        let other = try await notes(phone).put(Note(text: "other"))
        if what != "new" { _ = try await shown(id, person) }
        var expected = [other: Note(text: "other")]
        switch what {
        case "new": expected[id] = Note(text: "first")
        case "deleted": try await phone.delete(id)
        default:
            expected[id] = Note(text: what)
            try await notes(phone).put(Note(text: what), id)
        }
        person.links[0].acknowledge(above: above)
        try await phone.sync()
        #expect(try await phone.unsentCount() == 0)
        if what == "edited twice" {
            expected[id] = Note(text: "again")
            try await notes(phone).put(Note(text: "again"), id)
        }
        person.links[0].setAnswer { _ in nil }
        await expectUnexpectedReply(phone)
        #expect(try await notes(phone).all() == expected)
        try await phone.sync()
        try await expectEverywhere(expected, person)
    }

    @Test func `a server that goes on hiding is noticed again, and nothing is lost`() async throws {
        let person = try await RestoredPerson()
        let phone = try person.vault(0)
        let id = try await notes(phone).put(Note(text: "first"))
        try await phone.sync()
        person.links[0].setChanges { _ in [] }
        for _ in 0..<3 {
            await expectUnexpectedReply(phone)
            try await phone.sync()
        }
        #expect(try await notes(phone).all() == [id: Note(text: "first")])
        person.links[0].setRewrite { $1 }
        // What was hidden last.
        await expectUnexpectedReply(phone)
        try await expectEverywhere([id: Note(text: "first")], person)
    }

    @Test func `what another device has hidden from it is fetched after that`() async throws {
        let person = try await RestoredPerson()
        let (phone, laptop) = (try person.vault(0), try person.vault(1))
        let one = try await notes(phone).put(Note(text: "one"))
        try await phone.sync()
        let two = try await notes(laptop).put(Note(text: "two"))
        try await laptop.sync()
        person.links[0].setChanges { _ in [] }
        await expectUnexpectedReply(phone)
        person.links[0].setRewrite { $1 }
        try await phone.sync()
        #expect(try await notes(phone).all() == [one: Note(text: "one"), two: Note(text: "two")])
    }

    @Test func `later versions and deletions of other devices are none of it`() async throws {
        let person = try await RestoredPerson()
        let (phone, laptop) = (try person.vault(0), try person.vault(1))
        var ids: [ItemID] = []
        for text in ["edited", "deleted", "mine"] { ids.append(try await notes(phone).put(Note(text: text))) }
        try await phone.sync()
        try await laptop.sync()
        try await notes(laptop).put(Note(text: "later"), ids[0])
        try await laptop.delete(ids[1])
        try await laptop.sync()
        try await phone.sync()
        try await expectEverywhere([ids[0]: Note(text: "later"), ids[2]: Note(text: "mine")], person)
    }

    @Test func `an edit of which the listing is cut, or its page, is compared when it goes on`() async throws {
        let folder = try TemporaryDirectory(.memory)
        let link = LossyTransport(MemoryServer())
        var settings = VaultSettings.forTests(folder: folder.path, link, name: "phone")
        settings.limits.page = 1
        let phone = try await Vault.signUp(settings, userid: "ada@example.org", password: Password("password"))
        for text in ["one", "two", "three"] { try await notes(phone).put(Note(text: text)) }
        try await phone.sync()
        #expect(try await phone.confirmations().count == 3)
        link.setFateFromSecond(.losesRequest)
        await #expect(throws: VaultError.self) { try await phone.sync() }
        #expect(try await phone.confirmations().count == 2)
        link.setFate { .passes }
        try await phone.sync()
        #expect(try await phone.confirmations().isEmpty)
    }

    @Test func `a deletion that waits here and is carried out by its person is none of it`() async throws {
        let person = try await RestoredPerson()
        let (phone, laptop) = (try person.vault(0), try person.vault(1))
        var ids: [ItemID] = []
        for number in 0..<12 { ids.append(try await notes(phone).put(Note(text: "\(number)"))) }
        try await phone.sync()
        try await laptop.sync()
        for id in ids.prefix(6) { try await laptop.delete(id) }
        try await laptop.sync()
        #expect(try await phone.sync().isHeld)
        try await phone.delete(ids[0])
        #expect(try await phone.sync().sent == 1)
        #expect(try await phone.sync().isHeld)
        #expect(try await phone.agreeToDeletions().removed == Set(ids[1..<6]))
    }

    @Test func `what a restored database has lost is none of it`() async throws {
        let person = try await RestoredPerson()
        let phone = try person.vault(0)
        let id = try await notes(phone).put(Note(text: "first"))
        _ = try await shown(id, person)
        let backup = person.server.backUp()
        try await notes(phone).put(Note(text: "second"), id)
        let new = try await notes(phone).put(Note(text: "new"))
        try await phone.sync()
        person.server.restore(backup)
        try await phone.sync()
        #expect(Set(try await notes(phone).all().values.map(\.text)) == ["first", "second", "new"])
        #expect(try await notes(phone)[new] == Note(text: "new"))
        #expect(try await phone.notices().contains { $0.kind == .timeWentBack })
    }

    @Test func `an item that a listing of everything lacks is kept, for it may have been deleted long ago`()
        async throws
    {
        let person = try await RestoredPerson()
        let phone = try person.vault(0)
        let id = try await notes(phone).put(Note(text: "first"))
        try await phone.sync()
        let hasExpired = Mutex(false)
        person.links[0].setRewrite { request, reply in
            guard request.target.hasPrefix("/v1/changes") else { return reply }
            let isFirst = hasExpired.withLock { hasExpired in
                defer { hasExpired = true }
                return !hasExpired
            }
            return isFirst ? .cursorExpired : reply.withChanges { _ in [] }
        }
        try await phone.sync()
        #expect(try await phone.notices().map(\.kind) == [.keptUnlisted])
        #expect(try await notes(phone).all() == [id: Note(text: "first")])
    }

    @Test func `a listing of everything shows no version from before an acknowledged one either`() async throws {
        let person = try await RestoredPerson()
        let phone = try person.vault(0)
        let id = try await notes(phone).put(Note(text: "first"))
        let before = try await shown(id, person)
        try await notes(phone).put(Note(text: "second"), id)
        try await phone.sync()
        let hasExpired = Mutex(false)
        person.links[0].setRewrite { request, reply in
            guard request.target.hasPrefix("/v1/changes") else { return reply }
            let isFirst = hasExpired.withLock { hasExpired in
                defer { hasExpired = true }
                return !hasExpired
            }
            return isFirst
                ? .cursorExpired
                : reply.withChanges { $0.map { before.members.with("revision", $0["revision"]) } }
        }
        await expectUnexpectedReply(phone)
        person.links[0].setRewrite { $1 }
        try await phone.sync()
        try await expectEverywhere([id: Note(text: "second")], person)
    }

    /// The phone sends what it has. Returns the item as the listing shows it afterwards.
    private func shown(_ id: ItemID, _ person: RestoredPerson) async throws -> SentMembers {
        try await person.vault(0).sync()
        let shown = Mutex<SentMembers?>(nil)
        person.links[0].setChanges { changes in
            if let item = changes.first(where: { $0["id"] as? String == id.description }) {
                shown.withLock { $0 = SentMembers(members: item) }
            }
            return changes
        }
        try await person.vault(0).sync()
        person.links[0].setRewrite { $1 }
        return try #require(shown.withLock { $0 })
    }
}

/// The members of a JSON object, which nobody changes.
private struct SentMembers: @unchecked Sendable {
    let members: [String: Any]
}

extension [String: Any] {
    fileprivate func with(_ name: String, _ value: Any?) -> Self {
        var members = self
        members[name] = value
        return members
    }

    /// Without sealed bytes and what describes them.
    fileprivate var head: Self { filter { !["format", "title", "body"].contains($0.key) } }
}

extension HTTPReply {
    fileprivate static var cursorExpired: HTTPReply {
        let body = #"{"type":"about:blank","title":"Gone","status":410,"code":"cursor_expired"}"#
        return HTTPReply(head: HTTPReplyHead(status: 410, fields: []), body: Array(body.utf8))
    }

    fileprivate func withChanges(_ change: ([[String: Any]]) -> [[String: Any]]) -> HTTPReply {
        guard var page = try? JSONSerialization.jsonObject(with: Data(body)) as? [String: Any],
            let changes = page["changes"] as? [[String: Any]]
        else { return self }
        page["changes"] = change(changes)
        return HTTPReply(head: head, body: Array((try? JSONSerialization.data(withJSONObject: page)) ?? Data()))
    }
}

extension LossyTransport {
    /// Changes what listings show.
    fileprivate func setChanges(_ change: @escaping @Sendable ([[String: Any]]) -> [[String: Any]]) {
        setRewrite { request, reply in
            request.target.hasPrefix("/v1/changes") ? reply.withChanges(change) : reply
        }
    }

    /// Acknowledges batches with revisions above their bases, and does not carry them out.
    fileprivate func acknowledge(above distance: Int64) {
        setAnswer { request in
            guard request.target == "/v1/items/batch", let body = request.body,
                let members = body.withUnsafeBytes({ try? JSONSerialization.jsonObject(with: Data($0)) })
                    as? [String: Any], let operations = members["operations"] as? [[String: Any]]
            else { return nil }
            let results = operations.enumerated().map { index, operation -> [String: Any] in
                let base = (operation["ifRevision"] as? NSNumber)?.int64Value ?? 0
                return ["id": operation["id"] ?? "", "revision": base + distance + Int64(index) + 1]
            }
            let reply = (try? JSONSerialization.data(withJSONObject: ["results": results])) ?? Data()
            return HTTPReply(head: HTTPReplyHead(status: 200, fields: []), body: Array(reply))
        }
    }
}

extension Vault {
    fileprivate func confirmations() throws -> [SalternClient.Confirmation] {
        try store.confirmations(since: store.number(.listing) ?? 0)
    }
}
