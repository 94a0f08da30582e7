import CPlatform
import Cryptography
import Foundation
import SalternTesting
import Testing

@testable import SalternClient

/// Two folders of one person against a real server.
@Suite struct FolderSyncTests {
    private func withPair(_ body: (FolderDevice, FolderDevice) async throws -> Void) async throws {
        try await LiveServer.with { server in
            let phone = try await FolderDevice("phone", server, isFirst: true)
            let laptop = try await FolderDevice("laptop", server, isFirst: false)
            try await body(phone, laptop)
        }
    }

    @Test func `files are created, changed, renamed and deleted on both sides`() async throws {
        try await withPair { phone, laptop in
            try phone.write("one", to: "notes/ä.txt")
            try phone.write(String(repeating: "long ", count: 150_000), to: "long")
            try phone.write("", to: "empty")
            try phone.write("#!", to: "run")
            let moment = Date(timeIntervalSince1970: 1_700_000_000)
            try FileManager.default.setAttributes(
                [.posixPermissions: 0o755, .modificationDate: moment], ofItemAtPath: phone.url("run").path)
            #expect(try await phone.sync.run().uploaded.count == 4)
            #expect(try await laptop.sync.run().downloaded.count == 4)
            #expect(laptop.files() == phone.files())
            let run = try FileManager.default.attributesOfItem(atPath: laptop.url("run").path)
            #expect(run[.modificationDate] as? Date == moment)
            #expect((run[.posixPermissions] as? Int).map { $0 & 0o100 } == 0o100)
            // A rename keeps the item; nothing is sent twice.
            let id = try #require(try await laptop.item("long"))
            try laptop.rename("long", "far/away/long.txt")
            try laptop.write("two", to: "notes/ä.txt")
            let report = try await laptop.sync.run()
            #expect(report.renamed.map(\.text) == ["far/away/long.txt"])
            #expect(report.uploaded.map(\.text) == ["notes/ä.txt"])
            try await phone.sync.run()
            #expect(phone.files() == laptop.files())
            #expect(try await phone.item("far/away/long.txt") == id)
            try phone.remove("notes/ä.txt")
            #expect(try await phone.sync.run().deletedThere.map(\.text) == ["notes/ä.txt"])
            #expect(try await laptop.sync.run().deletedHere.map(\.text) == ["notes/ä.txt"])
            #expect(laptop.files() == phone.files())
            // On the phone it is there, and empty.
            #expect(laptop.has("notes"))
            #expect(laptop.trash().contains("two"))
            for device in [phone, laptop] {
                let report = try await device.sync.run()
                #expect(report.uploaded.isEmpty && report.downloaded.isEmpty && report.warnings.isEmpty)
            }
        }
    }

    @Test func `who asks hears how far a folder has come`() async throws {
        try await withPair { phone, _ in
            try phone.write("one", to: "a")
            try phone.write("three", to: "b")
            let steps = phone.vault.progress()
            try await phone.sync.run()
            var read = 0
            for await step in steps {
                if case .read(let count) = step { read = max(read, count) }
                if case .settled(2, of: 2) = step { break }
            }
            #expect(read >= 8)
        }
    }

    @Test func `changed on both sides, both are kept; a change beats a deletion`() async throws {
        try await withPair { phone, laptop in
            try phone.write("one", to: "a.txt")
            try phone.write("one", to: "b")
            try await phone.sync.run()
            try await laptop.sync.run()
            try phone.write("phone", to: "a.txt")
            try laptop.write("laptop", to: "a.txt")
            try phone.write("changed", to: "b")
            try laptop.remove("b")
            try await phone.sync.run()
            let conflicts = try await laptop.sync.run().conflicts
            let name = try #require(conflicts.first?.text)
            #expect(conflicts.count == 1)
            #expect(name.hasPrefix("a (conflict, laptop, ") && name.hasSuffix(").txt"))
            try await phone.sync.run()
            #expect(phone.files() == ["a.txt": "phone", name: "laptop", "b": "changed"])
            #expect(laptop.files() == phone.files())
        }
    }

