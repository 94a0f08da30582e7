import Cryptography
import Foundation
import SalternTesting
import Synchronization
import Testing

@testable import SalternClient

/// What was dropped cannot be read from the store's files any more, with the device key beside them.
@Suite struct DroppedSecretsTests {
    private static let userid = "ada@example.org"
    private static let password = Password("correct horse battery staple")
    private static let another = Password("tr0ub4dor&3")

    private struct Fixture {
        let server: LiveServer
        let device: Device
        let vault: Vault
        let before: KnownSecrets

        func files() throws -> StoreFiles {
            try StoreFiles(folder: device.folder.path, key: device.settings.deviceKey.load())
        }
    }

    private func withVault(_ body: (Fixture) async throws -> Void) async throws {
        try await LiveServer.with { server in
            let device = try Device("phone", server)
            let vault = try await Vault.signUp(device.settings, userid: Self.userid, password: Self.password)
            try await vault.collection("notes", of: Note.self).put(Note(text: "salt"))
            try await vault.sync()
            let fixture = Fixture(server: server, device: device, vault: vault, before: try await vault.allSecrets())
            let files = try fixture.files()
            let before = fixture.before
            for secret in [before.token, before.unlockKey] + before.dataKeys { #expect(files.reveal(secret)) }
            try await body(fixture)
        }
    }

    @Test func `after a lock the files do not reveal the keys`() async throws {
        try await withVault { fixture in
            try await fixture.vault.lock()
            try expectLocked(fixture.files(), fixture.before)
            try await fixture.vault.unlock(Self.password)
            #expect(try fixture.files().reveal(fixture.before.unlockKey))
            try await fixture.vault.sync()
            try await fixture.vault.lock()
            try expectLocked(fixture.files(), fixture.before)
            #expect(try fixture.files().reveal(fixture.before.token), "the session goes on")
        }
    }

    private func expectLocked(_ files: StoreFiles, _ before: KnownSecrets, _ comment: Comment? = nil) {
        for secret in [before.unlockKey] + before.dataKeys { #expect(!files.reveal(secret), comment) }
    }

    @Test func `a change of the password drops the previous key, and the new one is dropped by a lock`() async throws {
        try await withVault { fixture in
            try await fixture.vault.changePassword(from: Self.password, to: Self.another)
            #expect(try !fixture.files().reveal(fixture.before.unlockKey))
            let after = try await fixture.vault.allSecrets()
            try await fixture.vault.lock()
            try expectLocked(fixture.files(), fixture.before)
            try expectLocked(fixture.files(), after)
        }
    }

    @Test func `a rotation drops the previous data key, here and on other devices`() async throws {
        try await withVault { fixture in
            let laptop = try Device("laptop", fixture.server)
            let other = try await Vault.logIn(laptop.settings, userid: Self.userid, password: Self.password)
            try await other.sync()
            try await fixture.vault.rotateKeys(password: Self.password)
            for key in fixture.before.dataKeys { #expect(try !fixture.files().reveal(key)) }
            try await other.logInAgain(password: Self.password)
            let files = try StoreFiles(folder: laptop.folder.path, key: laptop.settings.deviceKey.load())
            for key in fixture.before.dataKeys { #expect(!files.reveal(key)) }
        }
    }

    @Test func `a new session and other sessions' end drop the previous tokens`() async throws {
        try await withVault { fixture in
            try await fixture.vault.logInAgain(password: Self.password)
            #expect(try !fixture.files().reveal(fixture.before.token))
            let between = try await fixture.vault.allSecrets()
            try await fixture.vault.endOtherSessions()
            let after = try await fixture.vault.allSecrets()
            if let old = between.deviceToken, old != after.deviceToken { #expect(try !fixture.files().reveal(old)) }
        }
    }

    @Test func `a recovery drops the keys and the session of before`() async throws {
        try await LiveServer.with { server in
            let device = try Device("phone", server)
            var vault: Vault? = try await Vault.signUp(
                device.settings, userid: Self.userid, password: Self.password)
            let code = try #require(try await vault?.makeRecoveryCode(password: Self.password))
            let before = try #require(try await vault?.allSecrets())
            vault = nil
            let recovered = try await Vault.recover(
                device.settings, userid: Self.userid, code: code, newPassword: Self.another)
            let files = try StoreFiles(folder: device.folder.path, key: device.settings.deviceKey.load())
            for secret in [before.token, before.unlockKey] { #expect(!files.reveal(secret)) }
            try await recovered.sync()
        }
    }

    @Test func `after a sign-out the files reveal nothing`() async throws {
        try await withVault { fixture in
            try await fixture.vault.signOut()
            let files = try StoreFiles(folder: fixture.device.folder.path, key: fixture.before.deviceKey)
            let before = fixture.before
            for secret in [before.token, before.unlockKey] + before.dataKeys { #expect(!files.reveal(secret)) }
            #expect(try fixture.device.settings.deviceKey.load() == nil)
        }
    }

    @Test func `the password key is not stored`() async throws {
        try await withVault { fixture in
            let stretched = try await fixture.device.settings.stretching.stretch(
                Self.password, userid: Self.userid, iterations: 10_000)
            #expect(try !fixture.files().reveal(stretched.passwordKey.bytes))
            try await fixture.vault.changePassword(from: Self.password, to: Self.another)
            let next = try await fixture.device.settings.stretching.stretch(
                Self.another, userid: Self.userid, iterations: 10_000)
            for password in [stretched, next] { #expect(try !fixture.files().reveal(password.passwordKey.bytes)) }
        }
    }

    /// At which point the key store's part of a change is interrupted.
    enum Interruption: CaseIterable {
        case beforeTheKey, afterTheKey
    }

    @Test(arguments: Interruption.allCases)
    func `what was interrupted at the key store is completed by the next opening`(_ kind: Interruption) async throws {
        try await LiveServer.with { server in
            let device = try Device("phone", server)
            let keys = FailingKeyStore(inner: device.settings.deviceKey, kind)
            var settings = device.settings
            settings.deviceKey = keys
            for ending in ["lock", "password", "sign-out"] {
                let userid = ending + "@example.org"
                var vault: Vault? = try await Vault.signUp(settings, userid: userid, password: Self.password)
                let before = try #require(try await vault?.allSecrets())
                keys.setFailing(true)
                switch ending {
                case "lock" where kind == .beforeTheKey:
                    await #expect(throws: VaultError.self) { try await vault?.lock() }
                // The previous key is overwritten; that is all that it takes.
                case "lock": try await vault?.lock()
                case "password": try await vault?.changePassword(from: Self.password, to: Self.another)
                default: await #expect(throws: VaultError.self) { try await vault?.signOut() }
                }
                vault = nil
                keys.setFailing(false)
                vault = try await Vault.resume(settings)
                let files = try StoreFiles(folder: device.folder.path, key: keys.load())
                #expect(!files.reveal(before.unlockKey), "\(ending)")
                if ending == "sign-out" {
                    #expect(!files.reveal(before.token))
                    #expect(try keys.load() == nil)
                } else {
                    if ending == "lock" { try await vault?.unlock(Self.password) }
                    try await vault?.sync()
                    try await vault?.signOut()
                }
                vault = nil
            }
        }
    }

    @Test(arguments: MortalDevice.ends)
    func `a process that is killed while it locks leaves the vault open or the files without keys`(
        _ end: WriteFault
    ) async throws {
        let phone = try await MortalDevice("phone", MemoryServer(), isFirst: true)
        var locked = 0
        for call in 1..<500 {
            if try await !phone.vault().isOpen { try await phone.vault().unlock(Password("password")) }
            let before = try await phone.vault().allSecrets()
            _ = try await phone.attempt(end, at: call) { try await $0.vault().lock() }
            let hasFailed = phone.life.hasFailed
            try await phone.startAgain()
            if try await phone.vault().isKeptOpen() {
                #expect(hasFailed, "call \(call)")
            } else {
                locked += 1
                try expectLocked(phone.storeFiles(), before, "call \(call)")
            }
            if !hasFailed { break }
        }
        #expect(locked > 1)
    }
}

/// A key store that fails before or after it does what it is asked for.
private final class FailingKeyStore: DeviceKeyStore {
    private let inner: any DeviceKeyStore
    private let kind: DroppedSecretsTests.Interruption
    private let isFailing = Mutex(false)

    init(inner: any DeviceKeyStore, _ kind: DroppedSecretsTests.Interruption) {
        self.inner = inner
        self.kind = kind
    }

    func setFailing(_ isFailing: Bool) { self.isFailing.withLock { $0 = isFailing } }

    func load() throws -> SecureBytes? { try inner.load() }

    func save(_ key: SecureBytes) throws { try fail { try inner.save(key) } }

    func remove() throws { try fail { try inner.remove() } }

    private func fail(_ body: () throws -> Void) throws {
        let isFailing = isFailing.withLock { $0 }
        if isFailing, kind == .beforeTheKey { throw StoreError.unusable }
        try body()
        if isFailing { throw StoreError.unusable }
    }
}
