import Cryptography
import Foundation
import SalternTesting
import Testing

@testable import SalternClient

/// A store that is on two devices, because its folder was copied or a backup was restored on a new device.
@Suite struct CopiedStoreTests {
    private static let userid = "ada@example.org"
    private static let password = Password("password")

    /// What becomes of the device key when the store is copied.
    enum KeyCopy: CaseIterable {
        case copied, lost
    }

    /// Two devices that go on with one store.
    private struct Pair {
        let phone: Device
        let tablet: Device
        var vaults: [Vault] = []

        /// - Parameter vault: The phone's, which has ended.
        init(_ phone: Device, _ server: LiveServer, _ key: KeyCopy) async throws {
            self.phone = phone
            tablet = try Device("tablet", server)
            for name in try FileManager.default.contentsOfDirectory(atPath: phone.folder.path)
            where key == .copied || name != "device.key" {
                try FileManager.default.copyItem(
                    atPath: phone.folder.path + "/" + name, toPath: tablet.folder.path + "/" + name)
            }
            for device in [phone, tablet] {
                let vault = try #require(try await Vault.resume(device.settings))
                if await vault.isLocked {
                    try await vault.unlock(CopiedStoreTests.password)
                    try await vault.logInAgain(password: CopiedStoreTests.password)
                }
                vaults.append(vault)
            }
        }
    }

