import Cryptography
import SalternClient
import SalternTesting
import Testing

/// What a round has fetched counts and is told, also when the rest of it fails; and what no time mends ends following.
@Suite struct UnfinishedRoundTests {
    private func withTwoDevices(
        _ body: (_ vault: Vault, _ other: Vault, _ laptop: Device) async throws -> Void
    ) async throws {
        try await withServer { _, vault, other, laptop in try await body(vault, other, laptop) }
    }

    private func withServer(
        _ body: (_ server: LiveServer, _ vault: Vault, _ other: Vault, _ laptop: Device) async throws -> Void
    ) async throws {
        let (userid, password) = ("ada@example.org", Password("correct horse battery staple"))
        try await LiveServer.with { server in
            let phone = try Device("phone", server)
            let vault = try await Vault.signUp(phone.settings, userid: userid, password: password)
            let laptop = try Device("laptop", server)
            let other = try await Vault.logIn(laptop.settings, userid: userid, password: password)
            try await body(server, vault, other, laptop)
        }
    }

    @Test func `what was fetched is told when nothing could be sent`() async throws {
        try await withTwoDevices { vault, other, laptop in
            let id = try await vault.collection("notes", of: Note.self).put(Note(text: "new"))
            try await vault.sync()
            try await other.collection("notes", of: Note.self).put(Note(text: "mine"))
            laptop.link.setRewrite { request, reply in
                guard request.target.hasPrefix("/v1/items/batch") else { return reply }
                return HTTPReply(head: reply.head, body: Array("nonsense".utf8))
            }
            var changes = other.changes().makeAsyncIterator()
            await #expect(throws: VaultError.self) { try await other.sync() }
            #expect(try await other.collection("notes", of: Note.self)[id] == Note(text: "new"))
            #expect(await changes.next() == [id])
        }
    }

    @Test func `deletions that wait for somebody are told`() async throws {
        try await withTwoDevices { vault, other, _ in
            let notes = vault.collection("notes", of: Note.self)
            var ids: [ItemID] = []
            for number in 0..<30 { ids.append(try await notes.put(Note(text: "\(number)"))) }
            try await vault.sync()
            try await other.sync()
            for id in ids { try await notes.delete(id) }
            try await vault.sync()
            var changes = other.changes().makeAsyncIterator()
            #expect(try await other.sync().isHeld)
            #expect(await changes.next() == [])
            #expect(try await other.notices().map(\.kind) == [.massDeletion])
        }
    }

    @Test func `pages that lead nowhere are not followed`() async throws {
        try await withTwoDevices { vault, other, laptop in
            try await vault.collection("notes", of: Note.self).put(Note(text: "new"))
            try await vault.sync()
            laptop.link.setRewrite { request, reply in
                guard request.target.hasPrefix("/v1/changes") else { return reply }
                let text = String(decoding: reply.body, as: UTF8.self)
                return HTTPReply(
                    head: reply.head, body: Array(text.replacing(/"more":false/, with: #""more":true"#).utf8))
            }
            await #expect {
                try await other.sync()
            } throws: { if case VaultError.unavailable(.unexpectedReply) = $0 { true } else { false } }
        }
    }

    @Test func `another key ends following, for a person has to look`() async throws {
        try await withServer { server, _, other, laptop in
            let pin = "sha256//" + Base64.encodeToString(SecureRandom.bytes(32))
            laptop.link.change(to: try CurlTransport(server.address(pins: [pin])))
            await #expect {
                try await other.keepInSync()
            } throws: { if case VaultError.unavailable(.transport(.pinMismatch)) = $0 { true } else { false } }
        }
    }
}