    @Test func `a title that leads out of the folder is refused`() async throws {
        try await withPair { phone, laptop in
            let outside = FileManager.default.fileExists(atPath: laptop.folder.path + "/../x")
            let titles = [
                "../x", "/x", "a/../../x", "", "a\0b", "a//b", ".", ".saltern/folder", ".SALTERN/x", "a/.saltern/x",
                String(repeating: "x", count: 256), "a//", "/", "../",
            ]
            for title in titles {
                try await phone.vault.put(
                    PlainItem(title: title, body: SecureBytes(copying: Array("x".utf8))), .random(), in: "files")
            }
            try await phone.vault.put(
                PlainItem(title: "good", body: SecureBytes(copying: Array("x".utf8))), .random(), in: "files")
            try await phone.vault.sync()
            let report = try await laptop.sync.run()
            #expect(report.warnings.count { $0.kind == .refusedTitle } == titles.count)
            #expect(laptop.files() == ["good": "x"])
            #expect(FileManager.default.fileExists(atPath: laptop.folder.path + "/../x") == outside)
            // They are left as they are.
            #expect(try await laptop.vault.ids("files").count == titles.count + 1)
        }
    }

    @Test func `links are not followed, and what is behind them is not deleted`() async throws {
        try await withPair { phone, laptop in
            let outside = try TemporaryDirectory()
            try phone.write("one", to: "inner/a")
            try phone.write("two", to: "b")
            try await phone.sync.run()
            try await laptop.sync.run()
            // In the place of a folder and of a file.
            try laptop.remove("inner")
            try laptop.remove("b")
            for name in ["inner", "b"] {
                try FileManager.default.createSymbolicLink(
                    atPath: laptop.url(name).path, withDestinationPath: outside.path)
            }
            try phone.write("new", to: "inner/c")
            try phone.write("changed", to: "inner/a")
            try await phone.sync.run()
            let report = try await laptop.sync.run()
            #expect(Set(report.warnings.map(\.kind)) == [.link])
            #expect(report.deletedThere.isEmpty)
            #expect(try FileManager.default.contentsOfDirectory(atPath: outside.path).isEmpty)
            try await phone.sync.run()
            #expect(phone.files() == ["inner/a": "changed", "inner/c": "new", "b": "two"])
        }
    }

    @Test func `a folder that is not there, or cannot be read, deletes nothing`() async throws {
        try await withPair { phone, laptop in
            try phone.write("one", to: "a")
            try phone.write("two", to: "inner/b")
            try await phone.sync.run()
            // The disk is not there: an empty folder in its place.
            try phone.remove(".saltern")
            try phone.remove("a")
            try phone.remove("inner")
            try await laptop.sync.run()
            try laptop.write("three", to: "c")
            try await laptop.sync.run()
            let report = try await phone.sync.run()
            #expect(report.warnings.map(\.kind) == [.markerMissing])
            // What is written there would be missing when the disk is back.
            #expect(report.deletedThere.isEmpty && phone.files().isEmpty)
            try await laptop.sync.run()
            #expect(laptop.files() == ["a": "one", "inner/b": "two", "c": "three"])
            // Agreeing to deletions is not agreeing to these: the folder is filled as a new one.
            let filled = try await phone.agreeing.run()
            #expect(filled.deletedThere.isEmpty && filled.warnings.isEmpty)
            #expect(phone.files() == laptop.files())
            #expect(try await phone.sync.run().warnings.isEmpty)
        }
    }

    @Test func `what cannot be read makes a walk incomplete`() throws {
        let folder = try TemporaryDirectory()
        let inner = folder.path + "/inner"
        try FileManager.default.createDirectory(atPath: inner, withIntermediateDirectories: true)
        try Data("x".utf8).write(to: URL(filePath: folder.path + "/file"))
        let tree = try FolderTree(folder.path)
        var report = FolderReport()
        #expect(tree.walk(into: &report).isComplete)
        for name in ["inner", "file"] {
            chmod(folder.path + "/" + name, 0)
            // Root may read everything; this thread is somebody else for a moment.
            _ = setfsuid(65_534)
            tree.hashes = [:]
            let scan = tree.walk(into: &report)
            _ = setfsuid(geteuid())
            #expect(!scan.isComplete)
            chmod(folder.path + "/" + name, 0o700)
        }
        #expect(report.warnings.map(\.kind) == [.unreadable, .unreadable])
    }

