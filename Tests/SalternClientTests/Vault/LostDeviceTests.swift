import Cryptography
import Foundation
import SalternTesting
import Testing

@testable import SalternClient

/// A device that was stolen while its vault was open, and what its store is worth once it was shut out.
@Suite struct LostDeviceTests {
    private static let userid = "ada@example.org"
    private static let password = Password("correct horse battery staple")
    private static let another = Password("tr0ub4dor&3")

    @Test(arguments: [true, false])
    func `the store of a lost device opens nothing that comes later`(hasCode: Bool) async throws {
        try await LiveServer.with { server in
            let phone = try Device("phone", server)
            let laptop = try Device("laptop", server)
            let vault = try await Vault.signUp(laptop.settings, userid: Self.userid, password: Self.password)
            let old = hasCode ? try await vault.makeRecoveryCode(password: Self.password) : nil
            let stolen = try await Vault.logIn(phone.settings, userid: Self.userid, password: Self.password)
            let thief = try await stolen.allSecrets()
            let kept = try await stolen.openPassword()
            let files = try StoreFiles(folder: phone.folder.path, key: phone.settings.deviceKey.load())

            let code = try await vault.shutOutLostDevice(password: Self.password, newPassword: Self.another)
            #expect((code != nil) == hasCode)
            await #expect { try await stolen.sync() } throws: {
                if case VaultError.sessionEnded = $0 { true } else { false }
            }
            // What logs in is not in the store.
            let stretched = try await phone.settings.stretching.stretch(
                Self.password, userid: Self.userid, iterations: 10_000)
            #expect(!files.reveal(stretched.passwordKey.bytes))
            // Neither the keyring nor what is sealed from now on opens.
            let (token, keyring) = try await vault.secrets()
            let sealed = try #require(try await server.api().getKeyring(token)).keyring.bytes
            #expect(throws: Keyring.Failure.notAuthentic) { try Keyring(sealed: sealed, openedBy: kept) }
            #expect(!thief.dataKeys.contains(keyring.currentKey.bytes))
            if let code, let old {
                #expect(code.text != old.text)
                let device = try Device("tablet", server)
                await #expect(throws: VaultError.self) {
                    try await Vault.recover(
                        device.settings, userid: Self.userid, code: old, newPassword: Self.password)
                }
            }
            // It goes on where it was interrupted.
            _ = try await vault.shutOutLostDevice(password: Self.another, newPassword: Self.password)
            try await vault.sync()
        }
    }

    @Test func `a wrong password changes nothing`() async throws {
        try await LiveServer.with { server in
            let device = try Device("laptop", server)
            let vault = try await Vault.signUp(device.settings, userid: Self.userid, password: Self.password)
            let key = try await vault.secrets().keyring.currentKey
            await #expect {
                try await vault.shutOutLostDevice(password: Self.another, newPassword: Self.another)
            } throws: { if case VaultError.wrongCredentials = $0 { true } else { false } }
            #expect(try await vault.secrets().keyring.currentKey == key)
            try await vault.lock()
            try await vault.unlock(Self.password)
        }
    }
}

extension Vault {
    /// What an open vault stores of the password.
    fileprivate func openPassword() throws -> KnownPassword {
        let secrets = try #require(try secret(.openKeys))
        var reader = SecretReader(secrets)
        return try #require(reader.secret(KnownPassword.byteCount).flatMap(KnownPassword.init(encoded:)))
    }
}
