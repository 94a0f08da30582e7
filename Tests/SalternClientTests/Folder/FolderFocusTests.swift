import Cryptography
import Foundation
import SalternTesting
import Testing

@testable import SalternClient

/// Rounds that examine what has changed, and nothing else.
@Suite struct FolderFocusTests {
    private func focus(_ paths: String...) -> FolderFocus {
        FolderFocus(entries: Set(paths.map { Array($0.utf8) }))
    }

    private func withPair(
        _ body: (_ phone: FolderDevice, _ sync: FolderSync, _ disk: CountedFolders, _ laptop: FolderDevice) async throws
            -> Void
    ) async throws {
        try await LiveServer.with { server in
            let phone = try await FolderDevice("phone", server, isFirst: true)
            let laptop = try await FolderDevice("laptop", server, isFirst: false)
            let disk = CountedFolders()
            let (sync, _) = FolderDevice.syncs(phone.vault, phone.folder.path, "phone", disk)
            try await body(phone, sync, disk, laptop)
        }
    }

    @Test func `what a change costs does not depend on how many files there are`() async throws {
        try await withPair { phone, sync, disk, laptop in
            var costs: [[Int]] = []
            for count in [20, 200] {
                for number in 0..<count { try phone.write("file \(count) \(number)", to: "\(number % 10)/\(number)") }
                try await sync.run()
                try await sync.run()
                let whole = disk.takeCount()
                #expect(whole > count)
                var cost: [Int] = []
                func measure(_ paths: String...) async throws -> FolderReport {
                    let report = try await sync.run(within: FolderFocus(entries: Set(paths.map { Array($0.utf8) })))
                    cost.append(disk.takeCount())
                    return report
                }
                try phone.write("changed \(count)", to: "3/3")
                #expect(try await measure("3/3").uploaded.map(\.text) == ["3/3"])
                try phone.rename("4/4", "4/renamed \(count)")
                #expect(try await measure("4/4", "4/renamed \(count)").renamed.count == 1)
                try phone.remove("5/5")
                #expect(try await measure("5/5").deletedThere.map(\.text) == ["5/5"])
                try phone.write("new", to: "new/\(count)")
                #expect(try await measure("new").uploaded.map(\.text) == ["new/\(count)"])
                costs.append(cost)
                #expect(cost.allSatisfy { $0 < 100 }, "\(cost), \(whole)")
                try phone.write("5", to: "5/5")
                try phone.rename("4/renamed \(count)", "4/4")
                try phone.remove("new/\(count)")
                try await sync.run()
            }
            // A file that was written a moment ago is read once more.
            for (few, many) in zip(costs[0], costs[1]) { #expect(abs(few - many) < 10) }
            try await laptop.sync.run()
            #expect(laptop.files() == phone.files())
        }
    }

    @Test func `what comes from elsewhere is fetched without a walk`() async throws {
        try await withPair { phone, sync, disk, laptop in
            for number in 0..<60 { try phone.write("\(number)", to: "\(number)") }
            try await sync.run()
            try await laptop.sync.run()
            try laptop.write("changed", to: "7")
            try laptop.write("new", to: "a/b")
            try laptop.rename("8", "a/8")
            try laptop.remove("9")
            try await laptop.sync.run()
            _ = try await sync.run(within: FolderFocus())
            #expect(phone.files() == laptop.files())
            _ = disk.takeCount()
            _ = try await sync.run(within: FolderFocus())
            #expect(disk.takeCount() < 40)
        }
    }

    @Test func `a file whose name is taken by another one from elsewhere is kept twice`() async throws {
        try await withPair { phone, sync, _, laptop in
            try phone.write("one", to: "a")
            try await sync.run()
            try await laptop.sync.run()
            try laptop.write("laptop", to: "b")
            try await laptop.sync.run()
            try phone.write("phone", to: "b")
            let report = try await sync.run(within: focus("b"))
            #expect(report.conflicts.count == 1)
            try await laptop.sync.run()
            #expect(laptop.files() == phone.files())
            #expect(Set(phone.files().values) == ["one", "laptop", "phone"])
        }
    }

    @Test func `a name that others cannot have holds back deletions until it is gone`() async throws {
        try await withPair { phone, sync, _, laptop in
            for name in ["a", "b", "c"] { try phone.write(name, to: name) }
            try await sync.run()
            try await laptop.sync.run()
            let bad: [UInt8] = [0x64, 0xe9]
            let path = Array((phone.folder.path + "/").utf8) + bad + [0]
            func withBadPath(_ body: (UnsafePointer<CChar>) -> Int32) -> Int32 {
                path.withUnsafeBytes { bytes in
                    bytes.baseAddress.map { body($0.assumingMemoryBound(to: CChar.self)) } ?? -1
                }
            }
            #expect(withBadPath { rename(phone.url("a").path, $0) } == 0)
            var changed = focus("a")
            changed.entries.insert(bad)
            #expect(try await sync.run(within: changed).deletedThere.isEmpty)
            try phone.remove("b")
            // In a round that does not examine that name.
            #expect(try await sync.run(within: focus("b")).deletedThere.isEmpty)
            #expect(withBadPath { rename($0, phone.url("a").path) } == 0)
            let report = try await sync.run(within: changed)
            #expect(report.deletedThere.isEmpty && report.warnings.isEmpty)
            #expect(try await sync.run().deletedThere.map(\.text) == ["b"])
            try await laptop.sync.run()
            #expect(laptop.files() == ["a": "a", "c": "c"])
        }
    }

    @Test func `a link is reported once`() async throws {
        try await withPair { phone, sync, _, _ in
            try FileManager.default.createSymbolicLink(atPath: phone.url("l").path, withDestinationPath: "/etc/passwd")
            #expect(try await sync.run().warnings.map(\.isRepeated) == [false])
            #expect(try await sync.run().warnings.map(\.isRepeated) == [true])
            try phone.write("one", to: "a")
            #expect(try await sync.run(within: focus("a")).warnings.isEmpty)
            // Also by another process.
            #expect(try await phone.sync.run().warnings.map(\.isRepeated) == [true])
            try phone.remove("l")
            #expect(try await sync.run(within: focus("l")).warnings.isEmpty)
            #expect(try await sync.run().warnings.isEmpty)
        }
    }

    @Test func `nothing is made in a folder that has lost its marker`() async throws {
        try await withPair { phone, sync, _, _ in
            try phone.write("one", to: "a")
            try await sync.run()
            try phone.remove(".saltern")
            #expect(try await sync.run().warnings.map(\.kind) == [.markerMissing])
            #expect(!FileManager.default.fileExists(atPath: phone.url(".saltern").path))
        }
    }

    @Test func `a watched folder that lends its store goes on with what another process has written`() async throws {
        try await withPair { phone, _, _, _ in
            var settings = FolderSettings(deviceName: "phone")
            settings.lendsStore = true
            let sync = FolderSync(vault: phone.vault, root: URL(filePath: phone.folder.path), settings: settings)
            try phone.write("one", to: "a")
            // It opens only while it is lent.
            func withOther<Result>(_ body: (Vault) async throws -> Result) async throws -> Result {
                try await StoreTicket.waiting(in: phone.device.settings.folder, atMost: .seconds(3_600)) {
                    let vault = try await Vault.resume(phone.device.settings)
                    return try await body(try #require(vault))
                }
            }
            try await WatchedFolder.run({ try await sync.watch($0) }) { reports in
                _ = try await WatchedFolder.first(reports) { $0.uploaded.map(\.text) == ["a"] }
                try await withOther { vault in
                    #expect(try await vault.ids("files").count == 1)
                    _ = try await vault.put(
                        PlainItem(title: "b", body: SecureBytes(copying: Array("two".utf8))), .random(), in: "files")
                    try await vault.sync()
                }
                _ = try await WatchedFolder.first(reports) { $0.downloaded.map(\.text) == ["b"] }
                #expect(phone.read("b") == "two")
            }
        }
    }

    @Test(arguments: [1, 2])
    func `a process that waits gets the store between the pieces of long files, however many folders are watched`(
        _ count: Int
    ) async throws {
        try await withPair { phone, _, _, laptop in
            var settings = FolderSettings(deviceName: "phone")
            settings.lendsStore = true
            var folders: [TemporaryDirectory] = []
            var syncs: [FolderSync] = []
            for number in 0..<count {
                settings.collection = "files-\(number)"
                let folder = try TemporaryDirectory(.memory)
                let root = URL(filePath: folder.path)
                for name in ["a", "b"] {
                    let bytes = SecureRandom.bytes(9 * Attachment.chunkByteCount)
                    try Data(bytes).write(to: root.appending(path: name))
                }
                folders.append(folder)
                syncs.append(FolderSync(vault: phone.vault, root: root, settings: settings))
            }
            let sent = Locked(0)
            try await withThrowingTaskGroup(of: Void.self) { group in
                for sync in syncs {
                    group.addTask { try await sync.watch { report in sent.withLock { $0 += report.uploaded.count } } }
                }
                for number in 0..<3 {
                    try await StoreTicket.waiting(in: phone.device.settings.folder, atMost: .seconds(3_600)) {
                        let vault = try #require(try await Vault.resume(phone.device.settings))
                        let body = SecureBytes(copying: Array("\(number)".utf8))
                        try await vault.put(PlainItem(title: "note", body: body), .random(), in: "notes")
                    }
                }
                while sent.withLock({ $0 }) < 2 * count { try await Task.sleep(for: .milliseconds(10)) }
                group.cancelAll()
                while case .some = try? await group.next() {}
            }
            #expect(await phone.vault.lending.users == 0)
            try await phone.vault.takeBackStore()
            #expect(try await phone.vault.ids("notes").count == 3)
            for number in 0..<count { #expect(try await phone.vault.ids("files-\(number)").count == 2) }
            _ = laptop
        }
    }

    @Test func `a watched folder that fails gives its store to others`() async throws {
        struct Stop: Error {}
        try await withPair { phone, _, _, _ in
            var settings = FolderSettings(deviceName: "phone")
            settings.lendsStore = true
            let sync = FolderSync(vault: phone.vault, root: URL(filePath: phone.folder.path), settings: settings)
            await #expect(throws: Stop.self) { try await sync.watch { _ in throw Stop() } }
            #expect(await phone.vault.lending.users == 0)
            #expect(try await Vault.resume(phone.device.settings) != nil)
            try await phone.vault.takeBackStore()
            try phone.remove(".saltern")
            try FileManager.default.removeItem(atPath: phone.folder.path)
            await #expect(throws: FolderError.self) { try await sync.watch { _ in } }
            #expect(await phone.vault.lending.users == 0)
        }
    }

    @Test func `deletions that wait go on waiting in rounds that examine something else`() async throws {
        try await withPair { phone, sync, _, laptop in
            for number in 0..<30 { try phone.write("\(number)", to: "\(number)") }
            try await sync.run()
            for number in 0..<27 { try phone.remove("\(number)") }
            let removed = FolderFocus(entries: Set((0..<27).map { Array("\($0)".utf8) }))
            #expect(try await sync.run(within: removed).heldThere.count == 27)
            try phone.write("other", to: "other")
            let report = try await sync.run(within: focus("other"))
            #expect(report.uploaded.map(\.text) == ["other"])
            #expect(report.heldThere.count == 27)
            #expect(try await sync.run().heldThere.count == 27)
        }
    }

    @Test func `a file that is deleted here and kept under another name does not count as a deletion`() async throws {
        try await withPair { phone, sync, _, _ in
            for number in 0..<30 {
                try phone.write("\(number)", to: "a/\(number)")
                try phone.write("\(number)", to: "b/\(number)")
            }
            try await sync.run()
            for number in 0..<30 { try phone.remove("a/\(number)") }
            #expect(try await sync.run(within: focus("a")).deletedThere.count == 30)
        }
    }
}
