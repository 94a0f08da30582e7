import Cryptography
import SalternTesting
import Synchronization
import Testing

@testable import SalternClient

/// A server that answers a printed code with an older keyring.
@Suite struct RecoveryRollbackTests {
    private let userid = "ada@example.org"
    private let password = Password("correct horse battery staple")
    private let another = Password("tr0ub4dor&3")

    /// What the code opens as it is now.
    private func recoveryKeyring(_ server: LiveServer, _ code: RecoveryCode) async throws -> [UInt8] {
        let stretched = await code.stretched(by: .forTests)
        let reply = try await server.api().recover(
            userid: userid, recoveryKey: stretched.passwordKey, deviceName: nil)
        return try #require(reply.keyring).bytes
    }

    private func isUnusable(_ error: any Error) -> Bool {
        if case VaultError.keyringUnusable = error { true } else { false }
    }

    /// A device that has changed the data keys once, and then once more the password, and is not open any more.
    /// - Parameter isLocked: Whether nobody can open what it knows.
    @Test(arguments: [false, true])
    func `a device that knows later keys refuses older ones before anything is changed`(isLocked: Bool) async throws {
        try await LiveServer.with { server in
            let phone = try Device("phone", server)
            var vault: Vault? = try await Vault.signUp(phone.settings, userid: userid, password: password)
            let code = try #require(try await vault?.makeRecoveryCode(password: password))
            let old = try await recoveryKeyring(server, code)
            try await vault?.rotateKeys(password: password)
            let id = try await vault?.collection("notes", of: Note.self).put(Note(text: "not sent"))
            let key = try await vault?.secrets().keyring.currentKey
            if isLocked { try await vault?.lock() }
            vault = nil
            let changes = Mutex(0)
            phone.link.setAnswer { request in
                if request.method == .put { changes.withLock { $0 += 1 } }
                return nil
            }
            phone.link.setRewrite { request, reply in
                guard request.target == "/v1/recoveries" else { return reply }
                let lie = #""keyring":"\#(Base64.encodeToString(old))""#
                let text = String(decoding: reply.body, as: UTF8.self).replacing(/"keyring":"[^"]*"/, with: lie)
                return HTTPReply(head: reply.head, body: Array(text.utf8))
            }
            await #expect {
                try await Vault.recover(phone.settings, userid: userid, code: code, newPassword: another)
            } throws: { isUnusable($0) }
            #expect(changes.withLock { $0 } == 0)
            vault = try await Vault.resume(phone.settings)
            #expect(try await vault?.notices().map(\.kind) == [.recoveryCodeOutdated, .keyringRolledBack])
            if !isLocked { #expect(try await vault?.secrets().keyring.currentKey == key) }
            vault = nil
            // The honest one is taken, and nothing is lost.
            phone.link.setRewrite { $1 }
            let recovered = try await Vault.recover(phone.settings, userid: userid, code: code, newPassword: another)
            #expect(try await recovered.secrets().keyring.currentKey == key)
            #expect(try await recovered.collection("notes", of: Note.self)[#require(id)] == Note(text: "not sent"))
            try await recovered.sync()
        }
    }

    @Test func `an older keyring with the same keys is gone on from, above what is known`() async throws {
        try await LiveServer.with { server in
            let phone = try Device("phone", server)
            var vault: Vault? = try await Vault.signUp(phone.settings, userid: userid, password: password)
            let code = try #require(try await vault?.makeRecoveryCode(password: password))
            let id = try await vault?.collection("notes", of: Note.self).put(Note(text: "kept"))
            try await vault?.sync()
            // The account's keyring counts on twice, and what the code opens stays as it is.
            let old = try await recoveryKeyring(server, code)
            let token = try #require(try await vault?.secrets().token)
            let stretched = try await phone.settings.stretching.stretch(password, userid: userid, iterations: 10_000)
            let now = try #require(try await server.api().getKeyring(token))
            let next = try Keyring(sealed: now.keyring.bytes, openedBy: stretched).changed { $0.counter += 1 }
            _ = try await server.api().putKeyring(
                next.sealed(under: stretched), recoveryKeyring: old, .revision(now.revision), token)
            try await vault?.logInAgain(password: password)
            vault = nil
            let recovered = try await Vault.recover(phone.settings, userid: userid, code: code, newPassword: another)
            #expect(try await recovered.secrets().keyring.counter > next.counter)
            try await recovered.sync()
            #expect(try await recovered.collection("notes", of: Note.self)[#require(id)] == Note(text: "kept"))
            #expect(try await recovered.notices().isEmpty)
        }
    }

    @Test func `another account than the one that is here is refused before anything is changed`() async throws {
        try await LiveServer.with { server in
            let (phone, laptop) = (try Device("phone", server), try Device("laptop", server))
            _ = try await Vault.signUp(phone.settings, userid: "eve@example.org", password: another)
            let vault = try await Vault.signUp(laptop.settings, userid: userid, password: password)
            let code = try await vault.makeRecoveryCode(password: password)
            await #expect {
                try await Vault.recover(phone.settings, userid: userid, code: code, newPassword: another)
            } throws: { if case VaultError.otherAccount = $0 { true } else { false } }
            try await vault.sync()
        }
    }
}
