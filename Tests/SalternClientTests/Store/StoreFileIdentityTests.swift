import Foundation
import SalternTesting
import Testing

@testable import SalternClient

/// A store whose file is a copy of another one.
@Suite struct StoreFileIdentityTests {
    private static let password = Password("password")

    /// False on file systems that store no time of birth.
    private static let hasBirth: Bool = {
        guard let folder = try? TemporaryDirectory(.memory) else { return false }
        return StoreFileIdentity(path: folder.path)?.birth != nil
    }()

    @Test func `a time of birth counts where both have one`() {
        let (bare, born) = (
            StoreFileIdentity(number: 7, birth: nil), StoreFileIdentity(number: 7, birth: "1.5")
        )
        for file in [bare, born] { for known in [bare, born] { #expect(file.isSame(as: known)) } }
        #expect(!born.isSame(as: StoreFileIdentity(number: 7, birth: "1.6")))
        for birth in [nil, "1.5"] { #expect(!born.isSame(as: StoreFileIdentity(number: 8, birth: birth))) }
    }

    @Test(.enabled(if: hasBirth)) func `what is written to a file changes nothing of its identity`() throws {
        let folder = try TemporaryDirectory(.memory)
        let path = folder.path + "/file"
        try Data([1]).write(to: URL(filePath: path))
        let before = try #require(StoreFileIdentity(path: path))
        Thread.sleep(forTimeInterval: 0.02)
        let handle = try #require(FileHandle(forWritingAtPath: path))
        try handle.write(contentsOf: Data([2]))
        try handle.close()
        #expect(StoreFileIdentity(path: path) == before)
        #expect(before.birth != nil && StoreFileIdentity(path: folder.missing) == nil)
    }

    @Test(.enabled(if: hasBirth)) func `a copy with the inode number of its original gets a name of its own`()
        async throws
    {
        let server = MemoryServer()
        let (phone, tablet) = (try TemporaryDirectory(.memory), try TemporaryDirectory(.memory))
        let settings = VaultSettings.forTests(folder: phone.path, server, name: "phone")
        var vault: Vault? = try await Vault.signUp(settings, userid: "ada", password: Self.password)
        let id = try await vault?.collection("notes", of: Note.self).put(Note(text: "unsent"))
        let name = try await vault?.storeID()
        await vault?.closeStore()
        vault = nil
        let original = try #require(StoreFileIdentity(path: phone.path + "/store.sqlite"))
        let copy = try copyFolder(phone.path, to: tablet.path, original)
        do {
            // As on another file system, which has given the copy that number.
            let store = try Store(path: tablet.path + "/store.sqlite")
            #expect(try store.knownFile() == original)
            try store.setKnownFile(StoreFileIdentity(number: copy.number, birth: original.birth))
            store.close()
        }
        for (folder, isCopy) in [(tablet.path, true), (tablet.path, true), (phone.path, false)] {
            let again = try #require(
                try await Vault.resume(.forTests(folder: folder, server, name: "device")))
            #expect(try await (again.storeID() == name) == !isCopy)
            #expect(try await again.formerNames() == (isCopy ? [name] : []))
            #expect(try await again.collection("notes", of: Note.self).all() == [id: Note(text: "unsent")])
            await again.closeStore()
        }
    }

    @Test(.enabled(if: hasBirth)) func `a store of a version that stored no time of birth stays itself`() async throws {
        let folder = try TemporaryDirectory(.memory)
        let settings = VaultSettings.forTests(folder: folder.path, MemoryServer(), name: "phone")
        var vault: Vault? = try await Vault.signUp(settings, userid: "ada", password: Self.password)
        let name = try await vault?.storeID()
        try await vault?.forgetBirth()
        await vault?.closeStore()
        vault = nil
        let again = try #require(try await Vault.resume(settings))
        #expect(try await again.storeID() == name)
        #expect(try await again.knownFile() == StoreFileIdentity(path: folder.path + "/store.sqlite"))
    }

    /// Copies the files of a store. File systems count time in ticks of some milliseconds: the file is copied again
    /// until it was born in another one than the original.
    private func copyFolder(
        _ path: String, to other: String, _ original: StoreFileIdentity
    ) throws -> StoreFileIdentity {
        for name in ["store.sqlite", "device.key"] {
            for _ in 0..<1_000 {
                try? FileManager.default.removeItem(atPath: other + "/" + name)
                try FileManager.default.copyItem(atPath: path + "/" + name, toPath: other + "/" + name)
                if StoreFileIdentity(path: other + "/" + name)?.birth != original.birth { break }
                Thread.sleep(forTimeInterval: 0.002)
            }
        }
        return try #require(StoreFileIdentity(path: other + "/store.sqlite"))
    }
}

extension Vault {
    fileprivate func closeStore() { store.close() }

    fileprivate func forgetBirth() throws { try store.set(.fileBirth, nil) }

    fileprivate func knownFile() throws -> StoreFileIdentity? { try store.knownFile() }

    fileprivate func formerNames() throws -> [ItemID?] { try store.formerStoreIDs() }
}
