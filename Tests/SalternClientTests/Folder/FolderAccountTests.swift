import Cryptography
import Foundation
import SalternTesting
import Synchronization
import Testing

@testable import SalternClient

/// Folders that are to be in sync with more than one account, or beside another folder, and names that are near none.
@Suite struct FolderAccountTests {
    private func syncs(
        _ vault: Vault, _ folder: TemporaryDirectory, allowsSecond: Bool = false, allowsDeletions: Bool = false
    ) -> FolderSync {
        var settings = FolderSettings(allowsDeletions: allowsDeletions, deviceName: "phone")
        settings.allowsSecondFolder = allowsSecond
        return FolderSync(vault: vault, root: URL(filePath: folder.path), settings: settings)
    }

    @Test func `a folder of another account is refused, also by who agrees to deletions`() async throws {
        try await LiveServer.with { server in
            let ada = try await FolderDevice("phone", server, isFirst: true)
            let grace = try await FolderDevice("laptop", server, userid: "grace@example.org", isFirst: true)
            try ada.write("one", to: "a")
            try await ada.sync.run()
            let marker = try Data(contentsOf: ada.url(".saltern/folder"))
            for sync in [
                syncs(grace.vault, ada.folder), syncs(grace.vault, ada.folder, allowsDeletions: true),
                syncs(grace.vault, ada.folder, allowsSecond: true),
            ] {
                await #expect {
                    try await sync.run()
                } throws: { if case FolderError.otherAccount = $0 { true } else { false } }
                await #expect {
                    try await sync.plan()
                } throws: { if case FolderError.otherAccount = $0 { true } else { false } }
            }
            #expect(try await grace.vault.ids("files").isEmpty)
            #expect(try Data(contentsOf: ada.url(".saltern/folder")) == marker)
            #expect(try await !ada.sync.run().hasDone)
            // Another device of the account goes on with the disk.
            let laptop = try await FolderDevice("laptop", server, isFirst: false)
            #expect(try await syncs(laptop.vault, ada.folder).run().warnings.isEmpty)
        }
    }

    @Test func `of two accounts that begin with one folder at once, one is refused`() async throws {
        try await LiveServer.with { server in
            let ada = try await FolderDevice("phone", server, isFirst: true)
            let grace = try await FolderDevice("laptop", server, userid: "grace@example.org", isFirst: true)
            for number in 0..<5 {
                let folder = try TemporaryDirectory(.memory)
                try Data("one".utf8).write(to: URL(filePath: folder.path + "/a"))
                let results = await withTaskGroup(of: String.self) { group in
                    for vault in [ada.vault, grace.vault] {
                        let sync = syncs(vault, folder, allowsSecond: true)
                        group.addTask {
                            do {
                                _ = try await sync.run()
                                return "done"
                            } catch let error as FolderError {
                                return error.code
                            } catch {
                                return "\(error)"
                            }
                        }
                    }
                    return await group.reduce(into: []) { $0.append($1) }
                }
                #expect(results.sorted() == ["done", "other_account"], "\(number)")
            }
        }
    }

    @Test func `whenever another account marks a folder, one of the two is refused`() async throws {
        try await LiveServer.with { server in
            let ada = try await FolderDevice("phone", server, isFirst: true)
            var outcomes: Set<Bool> = []
            for moment in 0..<10_000 {
                let folder = try TemporaryDirectory(.memory)
                let marker = FolderMarker(id: .random(), collection: "files", account: .random())
                let calls = Mutex(0)
                let claim = Mutex(Bool?.none)
                let system = CountedFolders {
                    let isNow = calls.withLock { calls in
                        calls += 1
                        return calls == moment + 1
                    }
                    guard isNow else { return }
                    let isClaimed = (try? FolderTree(folder.path))?.marker.claim(marker) == .done
                    claim.withLock { $0 = isClaimed }
                }
                var settings = FolderSettings(deviceName: "phone")
                settings.allowsSecondFolder = true
                let root = URL(filePath: folder.path).standardizedFileURL.resolvingSymlinksInPath().path
                let sync = FolderSync(OwnedItems(ada.vault), root, settings, system)
                var isRefused = false
                do { try await sync.run() } catch FolderError.otherAccount { isRefused = true }
                // A round has fewer calls.
                guard let isClaimed = claim.withLock({ $0 }) else { break }
                #expect(isRefused == isClaimed, "\(moment)")
                let account = try #require(try FolderTree(folder.path).marker.read()?.account)
                #expect((account == marker.account) == isClaimed, "\(moment)")
                outcomes.insert(isClaimed)
            }
            #expect(outcomes == [true, false])
        }
    }

    @Test func `of two processes that mark a folder at once, one succeeds`() throws {
        let folder = try TemporaryDirectory(.memory)
        let tree = try FolderTree(folder.path)
        let (first, second) = (FolderMarker(id: .random(), account: .random()), FolderMarker(id: .random()))
        #expect(tree.marker.claim(first) == .done && tree.marker.claim(second) == .changed)
        #expect(tree.marker.read() == first)
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.path + "/.saltern")
        #expect(names.sorted() == ["folder", "parts", "trash"])
    }

    @Test func `the account in a marker is a line that earlier versions keep`() throws {
        let marker = FolderMarker(
            id: .random(), generation: 7, collection: "files", account: .random(), lines: [.random(): 9])
        #expect(FolderMarker(Array(marker.text.utf8)) == marker)
        // Behind the collection each line is an id, a space and a number.
        let lines = marker.text.split(separator: "\n")
        #expect(lines.count == 5 && lines.dropFirst(3).allSatisfy { $0.split(separator: " ").count == 2 })
        #expect(lines.contains("\(try #require(marker.account)) 0"))
    }

    @Test func `a second folder is not merged silently`() async throws {
        try await LiveServer.with { server in
            let phone = try await FolderDevice("phone", server, isFirst: true)
            try phone.write("one", to: "a")
            try await phone.sync.run()
            let other = try TemporaryDirectory(.memory)
            try Data("two".utf8).write(to: URL(filePath: other.path + "/b"))
            for isThere in [true, false] {
                if !isThere { try #require(Glibc.rename(phone.folder.path, phone.folder.path + "-") == 0) }
                await #expect {
                    try await syncs(phone.vault, other).run()
                } throws: { if case FolderError.secondFolder(phone.folder.path) = $0 { true } else { false } }
            }
            try #require(Glibc.rename(phone.folder.path + "-", phone.folder.path) == 0)
            #expect(try FileManager.default.contentsOfDirectory(atPath: other.path) == ["b"])
            #expect(try await phone.vault.ids("files").count == 1)
            // A path without a folder is mistyped.
            await #expect {
                try await FolderSync(vault: phone.vault, root: URL(filePath: other.path + "/none")).run()
            } throws: { if case FolderError.unusable = $0 { true } else { false } }
            // With another collection it has nothing to do with the first one.
            let third = try TemporaryDirectory(.memory)
            let sync = FolderSync(
                vault: phone.vault, root: URL(filePath: third.path), settings: FolderSettings(collection: "third"))
            #expect(try await !sync.run().hasDone)
            // Agreed to once, it is one of the two.
            #expect(try await syncs(phone.vault, other, allowsSecond: true).run().uploaded.map(\.text) == ["b"])
            #expect(try await phone.sync.run().downloaded.map(\.text) == ["b"])
            #expect(try await !syncs(phone.vault, other).run().hasDone)
        }
    }

    @Test func `a name with U+FFFD is one like others, and a name that is not UTF-8 is named`() async throws {
        try await LiveServer.with { server in
            let phone = try await FolderDevice("phone", server, isFirst: true)
            let laptop = try await FolderDevice("laptop", server, isFirst: false)
            for name in ["a\u{fffd}b", "\u{fffd}/c", "old"] { try phone.write(name, to: name) }
            try await phone.sync.run()
            try await laptop.sync.run()
            #expect(laptop.files() == phone.files() && laptop.files().count == 3)
            try laptop.write("changed", to: "a\u{fffd}b")
            try laptop.remove("\u{fffd}/c")
            let focus = FolderFocus(entries: [Array("a\u{fffd}b".utf8), Array("\u{fffd}/c".utf8)])
            let report = try await laptop.sync.run(within: focus)
            #expect(report.uploaded.map(\.text) == ["a\u{fffd}b"] && report.deletedThere.map(\.text) == ["\u{fffd}/c"])
            // Its bytes are not those of the name that a reader of the list would take it for.
            let name = Array((phone.folder.path + "/a").utf8) + [0xff, UInt8(ascii: "b"), 0]
            try #require(close(open(name.map { CChar(bitPattern: $0) }, O_CREAT | O_WRONLY, 0o600)) == 0)
            try phone.remove("old")
            let next = try await phone.sync.run()
            #expect(next.warnings.map(\.path) == ["a\\xffb"] && next.deletedThere.isEmpty)
            #expect(next.downloaded.map(\.text) == ["a\u{fffd}b"])
        }
    }

    @Test func `the place of a folder is stored once`() async throws {
        try await LiveServer.with { server in
            let phone = try await FolderDevice("phone", server, isFirst: true)
            try phone.write("one", to: "a")
            try await phone.sync.run()
            let id = try #require(FolderTree(phone.folder.path).marker.read()?.id)
            let records = FolderRecords(owned: OwnedItems(phone.vault))
            let before = try await phone.vault.changedRows()
            try await records.noteFolder(id, "files", at: phone.folder.path)
            _ = try await records.openFolder(at: phone.folder.path, marker: id)
            #expect(try await phone.vault.changedRows() == before)
            try await records.noteFolder(id, "files", at: phone.folder.path + "-")
            #expect(try await records.place(ofFolder: id) == phone.folder.path + "-")
            #expect(try await phone.vault.changedRows() > before)
        }
    }
}

extension Vault {
    /// Returns how many rows the connection to the store has changed.
    fileprivate func changedRows() throws -> Int64 {
        try #require(try store.database.rows("SELECT total_changes()") { $0.integer(0) }.first ?? nil)
    }
}
