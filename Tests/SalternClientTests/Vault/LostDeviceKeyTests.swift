import Cryptography
import Foundation
import SalternTesting
import Synchronization
import Testing

@testable import SalternClient

/// A store whose device key is lost, or does not open a part of it: the password opens it, with every edit.
@Suite struct LostDeviceKeyTests {
    private static let userid = "ada@example.org"
    private static let password = Password("correct horse battery staple")

    /// What is lost or damaged.
    enum Loss: CaseIterable {
        case missingKey, shortKey, otherKey
        case token, deviceToken, openKeys, unconfirmedPassword, everySecret
    }

    /// How the store is opened again.
    enum Way: CaseIterable {
        case unlock, logInAgain, logIn
    }

    private func lose(_ loss: Loss, _ device: Device) throws {
        let file = device.folder.path + "/device.key"
        var facts: [StoreFact] = []
        switch loss {
        case .missingKey: try FileManager.default.removeItem(atPath: file)
        case .shortKey: #expect(truncate(file, 7) == 0)
        case .otherKey: try FileKeyStore(path: file).save(SecureRandom.secureBytes(32))
        case .token: facts = [.token]
        case .deviceToken: facts = [.deviceToken]
        case .openKeys: facts = [.openKeys]
        case .unconfirmedPassword: facts = [.unconfirmedPassword]
        case .everySecret: facts = [.token, .deviceToken, .openKeys, .openKeyring, .unconfirmedPassword]
        }
        if facts.isEmpty { return }
        let store = try Store(path: device.folder.path + "/store.sqlite")
        for fact in facts {
            // The last two are there after a lost reply, and in the store of an earlier version.
            #expect(try [.openKeyring, .unconfirmedPassword].contains(fact) || store.fact(fact) != nil)
            try store.set(fact, SecureRandom.bytes(80))
        }
        store.close()
    }

