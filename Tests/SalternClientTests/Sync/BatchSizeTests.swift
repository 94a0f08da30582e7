import Cryptography
import Synchronization
import Testing

@testable import SalternClient

/// What the server finds too much at once.
@Suite struct BatchSizeTests {
    @Test func `a batch that deletes too much goes in halves, as often as it takes`() async throws {
        try await LiveServer.with { server in
            let phone = try Device("phone", server)
            let vault = try await Vault.signUp(phone.settings, userid: "ada@example.org", password: Password("salt"))
            let notes = vault.collection("notes", of: Note.self)
            var ids: [ItemID] = []
            for number in 0..<12 { ids.append(try await notes.put(Note(text: "\(number)"))) }
            try await vault.sync()
            for id in ids { try await notes.delete(id) }
            let sizes = Mutex([Int]())
            phone.link.setAnswer { request in
                guard request.target == "/v1/items/batch" else { return nil }
                let body = request.body?.withUnsafeBytes { String(decoding: $0, as: UTF8.self) } ?? ""
                let count = body.matches(of: /"op":/).count
                sizes.withLock { $0.append(count) }
                guard count > 3 else { return nil }
                let problem = #"{"type":"about:blank","title":"Too large","status":422,"code":"batch_too_large"}"#
                return HTTPReply(head: HTTPReplyHead(status: 422, fields: []), body: Array(problem.utf8))
            }
            let report = try await vault.sync()
            #expect(report.sent == 12)
            #expect(sizes.withLock { $0 } == [12, 6, 3, 3, 6, 3, 3])
            #expect(try await vault.unsentCount() == 0)
            #expect(try await vault.notices().isEmpty)
        }
    }
}
