import Cryptography
import Foundation
import SalternTesting
import Testing

@testable import SalternClient

/// A stolen session has replaced the keyring, and the password opens nothing any more.
@Suite struct KeptKeyringTests {
    private static let userid = "ada@example.org"
    private static let password = Password("correct horse battery staple")
    private static let another = Password("tr0ub4dor&3")

    /// Replaces the account's keyring within a session, and what the printed code opens.
    private static func spoil(
        _ server: LiveServer, _ token: Token, times: Int = 1, hasCode: Bool = false
    ) async throws {
        for _ in 0..<times {
            let present = try #require(try await server.api().getKeyring(token))
            let garbage = SecureRandom.bytes(300)
            _ = try await server.api().putKeyring(
                garbage, recoveryKeyring: hasCode ? SecureRandom.bytes(700) : nil, .revision(present.revision), token)
        }
    }

    private static func isReplaced(_ error: any Error) -> Bool {
        if case VaultError.keyringReplaced = error { true } else { false }
    }

    @Test(arguments: [false, true])
    func `a new device restores the keyring when the person agrees, and reads everything`(hasCode: Bool) async throws {
        try await LiveServer.with { server in
            let (phone, laptop) = (try Device("phone", server), try Device("laptop", server))
            let vault = try await Vault.signUp(phone.settings, userid: Self.userid, password: Self.password)
            let code = hasCode ? try await vault.makeRecoveryCode(password: Self.password) : nil
            let id = try await vault.collection("notes", of: Note.self).put(Note(text: "kept"))
            try await vault.sync()
            try await Self.spoil(server, vault.secrets().token, times: 6, hasCode: hasCode)
            let spoilt = try await server.api().getKeyring(vault.secrets().token)
            await #expect {
                try await Vault.logIn(laptop.settings, userid: Self.userid, password: Self.password)
            } throws: { Self.isReplaced($0) }
            // Nothing is done before the person has agreed.
            #expect(try await server.api().getKeyring(vault.secrets().token)?.revision == spoilt?.revision)
            let restored = try await Vault.logIn(
                laptop.settings, userid: Self.userid, password: Self.password, restoringKeyring: true)
            try await restored.sync()
            #expect(try await restored.collection("notes", of: Note.self)[id] == Note(text: "kept"))
            #expect(try await restored.notices().isEmpty)
            // The first device goes on, and takes the restored one for a later one.
            try await vault.logInAgain(password: Self.password)
            try await vault.sync()
            #expect(try await vault.notices().isEmpty)
            guard let code else { return }
            let tablet = try Device("tablet", server)
            let recovered = try await Vault.recover(
                tablet.settings, userid: Self.userid, code: code, newPassword: Self.another)
            try await recovered.sync()
            #expect(try await recovered.collection("notes", of: Note.self)[id] == Note(text: "kept"))
        }
    }

    @Test func `a printed code opens what it opened before`() async throws {
        try await LiveServer.with { server in
            let (phone, laptop) = (try Device("phone", server), try Device("laptop", server))
            let vault = try await Vault.signUp(phone.settings, userid: Self.userid, password: Self.password)
            let code = try await vault.makeRecoveryCode(password: Self.password)
            let id = try await vault.collection("notes", of: Note.self).put(Note(text: "kept"))
            try await vault.sync()
            try await Self.spoil(server, vault.secrets().token, times: 3, hasCode: true)
            await #expect {
                try await Vault.recover(laptop.settings, userid: Self.userid, code: code, newPassword: Self.another)
            } throws: { Self.isReplaced($0) }
            let recovered = try await Vault.recover(
                laptop.settings, userid: Self.userid, code: code, newPassword: Self.another, restoringKeyring: true)
            try await recovered.sync()
            #expect(try await recovered.collection("notes", of: Note.self)[id] == Note(text: "kept"))
        }
    }

    /// A session can put there what it has seen before.
    @Test func `an older keyring among the kept ones is not taken for the latest`() async throws {
        try await LiveServer.with { server in
            let (phone, laptop) = (try Device("phone", server), try Device("laptop", server))
            let vault = try await Vault.signUp(phone.settings, userid: Self.userid, password: Self.password)
            let token = try await vault.secrets().token
            let stretched = try await phone.settings.stretching.stretch(
                Self.password, userid: Self.userid, iterations: 10_000)
            let old = try #require(try await server.api().getKeyring(token))
            let next = try Keyring(sealed: old.keyring.bytes, openedBy: stretched).changed {
                $0.dataKeys.append(.random())
            }
            let written = try await server.api().putKeyring(
                next.sealed(under: stretched), .revision(old.revision), token)
            // The older one is in force, and kept, when garbage takes its place.
            _ = try await server.api().putKeyring(old.keyring.bytes, .revision(written), token)
            try await Self.spoil(server, token)
            let restored = try await Vault.logIn(
                laptop.settings, userid: Self.userid, password: Self.password, restoringKeyring: true)
            #expect(try await restored.secrets().keyring.currentKey == next.currentKey)
        }
    }

    @Test func `where no kept keyring opens nothing is put back`() async throws {
        try await LiveServer.with { server in
            let (phone, laptop) = (try Device("phone", server), try Device("laptop", server))
            let vault = try await Vault.signUp(phone.settings, userid: Self.userid, password: Self.password)
            let token = try await vault.secrets().token
            try await Self.spoil(server, token)
            // As after the time for which it is kept.
            laptop.link.setAnswer { request in
                guard request.target == "/v1/account/keyring/kept" else { return nil }
                return HTTPReply(head: HTTPReplyHead(status: 200, fields: []), body: Array(#"{"keyrings":[]}"#.utf8))
            }
            await #expect {
                try await Vault.logIn(
                    laptop.settings, userid: Self.userid, password: Self.password, restoringKeyring: true)
            } throws: { if case VaultError.keyringUnusable = $0 { true } else { false } }
            #expect(try await server.api().getKeyring(token)?.revision == Revision(2))
        }
    }
}
