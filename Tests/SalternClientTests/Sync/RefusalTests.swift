import Cryptography
import Foundation
import Synchronization
import Testing

@testable import SalternClient

/// What the server does not take for good stays on the device, is said, and holds nothing else up.
@Suite struct RefusalTests {
    private func notes(_ vault: Vault) -> VaultCollection<Note> { vault.collection("notes") }

    private static func refusal(_ status: Int, _ code: String) -> HTTPReply {
        let body = #"{"type":"about:blank","title":"Refused","status":\#(status),"code":"\#(code)"}"#
        return HTTPReply(head: HTTPReplyHead(status: status, fields: []), body: Array(body.utf8))
    }

    /// What a batch has in it; nil for other requests.
    private static func batch(_ request: HTTPRequest) -> String? {
        guard request.target == "/v1/items/batch" else { return nil }
        return request.body?.withUnsafeBytes { String(decoding: $0, as: UTF8.self) }
    }

    @Test(arguments: [(403, "quota_exceeded", Notice.Kind.quotaExceeded), (422, "not_encrypted", .refused)])
    func `one item that is refused is sent when it is taken, and all others meanwhile`(
        status: Int, code: String, kind: Notice.Kind
    ) async throws {
        let person = try await RestoredPerson()
        let (phone, laptop) = (try person.vault(0), try person.vault(1))
        let old = try await notes(phone).put(Note(text: "old"))
        try await phone.sync()
        let refused = try await notes(phone).put(Note(text: "refused"))
        let other = try await notes(phone).put(Note(text: "other"))
        try await notes(phone).delete(old)
        person.links[0].setAnswer { request in
            Self.batch(request)?.contains(refused.description) == true ? Self.refusal(status, code) : nil
        }
        for _ in 0..<2 {
            #expect(try await phone.sync().unsent == 1)
            #expect(try await phone.notices().map(\.kind) == [kind])
            #expect(try await phone.notices().map(\.item) == [refused])
            #expect(try await phone.unsentCount() == 1)
            #expect(try await notes(phone)[refused] == Note(text: "refused"))
            try await laptop.sync()
            #expect(try await notes(laptop).all() == [other: Note(text: "other")])
        }
        person.links[0].setAnswer { _ in nil }
        #expect(try await phone.sync().unsent == 0)
        // It does not stay on this device any more.
        #expect(try await phone.notices().isEmpty)
        try await laptop.sync()
        #expect(try await notes(laptop).all() == [other: Note(text: "other"), refused: Note(text: "refused")])
    }

    @Test func `what makes room goes first`() async throws {
        let person = try await RestoredPerson()
        let phone = try person.vault(0)
        let old = try await notes(phone).put(Note(text: "old"))
        try await phone.sync()
        let large = try await notes(phone).put(Note(text: "large"))
        try await notes(phone).delete(old)
        let hasRoom = Mutex(false)
        person.links[0].setAnswer { request in
            guard let batch = Self.batch(request) else { return nil }
            if batch.contains(large.description) {
                return hasRoom.withLock { $0 } ? nil : Self.refusal(403, "quota_exceeded")
            }
            if batch.contains(old.description) { hasRoom.withLock { $0 = true } }
            return nil
        }
        #expect(try await phone.sync().unsent == 0)
        #expect(try await phone.notices().isEmpty)
        #expect(try await phone.unsentCount() == 0)
    }

    @Test func `what is refused is sent once in a round, however often others make it begin again`() async throws {
        let person = try await RestoredPerson()
        let phone = try person.vault(0)
        let disputed = try await notes(phone).put(Note(text: "before"))
        try await phone.sync()
        let refused = try await notes(phone).put(Note(text: "refused"))
        try await notes(phone).put(Note(text: "disputed"), disputed)
        let counts = Mutex((refused: 0, disputed: 0))
        person.links[0].setAnswer { request in
            guard let batch = Self.batch(request) else { return nil }
            return counts.withLock { counts in
                if batch.contains(refused.description) {
                    counts.refused += 1
                    return Self.refusal(403, "quota_exceeded")
                }
                counts.disputed += 1
                return counts.disputed > 3 ? nil : Self.conflict(disputed)
            }
        }
        #expect(try await phone.sync().unsent == 1)
        // Once with the other, and once alone.
        #expect(counts.withLock { $0.refused } == 2)
        #expect(counts.withLock { $0.disputed } == 4)
        #expect(try await phone.unsentCount() == 1)
        _ = try await phone.sync()
        #expect(counts.withLock { $0.refused } > 2)
    }

    /// The item is another one there.
    private static func conflict(_ id: ItemID) -> HTTPReply {
        let body = """
            {"type":"about:blank","title":"Conflict","status":409,"code":"batch_conflict",
            "conflicts":[{"index":0,"id":"\(id)","code":"precondition_failed","revision":9}]}
            """
        return HTTPReply(head: HTTPReplyHead(status: 409, fields: []), body: Array(body.utf8))
    }
}
