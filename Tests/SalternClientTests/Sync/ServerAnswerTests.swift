import Foundation
import Synchronization
import Testing

@testable import SalternClient

/// What the server answers is compared with what it was asked.
@Suite struct ServerAnswerTests {
    private let userid = "ada@example.org"
    private let password = Password("correct horse battery staple")

    private func withPhone(_ body: (LiveServer, Device, Vault) async throws -> Void) async throws {
        try await LiveServer.with { server in
            let phone = try Device("phone", server)
            let vault = try await Vault.signUp(phone.settings, userid: userid, password: password)
            try await body(server, phone, vault)
        }
    }

    private static func problem(_ status: Int, _ code: String) -> HTTPReply {
        let body = #"{"type":"about:blank","title":"No","status":\#(status),"code":"\#(code)"}"#
        return HTTPReply(head: HTTPReplyHead(status: status, fields: []), body: Array(body.utf8))
    }

    private static func isUnexpected(_ error: any Error) -> Bool {
        if case VaultError.unavailable(.unexpectedReply) = error { true } else { false }
    }

    @Test(arguments: [(400, "malformed_cursor"), (410, "cursor_expired")])
    func `a cursor that the server does not take leads to a listing of everything`(
        _ status: Int, _ code: String
    ) async throws {
        try await withPhone { server, phone, vault in
            let notes = vault.collection("notes", of: Note.self)
            let id = try await notes.put(Note(text: "kept"))
            try await vault.sync()
            let laptop = try Device("laptop", server)
            let other = try await Vault.logIn(laptop.settings, userid: userid, password: password)
            let new = try await other.collection("notes", of: Note.self).put(Note(text: "new"))
            try await other.sync()
            let refused = Mutex(0)
            phone.link.setAnswer { request in
                guard request.target.contains("since=") else { return nil }
                let number = refused.withLock {
                    $0 += 1
                    return $0
                }
                guard number == 1 else { return nil }
                return Self.problem(status, code)
            }
            try await vault.sync()
            #expect(try await notes.all() == [id: Note(text: "kept"), new: Note(text: "new")])
            #expect(try await vault.notices().isEmpty)
            #expect(try await vault.unsentCount() == 0)
        }
    }

    @Test func `a server that never takes its own cursors does not keep a round for ever`() async throws {
        try await withPhone { _, phone, vault in
            let notes = vault.collection("notes", of: Note.self)
            let id = try await notes.put(Note(text: "kept"))
            try await vault.sync()
            let requests = Mutex(0)
            phone.link.setAnswer { request in
                guard request.target.hasPrefix("/v1/changes") else { return nil }
                let number = requests.withLock {
                    $0 += 1
                    return $0
                }
                if number > 1_000 { return Self.problem(500, "internal") }
                if request.target.contains("since=") { return Self.problem(400, "malformed_cursor") }
                let page = #"{"changes":[],"cursor":"x","more":true,"revisionBase":0}"#
                return HTTPReply(head: HTTPReplyHead(status: 200, fields: []), body: Array(page.utf8))
            }
            await #expect(throws: VaultError.self) { try await vault.sync() }
            let bases = Mutex(1)
            phone.link.setAnswer { request in
                guard request.target.hasPrefix("/v1/changes") else { return nil }
                let base = bases.withLock {
                    $0 += 1
                    return $0
                }
                if base > 1_000 { return Self.problem(500, "internal") }
                let page = #"{"changes":[],"cursor":"x","more":true,"revisionBase":\#(base)}"#
                return HTTPReply(head: HTTPReplyHead(status: 200, fields: []), body: Array(page.utf8))
            }
            await #expect(throws: VaultError.self) { try await vault.sync() }
            #expect(requests.withLock { $0 } < 100 && bases.withLock { $0 } < 100)
            #expect(try await notes.all() == [id: Note(text: "kept")])
        }
    }

