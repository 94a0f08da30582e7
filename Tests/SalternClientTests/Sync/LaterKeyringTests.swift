import Testing

@testable import SalternClient

/// Another device has changed the data keys.
@Suite struct LaterKeyringTests {
    private let userid = "ada@example.org"
    private let password = Password("correct horse battery staple")

    /// Replaces the account's keyring.
    private func change(_ server: LiveServer, _ change: (inout Keyring) -> Void) async throws {
        let api = try server.api()
        let rule = StretchingRule.forTests
        let stretched = try await rule.stretch(password, userid: userid, iterations: 10_000)
        let session = try await api.logIn(userid: userid, passwordKey: stretched.passwordKey, device: nil, code: nil)
        let token = session.session.token
        let reply = try #require(try await api.getKeyring(token))
        let next = try Keyring(sealed: reply.keyring.bytes, openedBy: stretched).changed(change)
        _ = try await api.putKeyring(next.sealed(under: stretched), .revision(reply.revision), token)
    }

    private func logIn(_ name: String, _ server: LiveServer) async throws -> (Device, Vault) {
        let device = try Device(name, server)
        return (device, try await Vault.logIn(device.settings, userid: userid, password: password))
    }

    @Test func `what another device sealed with a new key is read, also after a restart`() async throws {
        try await LiveServer.with { server in
            let phone = try Device("phone", server)
            var vault: Vault? = try await Vault.signUp(phone.settings, userid: userid, password: password)
            let old = try await vault?.collection("notes", of: Note.self).put(Note(text: "old"))
            try await vault?.sync()
            try await change(server) { $0.dataKeys.append(.random()) }
            let (_, laptop) = try await logIn("laptop", server)
            try await laptop.sync()
            let there = laptop.collection("notes", of: Note.self)
            let new = try await there.put(Note(text: "new"))
            try await there.put(Note(text: "old, edited"), #require(old))
            try await laptop.sync()
            try await vault?.sync()
            vault = nil
            vault = try await Vault.resume(phone.settings)
            let notes = try #require(vault).collection("notes", of: Note.self)
            #expect(try await notes.all() == [new: Note(text: "new"), #require(old): Note(text: "old, edited")])
            #expect(try await vault?.notices().isEmpty == true)
        }
    }

    @Test func `what was not sent is sealed anew when its key is gone`() async throws {
        try await LiveServer.with { server in
            let phone = try Device("phone", server)
            let vault = try await Vault.signUp(phone.settings, userid: userid, password: password)
            let notes = vault.collection("notes", of: Note.self)
            let id = try await notes.put(Note(text: "not sent yet"))
            try await change(server) { $0.dataKeys = [.random()] }
            let (_, laptop) = try await logIn("laptop", server)
            let there = laptop.collection("notes", of: Note.self)
            let other = try await there.put(Note(text: "new"))
            try await laptop.sync()
            try await vault.sync()
            try await laptop.sync()
            let all = [id: Note(text: "not sent yet"), other: Note(text: "new")]
            #expect(try await there.all() == all)
            #expect(try await notes.all() == all)
            #expect(try await vault.notices().isEmpty)
            // An older keyring is not gone back to, and nothing asks for one that there is not.
            try await notes.put(Note(text: "edited"), id)
            try await vault.sync()
            try await laptop.sync()
            #expect(try await there[id] == Note(text: "edited"))
        }
    }
}
