import SalternClient
import Synchronization
import Testing

@Suite struct EmptyPageTests {
    @Test func `a page without changes is not the end when more follows`() async throws {
        try await LiveServer.with { server in
            let phone = try Device("phone", server)
            let password = Password("correct horse battery staple")
            let vault = try await Vault.signUp(phone.settings, userid: "ada@example.org", password: password)
            let id = try await vault.collection("notes", of: Note.self).put(Note(text: "Buy salt."))
            try await vault.sync()

            let laptop = try Device("laptop", server)
            let requests = Mutex(0)
            laptop.link.setRewrite { request, reply in
                guard request.target.hasPrefix("/v1/changes?") || request.target == "/v1/changes" else { return reply }
                let number = requests.withLock {
                    $0 += 1
                    return $0
                }
                guard number == 1 else { return reply }
                // What a server says that has looked through 5,000 tombstones.
                let page = #"{"changes":[],"cursor":"AgAAAAAAAAAAAAAAAAAAAAA","more":true,"revisionBase":0}"#
                return HTTPReply(head: reply.head, body: Array(page.utf8))
            }
            let other = try await Vault.logIn(laptop.settings, userid: "ada@example.org", password: password)
            try await other.sync()
            #expect(requests.withLock { $0 } >= 2)
            #expect(try await other.collection("notes", of: Note.self)[id]?.text == "Buy salt.")
        }
    }
}