    @Test(.timeLimit(.minutes(60))) func `what was read of a file that is still young is not relied on`() async throws {
        let folder = try TemporaryDirectory()
        try Data("x".utf8).write(to: URL(filePath: folder.path + "/a"))
        let tree = try FolderTree(folder.path)
        let path = try FolderPath("a")
        // The file of a moment ago, unless this machine was stopped for two seconds right here.
        let begin = ContinuousClock.now
        try Data("y".utf8).write(to: URL(filePath: folder.path + "/a"))
        #expect(tree.scan().files.count == 1)
        if begin.duration(to: .now) < .seconds(2) { #expect(tree.hashes[path] == nil) }
        while tree.hashes[path] == nil {
            try await Task.sleep(for: .milliseconds(100))
            _ = tree.scan()
        }
        #expect(tree.hashes[path]?.digest == SHA256.hash(Array("y".utf8)).bytes)
    }

    @Test func `many deletions wait for somebody to agree, in either direction`() async throws {
        try await withPair { phone, laptop in
            for number in 0..<12 { try phone.write("\(number)", to: "\(number)") }
            try await phone.sync.run()
            try await laptop.sync.run()
            for number in 0..<5 { try phone.remove("\(number)") }
            let held = try await phone.sync.run()
            #expect(held.held == HeldDeletions(here: 0, there: 5))
            #expect(held.deletedThere.isEmpty)
            #expect(try await phone.agreeing.run().deletedThere.count == 5)
            let vaultHeld = try await laptop.sync.run()
            #expect(vaultHeld.isVaultHeld && laptop.files().count == 12)
            try await laptop.vault.agreeToDeletions()
            #expect(try await laptop.sync.run().held == HeldDeletions(here: 5, there: 0))
            #expect(laptop.files().count == 12)
            #expect(try await laptop.agreeing.run().deletedHere.count == 5)
            #expect(laptop.files() == phone.files())
        }
    }

    @Test func `many deletions one by one are many, and their names are there`() async throws {
        try await withPair { phone, laptop in
            for number in 0..<30 { try phone.write("\(number)", to: "folder/\(number)") }
            try await phone.sync.run()
            try await laptop.sync.run()
            for number in 0..<11 {
                try phone.remove("folder/\(number)")
                try phone.write("something else \(number)", to: "folder/29")
                let report = try await phone.sync.run()
                #expect(report.uploaded.count == 1)
                let held = (0...number).dropFirst(10).map { "folder/\($0)" }
                #expect(report.heldThere.map(\.text) == held && report.held.there == held.count, "\(number)")
            }
            #expect(try await phone.vault.ids("files").count == 30 - 10)
            // In this direction alone.
            var settings = FolderSettings(deviceName: "phone")
            settings.allowedDeletions = [.here]
            let root = URL(filePath: phone.folder.path)
            #expect(try await FolderSync(vault: phone.vault, root: root, settings: settings).run().held.there == 1)
            settings.allowedDeletions = [.there]
            let agreed = FolderSync(vault: phone.vault, root: root, settings: settings)
            #expect(try await agreed.run().deletedThere.map(\.text) == ["folder/10"])
            try phone.remove("folder/20")
            #expect(try await phone.sync.run().deletedThere.count == 1)
            // Files that come and go are few.
            for number in 0..<30 {
                try phone.write("\(number)", to: "scratch")
                try await phone.sync.run()
                try phone.remove("scratch")
                #expect(try await phone.sync.run().held.isEmpty, "\(number)")
            }
        }
    }

    @Test func `a folder of equal files is moved, in the other folder, too`() async throws {
        try await withPair { phone, laptop in
            for number in 0..<30 { try phone.write("equal", to: "src/\(number)/file") }
            for number in 0..<30 { try phone.write("", to: "src/\(number)/__init__.py") }
            try await phone.sync.run()
            try await laptop.sync.run()
            try phone.rename("src", "lib")
            let report = try await phone.sync.run()
            #expect(report.renamed.count == 60 && report.held.isEmpty && report.uploaded.isEmpty)
            let other = try await laptop.sync.run()
            #expect(other.renamed.count == 60 && other.held.isEmpty && !other.isVaultHeld)
            #expect(laptop.files() == phone.files() && laptop.files().count == 60)
        }
    }

    @Test func `a cursor that has expired deletes nothing`() async throws {
        try await withPair { phone, laptop in
            try phone.write("one", to: "a")
            try await phone.sync.run()
            try await laptop.sync.run()
            laptop.device.link.expireCursor()
            let report = try await laptop.sync.run()
            #expect(report.deletedHere.isEmpty && report.deletedThere.isEmpty)
            #expect(laptop.files() == ["a": "one"])
        }
    }

    @Test func `without a server files wait, and go up later`() async throws {
        try await withPair { phone, laptop in
            phone.device.link.setFate { .losesRequest }
            try phone.write("one", to: "a")
            try phone.write(String(repeating: "x", count: 600_000), to: "long")
            let report = try await phone.sync.run()
            #expect(report.isOffline)
            #expect(report.uploaded.map(\.text) == ["a"])
            #expect(report.warnings == [FolderWarning(kind: .failed, path: "long")])
            phone.device.link.setFate { .passes }
            try await phone.sync.run()
            try await laptop.sync.run()
            #expect(laptop.files() == phone.files())
        }
    }

    @Test(.timeLimit(.minutes(60))) func `a folder that is watched follows both sides`() async throws {
        try await withPair { phone, laptop in
            try phone.write("one", to: "inner/a")
            let sync = phone.sync
            try await WatchedFolder.run({ try await sync.watch($0) }) { reports in
                func awaitSent(_ path: String) async throws {
                    _ = try await WatchedFolder.first(reports) { report in
                        report.uploaded.map(\.text).contains(path)
                    }
                    // A server under load may have refused it at first (503); then it is sent a little later.
                    try await eventually(every: .milliseconds(50)) {
                        try await laptop.vault.sync()
                        return try await laptop.item(path) != nil
                    }
                }
                try await awaitSent("inner/a")
                try laptop.write("two", to: "b")
                try await laptop.send()
                #expect(laptop.files() == ["inner/a": "one", "b": "two"])
                _ = try await WatchedFolder.first(reports) { $0.downloaded.map(\.text).contains("b") }
                #expect(phone.files() == laptop.files())
                // In a folder that came after the watch began.
                try phone.write("three", to: "later/c")
                try await awaitSent("later/c")
                try await laptop.sync.run()
                #expect(laptop.files()["later/c"] == "three")
            }
        }
    }

    @Test func `names become NFC, and two that differ in nothing else are both kept`() async throws {
        try await withPair { phone, laptop in
            try phone.write("composed", to: "\u{e4}")
            try phone.write("decomposed", to: "a\u{308}")
            try await phone.sync.run()
            try await laptop.sync.run()
            #expect(Set(laptop.files().values) == ["composed", "decomposed"])
            let names = try FileManager.default.contentsOfDirectory(atPath: laptop.folder.path)
            // As bytes, because strings in other forms are equal.
            let expected = [".saltern", "\u{e4}", "\u{e4} (2)"].map { Array($0.utf8) }
            #expect(Set(names.map { Array($0.utf8) }) == Set(expected))
        }
    }

    @Test func `what was displaced and finds its place taken is in the trash`() throws {
        let folder = try TemporaryDirectory()
        let tree = try FolderTree(folder.path)
        for (name, text) in [("a", "of a person"), ("a (conflict)", "earlier")] {
            try Data(text.utf8).write(to: URL(filePath: folder.path + "/" + name))
        }
        let part = try tree.parts.newPart()
        _ = Array("new".utf8).withUnsafeBytes { DiskFolders().write($0, to: part.file) }
        let expected = FileContent(digest: SHA256.hash(Array("old".utf8)).bytes, byteCount: 3, isExecutable: false)
        let new = FileContent(digest: SHA256.hash(Array("new".utf8)).bytes, byteCount: 3, isExecutable: false)
        let isPlaced = tree.parts.place(
            part, at: try FolderPath("a"), over: expected, new, modified: nil,
            aside: try FolderPath("a (conflict)"))
        #expect(isPlaced)
        let read = { (path: String) in try String(contentsOf: URL(filePath: folder.path + "/" + path), encoding: .utf8)
        }
        #expect(try read("a") == "new" && read("a (conflict)") == "earlier")
        let trash = try FileManager.default.contentsOfDirectory(atPath: folder.path + "/.saltern/trash")
        #expect(try trash.map { try read(".saltern/trash/" + $0) } == ["of a person"])
    }

    /// - Parameter isKilled: Whether the process ended while the file was on its way.
    @Test(arguments: [false, true])
    func `a file takes the place of its folder, though empty folders are left in that`(isKilled: Bool) throws {
        let folder = try TemporaryDirectory()
        let files = FileManager.default
        try files.createDirectory(atPath: folder.path + "/a/b/c", withIntermediateDirectories: true)
        var tree = try FolderTree(folder.path)
        let write = { (text: String, path: String) in
            try Data(text.utf8).write(to: URL(filePath: folder.path + "/" + path))
        }
        if isKilled {
            try write("text", ".saltern/parts/move-1")
            try write("a\0a/file", ".saltern/parts/places-1")
            tree = try FolderTree(folder.path)
            tree.parts.tidy()
        } else {
            try write("text", "a/file")
            #expect(tree.parts.move(try FolderPath("a/file"), to: try FolderPath("a")))
        }
        #expect(tree.scan().files.keys.map(\.text) == ["a"])
        #expect(try files.contentsOfDirectory(atPath: folder.path + "/.saltern/parts") == [])
    }

    @Test func `a file that gets no place after a kill stays until it gets one`() throws {
        let folder = try TemporaryDirectory()
        let files = FileManager.default
        let tree = try FolderTree(folder.path)
        for (text, path) in [("text", ".saltern/parts/move-1"), ("a/b", ".saltern/parts/places-1"), ("file", "a")] {
            try Data(text.utf8).write(to: URL(filePath: folder.path + "/" + path))
        }
        // As on a full disk: the trash takes nothing, and the place is in use.
        try files.removeItem(atPath: folder.path + "/.saltern/trash")
        tree.parts.tidy()
        #expect(
            try files.contentsOfDirectory(atPath: folder.path + "/.saltern/parts").sorted() == ["move-1", "places-1"])
        try files.removeItem(atPath: folder.path + "/a")
        tree.parts.tidy()
        #expect(tree.scan().files.keys.map(\.text) == ["a/b"])
        #expect(try files.contentsOfDirectory(atPath: folder.path + "/.saltern/parts") == [])
    }

