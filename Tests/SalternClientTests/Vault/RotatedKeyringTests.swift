import Cryptography
import SalternTesting
import Testing

@testable import SalternClient

/// Keyrings of before a change of the data keys, from a server that was restored or lies, and what the printed code opens.
@Suite struct RotatedKeyringTests {
    private let fixture = RotationFixture()

    @Test func `a keyring of before is refused, and nothing is sealed with its keys`() async throws {
        try await LiveServer.with { server in
            let (phone, vault) = try await fixture.signUp(server)
            let id = try await fixture.notes(vault).put(Note(text: "kept"))
            let token = try await vault.secrets().token
            let old = try #require(try await server.api().getKeyring(token)).keyring.bytes
            try await vault.rotateKeys(password: fixture.password)
            let lie = #""keyring":"\#(Base64.encodeToString(old))""#
            phone.link.setRewrite { request, reply in
                guard request.target != "/v1/changes" else { return reply }
                let text = String(decoding: reply.body, as: UTF8.self).replacing(/"keyring":"[^"]*"/, with: lie)
                return HTTPReply(head: reply.head, body: Array(text.utf8))
            }
            for _ in 0..<2 {
                await #expect { try await vault.rotateKeys(password: fixture.password) } throws: {
                    if case VaultError.keyringUnusable = $0 { true } else { false }
                }
            }
            #expect(try await vault.notices().map(\.kind) == [.keyringRolledBack])
            await #expect { try await vault.logInAgain(password: fixture.password) } throws: {
                if case VaultError.keyringUnusable = $0 { true } else { false }
            }
            try await vault.sync()
            for notice in try await vault.notices() { try await vault.forget(notice) }
            #expect(try await vault.notices().map(\.kind) == [.keyringRolledBack], "it is told as long as it is so")
            phone.link.setRewrite { $1 }
            let later = try await fixture.notes(vault).put(Note(text: "later"))
            try await vault.sync()
            #expect(try await vault.notices().isEmpty, "the server has the later one again")
            try await fixture.check(server, has: [id: Note(text: "kept"), later: Note(text: "later")])
        }
    }

    @Test func `after a restore of the server no newer key is sealed under a password of before`() async throws {
        try await LiveServer.with { server in
            let (_, vault) = try await fixture.signUp(server)
            let api = try server.api()
            let old = try #require(try await api.getKeyring(vault.secrets().token)).keyring.bytes
            try await vault.rotateKeys(password: fixture.password)
            let next = Password("correct horse battery staple, too")
            try await vault.changePassword(from: fixture.password, to: next)
            // Another device makes the server what it was.
            let other = try await Vault.logIn(
                try Device("other", server).settings, userid: fixture.userid, password: next, code: nil)
            try await other.changePassword(from: next, to: fixture.password)
            let token = try await other.secrets().token
            let now = try #require(try await api.getKeyring(token))
            _ = try await api.putKeyring(old, recoveryKeyring: nil, .revision(now.revision), token)
            let sessions = Set(try await other.sessions().map(\.id))
            await #expect {
                try await vault.logInAgain(password: fixture.password, restoringKeyring: true)
            } throws: {
                if case VaultError.keyringNotRestorable = $0 { true } else { false }
            }
            #expect(try await sessions.isSuperset(of: other.sessions().map(\.id)), "what nobody has is not left behind")
        }
    }

    /// What the account's recovery is when the server's database is restored.
    enum RestoredCode: CaseIterable { case none, same, laterHere }

    @Test(arguments: RestoredCode.allCases)
    func `after a restore of the server the later keyring is put back when a person agrees`(
        _ kind: RestoredCode
    ) async throws {
        try await LiveServer.with { server in
            let (_, vault) = try await fixture.signUp(server)
            let code = kind == .same ? try await vault.makeRecoveryCode(password: fixture.password) : nil
            let id = try await fixture.notes(vault).put(Note(text: "kept"))
            try await vault.sync()
            let api = try server.api()
            let old = try #require(try await api.getKeyring(vault.secrets().token)).keyring.bytes
            let item = try #require(try await api.getItem(id, vault.secrets().token).content)
            if kind == .laterHere { _ = try await vault.makeRecoveryCode(password: fixture.password) }
            try await vault.rotateKeys(password: fixture.password)
            let later = try await fixture.notes(vault).put(Note(text: "later"))
            try await vault.sync()
            let (token, keyring) = try await vault.secrets()
            let now = try #require(try await api.getKeyring(token))
            let recoveryKeyring = kind == .none ? nil : SecureRandom.bytes(300)
            _ = try await api.putKeyring(old, recoveryKeyring: recoveryKeyring, .revision(now.revision), token)
            _ = try await api.putItem(id, item, .present, token)

            await #expect { try await vault.logInAgain(password: fixture.password) } throws: {
                if case VaultError.keyringUnusable = $0 { true } else { false }
            }
            let unsent = try await fixture.notes(vault).put(Note(text: "unsent"))
            try await vault.logInAgain(password: fixture.password, restoringKeyring: true)
            let next = try await vault.secrets().keyring
            #expect(next.counter > keyring.counter && next.currentKey == keyring.currentKey)
            try await vault.sync()
            let all = [id: Note(text: "kept"), later: Note(text: "later"), unsent: Note(text: "unsent")]
            let (_, other) = try await fixture.logIn("other", server)
            try await other.sync()
            #expect(try await fixture.notes(other).all() == all)
            // What is sealed with the older key opens: it is an edit of before, and no riddle.
            let before: [RestoredCode: Notice.Kind] = [.same: .recoveryCodeOutdated, .laterHere: .recoveryRemoved]
            let kinds = [before[kind], .rolledBack].compactMap(\.self)
            #expect(try await vault.notices().map(\.kind) == kinds)
            #expect(try await vault.account().recovery.set == (kind == .same))
            // What needs the server's keyring goes on.
            try await vault.rotateKeys(password: fixture.password)
            try await fixture.check(server, has: all)
            if let code {
                let device = try Device("recovered", server)
                let recovered = try await Vault.recover(
                    device.settings, userid: fixture.userid, code: code, newPassword: Password("another"))
                try await recovered.sync()
                #expect(try await fixture.notes(recovered).all() == all)
            } else {
                _ = try await vault.makeRecoveryCode(password: fixture.password)
            }
        }
    }

    @Test func `new keys go to the recovery key of one's own keyring, whatever recovery the server has`() async throws {
        try await LiveServer.with { server in
            let (phone, vault) = try await fixture.signUp(server)
            let code = try await vault.makeRecoveryCode(password: fixture.password)
            let id = try await fixture.notes(vault).put(Note(text: "kept"))
            // A recovery keyring of somebody else, in the place of the person's.
            let (token, keyring) = try await vault.secrets()
            let account = try await vault.account().accountId
            let stretched = await code.stretched(by: .forTests)
            let proof = try await phone.settings.stretching.stretch(
                fixture.password, userid: fixture.userid, iterations: 10_000)
            let foreign = try await RecoveryKeys.new(
                for: RecoveryCode.random().stretched(by: StretchingRule(saltPrefix: "x")), account: account)
            let own = try #require(try await server.api().getKeyring(token))
            _ = try await server.api().setRecovery(
                recoveryKey: stretched.passwordKey, keyring: foreign.sealedKeyring(keyring, account: account),
                accountKeyring: (own.keyring.bytes, own.revision), currentPasswordKey: proof.passwordKey, token)
            try await vault.rotateKeys(password: fixture.password)
            let device = try Device("recovered", server)
            let recovered = try await Vault.recover(
                device.settings, userid: fixture.userid, code: code, newPassword: Password("another"))
            try await recovered.sync()
            #expect(try await fixture.notes(recovered).all() == [id: Note(text: "kept")])
        }
    }
}