    @Test(arguments: KeyCopy.allCases, [true, false])
    func `an edit in both copies that conflicts with another one is kept once`(
        _ key: KeyCopy, isTabletFirst: Bool
    ) async throws {
        try await LiveServer.with { server in
            let phone = try Device("phone", server)
            var vault: Vault? = try await Vault.signUp(phone.settings, userid: Self.userid, password: Self.password)
            let id = try #require(try await vault?.collection("notes", of: Note.self).put(Note(text: "first")))
            try await vault?.sync()
            let laptop = try await Vault.logIn(
                Device("laptop", server).settings, userid: Self.userid, password: Self.password)
            try await laptop.sync()
            try await laptop.collection("notes", of: Note.self).put(Note(text: "of the laptop"), id)
            try await laptop.sync()
            try await vault?.collection("notes", of: Note.self).put(Note(text: "of the phone"), id)
            vault = nil
            let pair = try await Pair(phone, server, key)
            for _ in 0..<2 {
                let order = isTabletFirst ? Array(pair.vaults.reversed()) : pair.vaults
                for vault in order + [laptop] { try await vault.sync() }
            }
            for vault in pair.vaults + [laptop] {
                let notes = try await vault.collection("notes", of: Note.self).all()
                #expect(notes[id] == Note(text: "of the laptop"))
                #expect(notes.values.map(\.text).sorted() == ["of the laptop", "of the phone"])
                #expect(try await vault.unsentCount() == 0)
            }
            // What is made of the copy, or its deletion, is not undone by the other device.
            let copy = try #require(try await laptop.ids("notes").first { $0 != id })
            try await laptop.delete(copy)
            for _ in 0..<2 { for vault in [laptop] + pair.vaults { try await vault.sync() } }
            for vault in pair.vaults { #expect(try await vault.ids("notes") == [id]) }
        }
    }

    @Test(arguments: KeyCopy.allCases)
    func `a copy that has not synced since makes no second copy of an edit that is settled`(
        _ key: KeyCopy
    ) async throws {
        try await LiveServer.with { server in
            let phone = try Device("phone", server)
            var vault: Vault? = try await Vault.signUp(phone.settings, userid: Self.userid, password: Self.password)
            let notes = { (vault: Vault) in vault.collection("notes", of: Note.self) }
            let id = try await notes(#require(vault)).put(Note(text: "first"))
            try await vault?.sync()
            let laptop = try await Vault.logIn(
                Device("laptop", server).settings, userid: Self.userid, password: Self.password)
            try await laptop.sync()
            try await notes(laptop).put(Note(text: "of the laptop"), id)
            try await laptop.sync()
            try await notes(#require(vault)).put(Note(text: "of the phone"), id)
            vault = nil
            let pair = try await Pair(phone, server, key)
            try await pair.vaults[0].sync()
            let copy = try #require(try await pair.vaults[0].ids("notes").first { $0 != id })
            try await notes(pair.vaults[0]).put(Note(text: "of the phone, changed"), copy)
            try await pair.vaults[0].sync()
            // The tablet meets the conflict only now.
            for _ in 0..<2 { for vault in pair.vaults.reversed() { try await vault.sync() } }
            for vault in pair.vaults {
                #expect(
                    try await notes(vault).all()
                        == [id: Note(text: "of the laptop"), copy: Note(text: "of the phone, changed")])
            }
        }
    }

    @Test(arguments: KeyCopy.allCases)
    func `what is made of an unsent edit in a copy goes on from it after the other device has sent it`(
        _ key: KeyCopy
    ) async throws {
        try await LiveServer.with { server in
            let phone = try Device("phone", server)
            var vault: Vault? = try await Vault.signUp(phone.settings, userid: Self.userid, password: Self.password)
            let notes = { (vault: Vault) in vault.collection("notes", of: Note.self) }
            let known = try await notes(#require(vault)).put(Note(text: "known"))
            try await vault?.sync()
            try await notes(#require(vault)).put(Note(text: "known, unsent"), known)
            let new = try await notes(#require(vault)).put(Note(text: "new, unsent"))
            vault = nil
            let pair = try await Pair(phone, server, key)
            for (id, text) in [(known, "known, again"), (new, "new, again")] {
                try await notes(pair.vaults[1]).put(Note(text: text), id)
            }
            for _ in 0..<2 { for vault in pair.vaults { try await vault.sync() } }
            for vault in pair.vaults {
                #expect(
                    try await notes(vault).all() == [known: Note(text: "known, again"), new: Note(text: "new, again")])
                #expect(try await vault.notices().isEmpty)
            }
        }
    }

    @Test(arguments: KeyCopy.allCases)
    func `no copy takes back the chunks with which the other device goes on`(_ key: KeyCopy) async throws {
        try await LiveServer.with { server in
            let phone = try Device("phone", server)
            let size = SalternClient.Attachment.chunkByteCount
            let content = SecureBytes(copying: (0..<(3 * size)).map { UInt8(truncatingIfNeeded: $0 / size + 1) })
            let (attachment, item) = (ItemID.random(), ItemID.random())
            var vault: Vault? = try await Vault.signUp(phone.settings, userid: Self.userid, password: Self.password)
            let first = try #require(vault)
            let task = Task {
                try await first.attach(AttachmentSource(content), id: attachment) { progress in
                    if progress.byteCount == 2 * Int64(size) { withUnsafeCurrentTask { $0?.cancel() } }
                }
            }
            await #expect(throws: VaultError.self) { try await task.value }
            vault = nil
            await first.closeStore()
            let pair = try await Pair(phone, server, key)
            try await pair.vaults[1].abandonAttachment(attachment)
            try await pair.vaults[1].sync()
            let made = try await pair.vaults[0].attach(AttachmentSource(content), id: attachment)
            try await pair.vaults[0].put(PlainItem(body: made.body()), item, in: "photos")
            for vault in pair.vaults { try await vault.sync() }
            let there = try #require(try await pair.vaults[1].item(item).flatMap { SalternClient.Attachment($0.body) })
            #expect(try await pair.vaults[1].content(of: there) == content)
        }
    }

    @Test(arguments: KeyCopy.allCases)
    func `each copy has a line of its own in a folder that both use in turns`(_ key: KeyCopy) async throws {
        try await LiveServer.with { server in
            let phone = try Device("phone", server)
            let folder = try TemporaryDirectory(.memory)
            let write = { (text: String, path: String) in
                try Data(text.utf8).write(to: URL(filePath: folder.path + "/" + path))
            }
            let marker = {
                try #require(
                    FolderMarker(Array(Data(contentsOf: URL(filePath: folder.path + "/.saltern/folder")))))
            }
            var vault: Vault? = try await Vault.signUp(phone.settings, userid: Self.userid, password: Self.password)
            try write("one", "a")
            try await FolderDevice.syncs(#require(vault), folder.path, "phone").0.run()
            let before = try marker()
            vault = nil
            let pair = try await Pair(phone, server, key)
            // Each knows the folder, and nothing in it is taken for new.
            for (index, vault) in pair.vaults.reversed().enumerated() {
                let sync = FolderDevice.syncs(vault, folder.path, "any").0
                #expect(try await sync.run().conflicts.isEmpty)
                try write("changed \(index)", "a")
                let report = try await sync.run()
                #expect(report.uploaded.map(\.text) == ["a"] && report.conflicts.isEmpty && report.warnings.isEmpty)
            }
            let after = try marker()
            #expect(after.id == before.id && after.lines.count == 2)
            var names: Set<ItemID> = []
            for vault in pair.vaults { names.insert(try await vault.storeID()) }
            #expect(names.count == 2 && names == Set(after.lines.keys))
            // A folder as it was before the tablet's round is an older copy for the tablet, though the phone has gone on in it.
            let old = FolderMarker(id: before.id, collection: "files", lines: before.lines.mapValues { $0 + 100 })
            try Data(old.text.utf8).write(to: URL(filePath: folder.path + "/.saltern/folder"))
            await #expect {
                try await FolderDevice.syncs(pair.vaults[1], folder.path, "tablet").0.run()
            } throws: { if case FolderError.outdated = $0 { true } else { false } }
        }
    }
}

extension Vault {
    fileprivate func closeStore() { store.close() }
}