    @Test(arguments: Loss.allCases, Way.allCases)
    func `the password opens what the device key does not`(_ loss: Loss, _ way: Way) async throws {
        try await LiveServer.with { server in
            let device = try Device("phone", server)
            var vault: Vault? = try await Vault.signUp(device.settings, userid: Self.userid, password: Self.password)
            let synced = try #require(try await vault?.collection("notes", of: Note.self).put(Note(text: "synced")))
            try await vault?.sync()
            let unsent = try #require(try await vault?.collection("notes", of: Note.self).put(Note(text: "unsent")))
            vault = nil
            try lose(loss, device)

            if way == .logIn {
                vault = try await Vault.logIn(device.settings, userid: Self.userid, password: Self.password)
            } else {
                vault = try await Vault.resume(device.settings)
                let isLocked = await vault?.isOpen == false
                #expect(isLocked == ![.token, .deviceToken, .unconfirmedPassword].contains(loss))
                if isLocked {
                    await #expect { try await vault?.item(unsent) } throws: {
                        if case VaultError.locked = $0 { true } else { false }
                    }
                }
                if way == .unlock, isLocked { try await vault?.unlock(Self.password) }
            }
            let opened = try #require(vault)
            let notes = opened.collection("notes", of: Note.self)
            if way != .logInAgain {
                #expect(try await notes.all() == [synced: Note(text: "synced"), unsent: Note(text: "unsent")])
            }
            let keepsSession =
                way == .logIn || [.deviceToken, .openKeys, .unconfirmedPassword].contains(loss)
            do { try await opened.sync() } catch VaultError.sessionEnded {
                #expect(!keepsSession)
            } catch VaultError.locked {
                #expect(way == .logInAgain)
            }
            if way != .logIn { try await opened.logInAgain(password: Self.password) }
            try await opened.sync()
            #expect(try await opened.notices().isEmpty)
            let other = try await Vault.logIn(
                Device("laptop", server).settings, userid: Self.userid, password: Self.password)
            try await other.sync()
            #expect(
                try await other.collection("notes", of: Note.self).all()
                    == [synced: Note(text: "synced"), unsent: Note(text: "unsent")])
            // It stays open.
            vault = nil
        }
    }

    @Test func `a locked store without its key is unlocked by the password, and by no other one`() async throws {
        try await LiveServer.with { server in
            let device = try Device("phone", server)
            var vault: Vault? = try await Vault.signUp(device.settings, userid: Self.userid, password: Self.password)
            let id = try #require(try await vault?.collection("notes", of: Note.self).put(Note(text: "unsent")))
            try await vault?.lock()
            vault = nil
            try lose(.missingKey, device)
            vault = try await Vault.resume(device.settings)
            await #expect { try await vault?.unlock(Password("another")) } throws: {
                if case VaultError.wrongCredentials = $0 { true } else { false }
            }
            try await vault?.unlock(Self.password)
            #expect(try await vault?.collection("notes", of: Note.self)[id] == Note(text: "unsent"))
            try await vault?.lock()
            try await vault?.unlock(Self.password)
            #expect(try await vault?.signOut(discardingUnsentEdits: true) == .left)
        }
    }

    @Test func `a key that comes back opens the store, and nothing has taken its place meanwhile`() async throws {
        try await LiveServer.with { server in
            let device = try Device("phone", server)
            var vault: Vault? = try await Vault.signUp(device.settings, userid: Self.userid, password: Self.password)
            let id = try #require(try await vault?.collection("notes", of: Note.self).put(Note(text: "unsent")))
            vault = nil
            let file = device.folder.path + "/device.key"
            let aside = try TemporaryDirectory()
            try FileManager.default.moveItem(atPath: file, toPath: aside.path + "/key")
            vault = try await Vault.resume(device.settings)
            #expect(await vault?.isOpen == false)
            #expect(!FileManager.default.fileExists(atPath: file))
            vault = nil
            try FileManager.default.copyItem(atPath: aside.path + "/key", toPath: file)
            vault = try await Vault.resume(device.settings)
            #expect(try await vault?.collection("notes", of: Note.self)[id] == Note(text: "unsent"))
            try await vault?.sync()
            vault = nil
            // Lost again, and back after the password has opened the store under a new key.
            try FileManager.default.removeItem(atPath: file)
            vault = try await Vault.resume(device.settings)
            try await vault?.unlock(Self.password)
            vault = nil
            try FileManager.default.removeItem(atPath: file)
            try FileManager.default.copyItem(atPath: aside.path + "/key", toPath: file)
            vault = try await Vault.resume(device.settings)
            #expect(await vault?.isOpen == false)
            try await vault?.unlock(Self.password)
            try await vault?.logInAgain(password: Self.password)
            try await vault?.sync()
            #expect(try await vault?.collection("notes", of: Note.self)[id] == Note(text: "unsent"))
        }
    }

    @Test func `a locked vault whose key is missing makes no key, and goes on with the one that comes back`()
        async throws
    {
        try await LiveServer.with { server in
            let device = try Device("phone", server)
            var vault: Vault? = try await Vault.signUp(device.settings, userid: Self.userid, password: Self.password)
            let id = try #require(try await vault?.collection("notes", of: Note.self).put(Note(text: "unsent")))
            vault = nil
            let file = device.folder.path + "/device.key"
            let aside = try TemporaryDirectory()
            try FileManager.default.moveItem(atPath: file, toPath: aside.path + "/key")
            vault = try await Vault.resume(device.settings)
            try await vault?.lock()
            #expect(!FileManager.default.fileExists(atPath: file))
            vault = nil
            try FileManager.default.moveItem(atPath: aside.path + "/key", toPath: file)
            vault = try await Vault.resume(device.settings)
            #expect(await vault?.isOpen == false)
            try await vault?.unlock(Self.password)
            // The session was not lost.
            try await vault?.sync()
            #expect(try await vault?.collection("notes", of: Note.self)[id] == Note(text: "unsent"))
        }
    }

    @Test func `a key for which there is no account is left alone`() async throws {
        try await LiveServer.with { server in
            let device = try Device("phone", server)
            var vault: Vault? = try await Vault.signUp(device.settings, userid: Self.userid, password: Self.password)
            let id = try #require(try await vault?.collection("notes", of: Note.self).put(Note(text: "unsent")))
            vault = nil
            // An app that looks in the wrong folder, and one whose folder was restored without its store.
            let empty = try TemporaryDirectory()
            var settings = device.settings
            settings.folder = URL(filePath: empty.path)
            #expect(try await Vault.resume(settings) == nil)
            vault = try await Vault.resume(device.settings)
            #expect(try await vault?.collection("notes", of: Note.self)[id] == Note(text: "unsent"))
        }
    }

    @Test func `a key that comes back completes the change that was interrupted before it was lost`() async throws {
        try await LiveServer.with { server in
            let device = try Device("phone", server)
            let keys = KeysInMemory()
            var settings = device.settings
            settings.deviceKey = keys
            var vault: Vault? = try await Vault.signUp(settings, userid: Self.userid, password: Self.password)
            keys.setSaving(false)
            try await vault?.logInAgain(password: Self.password)
            vault = nil
            let key = try #require(try keys.load())
            keys.setSaving(true)
            try keys.save(SecureRandom.secureBytes(32))
            vault = try await Vault.resume(settings)
            #expect(await vault?.isOpen == false)
            vault = nil
            try keys.save(key)
            vault = try await Vault.resume(settings)
            #expect(await vault?.isOpen == true)
            try await vault?.sync()
        }
    }

    @Test func `with a printed code a store without its key goes on under a new password`() async throws {
        try await LiveServer.with { server in
            let device = try Device("phone", server)
            var vault: Vault? = try await Vault.signUp(device.settings, userid: Self.userid, password: Self.password)
            let code = try #require(try await vault?.makeRecoveryCode(password: Self.password))
            let id = try #require(try await vault?.collection("notes", of: Note.self).put(Note(text: "unsent")))
            vault = nil
            try lose(.missingKey, device)
            let another = Password("tr0ub4dor&3")
            vault = try await Vault.recover(device.settings, userid: Self.userid, code: code, newPassword: another)
            #expect(try await vault?.sync().sent == 1)
            let other = try await Vault.logIn(Device("laptop", server).settings, userid: Self.userid, password: another)
            try await other.sync()
            #expect(try await other.collection("notes", of: Note.self)[id] == Note(text: "unsent"))
        }
    }

    /// - Parameter isUnlocked: Whether the vault is unlocked before it logs in again.
    @Test(arguments: [true, false])
    func `after a rotation by another device a store without its key goes on with every edit`(
        isUnlocked: Bool
    ) async throws {
        try await LiveServer.with { server in
            let device = try Device("phone", server)
            var vault: Vault? = try await Vault.signUp(device.settings, userid: Self.userid, password: Self.password)
            let id = try #require(try await vault?.collection("notes", of: Note.self).put(Note(text: "synced")))
            try await vault?.sync()
            try await vault?.collection("notes", of: Note.self).put(Note(text: "unsent"), id)
            vault = nil
            try lose(.missingKey, device)
            let other = try await Vault.logIn(
                Device("laptop", server).settings, userid: Self.userid, password: Self.password)
            try await other.sync()
            try await other.rotateKeys(password: Self.password)
            vault = try await Vault.resume(device.settings)
            if isUnlocked { try await vault?.unlock(Self.password) }
            try await vault?.logInAgain(password: Self.password)
            #expect(try await vault?.sync().sent == 1)
            #expect(try await vault?.notices().isEmpty == true)
            try await other.sync()
            #expect(try await other.collection("notes", of: Note.self).all() == [id: Note(text: "unsent")])
        }
    }

    /// - Parameter hasKey: Whether the device key is copied, too.
    @Test(arguments: [true, false])
    func `a store that was copied to another device goes on on both, and no edit is sent twice`(
        hasKey: Bool
    ) async throws {
        try await LiveServer.with { server in
            let phone = try Device("phone", server)
            var vault: Vault? = try await Vault.signUp(phone.settings, userid: Self.userid, password: Self.password)
            let first = try #require(try await vault?.collection("notes", of: Note.self).put(Note(text: "first")))
            try await vault?.sync()
            try await vault?.collection("notes", of: Note.self).put(Note(text: "changed"), first)
            let unsent = try #require(try await vault?.collection("notes", of: Note.self).put(Note(text: "unsent")))
            vault = nil
            let tablet = try Device("tablet", server)
            for name in try FileManager.default.contentsOfDirectory(atPath: phone.folder.path)
            where hasKey || name != "device.key" {
                try FileManager.default.copyItem(
                    atPath: phone.folder.path + "/" + name, toPath: tablet.folder.path + "/" + name)
            }
            let one = try #require(try await Vault.resume(phone.settings))
            let two = try #require(try await Vault.resume(tablet.settings))
            #expect(await two.isOpen == hasKey)
            if !hasKey {
                try await two.unlock(Self.password)
                try await two.logInAgain(password: Self.password)
            }
            let own = try await one.collection("notes", of: Note.self).put(Note(text: "of the phone"))
            let other = try await two.collection("notes", of: Note.self).put(Note(text: "of the tablet"))
            for _ in 0..<2 {
                for vault in [one, two] {
                    do { try await vault.sync() } catch VaultError.sessionEnded {
                        try await vault.logInAgain(password: Self.password)
                        try await vault.sync()
                    }
                }
            }
            let expected = [
                first: Note(text: "changed"), unsent: Note(text: "unsent"), own: Note(text: "of the phone"),
                other: Note(text: "of the tablet"),
            ]
            for vault in [one, two] {
                #expect(try await vault.collection("notes", of: Note.self).all() == expected)
                #expect(try await vault.notices().isEmpty)
                #expect(try await vault.unsentCount() == 0)
                // What both had written is one version on the server.
                #expect(try await vault.sync().sent == 0)
            }
            try await one.collection("notes", of: Note.self).put(Note(text: "again"), unsent)
            try await one.sync()
            try await two.sync()
            #expect(try await two.collection("notes", of: Note.self)[unsent] == Note(text: "again"))
            #expect(try await two.notices().isEmpty)
        }
    }
}

/// A key store that can refuse to save.
private final class KeysInMemory: DeviceKeyStore {
    private let key = Mutex<SecureBytes?>(nil)
    private let isSaving = Mutex(true)

    func setSaving(_ isSaving: Bool) { self.isSaving.withLock { $0 = isSaving } }

    func load() throws -> SecureBytes? { key.withLock { $0 } }

    func save(_ key: SecureBytes) throws {
        guard isSaving.withLock({ $0 }) else { throw StoreError.unusable }
        self.key.withLock { $0 = key }
    }

    func remove() throws { key.withLock { $0 = nil } }
}