    @Test func `what is written while a file is exchanged is kept`() throws {
        let folder = try TemporaryDirectory()
        let tree = try FolderTree(folder.path)
        let path = try FolderPath("a")
        let aside = try FolderPath("a (conflict)")
        try Data("of a person".utf8).write(to: URL(filePath: folder.path + "/a"))
        let part = try tree.parts.newPart()
        _ = Array("new".utf8).withUnsafeBytes { DiskFolders().write($0, to: part.file) }
        let expected = FileContent(digest: SHA256.hash(Array("old".utf8)).bytes, byteCount: 3, isExecutable: false)
        let new = FileContent(digest: SHA256.hash(Array("new".utf8)).bytes, byteCount: 3, isExecutable: false)
        let isPlaced = tree.parts.place(part, at: path, over: expected, new, modified: nil, aside: aside)
        #expect(isPlaced)
        let scan = tree.scan()
        #expect(scan.files[path]?.byteCount == 3)
        #expect(scan.files[aside]?.byteCount == 11)
        // A deletion of what is not what was expected is none.
        #expect(!tree.parts.discard(aside, expected))
        #expect(tree.scan().files.count == 2)
    }
}

extension FolderTree {
    fileprivate func scan() -> Scan {
        var report = FolderReport()
        return walk(into: &report)
    }
}