    @Test func `revisions of other items than were sent confirm nothing, and the next round does`() async throws {
        try await withPhone { _, phone, vault in
            let notes = vault.collection("notes", of: Note.self)
            let first = try await notes.put(Note(text: "first"))
            try await vault.sync()
            let lies: [@Sendable ([[String: Any]]) -> [[String: Any]]] = [
                { Array($0.reversed()) }, { [$0[0], $0[0]] }, { [$0[0]] }, { $0 + [$0[0]] }, { _ in [] },
                { [$0[0], ["id": ItemID.random().description, "revision": 9_000]] },
                { $0.map { ["id": $0["id"] ?? "", "revision": 0] } },
                { $0.map { ["id": $0["id"] ?? "", "revision": -5] } },
            ]
            for (number, lie) in lies.enumerated() {
                try await notes.put(Note(text: "first \(number)"), first)
                let second = try await notes.put(Note(text: "second \(number)"))
                phone.link.setRewrite { request, reply in
                    guard request.target == "/v1/items/batch", reply.head.status == 200,
                        let reply = try? JSONSerialization.jsonObject(with: Data(reply.body)) as? [String: Any],
                        let results = reply["results"] as? [[String: Any]],
                        let body = try? JSONSerialization.data(withJSONObject: ["results": lie(results)])
                    else { return reply }
                    return HTTPReply(head: HTTPReplyHead(status: 200, fields: []), body: [UInt8](body))
                }
                await #expect(throws: VaultError.self, "\(number)") { try await vault.sync() }
                #expect(try await vault.unsentCount() == 2, "\(number)")
                phone.link.setRewrite { $1 }
                try await vault.sync()
                #expect(try await vault.unsentCount() == 0, "\(number)")
                #expect(try await notes[second] == Note(text: "second \(number)"))
            }
            #expect(try await notes[first] == Note(text: "first \(lies.count - 1)"))
            #expect(try await vault.notices().isEmpty)
        }
    }

    @Test func `a deletion is not confirmed by the revision that was deleted`() async throws {
        try await withPhone { _, phone, vault in
            let notes = vault.collection("notes", of: Note.self)
            let id = try await notes.put(Note(text: "one"))
            try await vault.sync()
            try await notes.delete(id)
            phone.link.setAnswer { request in
                guard request.target == "/v1/items/batch" else { return nil }
                let body = #"{"results":[{"id":"\#(id)","revision":1}]}"#
                return HTTPReply(head: HTTPReplyHead(status: 200, fields: []), body: Array(body.utf8))
            }
            await #expect { try await vault.sync() } throws: { Self.isUnexpected($0) }
            #expect(try await vault.unsentCount() == 1)
        }
    }

    @Test func `another item in the place of the one that was asked for is refused`() async throws {
        try await withPhone { server, _, vault in
            let notes = vault.collection("notes", of: Note.self)
            let ids = [try await notes.put(Note(text: "one")), try await notes.put(Note(text: "two"))]
            try await vault.sync()
            let token = try await vault.sessionToken()
            let link = LossyTransport(try CurlTransport(server.address()))
            let live = LiveSyncServer(SalternAPI(link), token: token, retries: Retries(attempts: 1))
            #expect(try await live.item(ids[0])?.id == ids[0])
            link.setRewrite { _, reply in
                let text = String(decoding: reply.body, as: UTF8.self)
                return HTTPReply(
                    head: reply.head,
                    body: Array(text.replacing(ids[0].description, with: ids[1].description).utf8))
            }
            await #expect { try await live.item(ids[0]) } throws: {
                if case APIError.unexpectedReply = $0 { true } else { false }
            }
        }
    }

    @Test func `a cursor without end, and more changes than were asked for, are not taken`() async throws {
        try await withPhone { _, phone, vault in
            let notes = vault.collection("notes", of: Note.self)
            try await notes.put(Note(text: "kept"))
            try await vault.sync()
            let change =
                #"{"id":"\#(ItemID.random())","revision":1,"collection":"notes","createdAt":"2026-01-01T00:00:00Z","#
                + #""updatedAt":"2026-01-01T00:00:00Z","deleted":true}"#
            let changes = (0...SyncLimits().page).map { _ in change }.joined(separator: ",")
            for (changes, cursor) in [("", String(repeating: "x", count: 1 << 20)), (changes, "x")] {
                phone.link.setAnswer { request in
                    guard request.target.hasPrefix("/v1/changes") else { return nil }
                    let page = #"{"changes":[\#(changes)],"cursor":"\#(cursor)","more":false,"revisionBase":0}"#
                    return HTTPReply(head: HTTPReplyHead(status: 200, fields: []), body: Array(page.utf8))
                }
                await #expect { try await vault.sync() } throws: { Self.isUnexpected($0) }
            }
            #expect(try await notes.all().count == 1)
        }
    }
}
