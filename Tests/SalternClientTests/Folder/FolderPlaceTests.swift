import Foundation
import SalternTesting
import Testing

@testable import SalternClient

/// Which folders are kept in sync, and what a folder is known by.
@Suite struct FolderPlaceTests {
    private func make(_ path: String) throws {
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    }

    @Test func `folders overlap when one is the other or in it, whatever they are called`() throws {
        let folder = try TemporaryDirectory()
        try make(folder.path + "/store/inner")
        try make(folder.path + "/storeroom")
        let link = folder.path + "/link"
        try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: folder.path + "/store/inner")
        let store = folder.path + "/store"
        for other in [store, store + "/", store + "/inner", link, link + "/..", folder.path, "/"] {
            #expect(FolderPlace.overlap(other, store), "\(other)")
        }
        for other in [folder.path + "/storeroom", folder.path + "/nothing", ""] {
            #expect(!FolderPlace.overlap(other, store), "\(other)")
        }
    }

    private func withPhone(_ body: (LiveServer, FolderDevice) async throws -> Void) async throws {
        try await LiveServer.with { server in
            try await body(server, try await FolderDevice("phone", server, isFirst: true))
        }
    }

    @Test func `the store's own folder, and what it is in, are not synced`() async throws {
        try await withPhone { _, phone in
            let store = phone.device.folder.path
            try make(store + "/inner")
            for root in [store, store + "/inner", URL(filePath: store).deletingLastPathComponent().path] {
                let had = FileManager.default.fileExists(atPath: root + "/.saltern")
                await #expect {
                    try await FolderSync(vault: phone.vault, root: URL(filePath: root)).run()
                } throws: { if case FolderError.holdsStore = $0 { true } else { false } }
                #expect(FileManager.default.fileExists(atPath: root + "/.saltern") == had)
            }
        }
    }

    @Test func `a folder in one that is in sync is refused, and one in it that is in sync by itself is left alone`()
        async throws
    {
        try await withPhone { server, phone in
            try phone.write("outer", to: "a")
            try phone.write("inner", to: "in/b")
            try await phone.sync.run()
            let inner = phone.url("in").path
            await #expect {
                try await FolderSync(vault: phone.vault, root: URL(filePath: inner)).run()
            } throws: { if case FolderError.nested(phone.folder.path) = $0 { true } else { false } }
            #expect(!FileManager.default.fileExists(atPath: inner + "/.saltern"))

            // As when it was in sync first.
            try phone.write(ItemID.random().description, to: "in/.saltern/folder")
            try phone.write("new", to: "in/c")
            try phone.remove("a")
            let report = try await phone.sync.run()
            #expect(report.warnings.map(\.kind) == [.nestedFolder])
            #expect(report.uploaded.isEmpty && report.deletedThere.isEmpty)
            let laptop = try await FolderDevice("laptop", server, isFirst: false)
            try await laptop.sync.run()
            try laptop.write("changed", to: "in/b")
            try await laptop.sync.run()
            #expect(try await phone.sync.run().downloaded.isEmpty)
            #expect(phone.read("in/b") == "inner")

            try phone.remove("in/.saltern")
            let last = try await phone.sync.run()
            #expect(last.uploaded.map(\.text) == ["in/c"] && last.deletedThere.map(\.text) == ["a"])
            #expect(phone.read("in/b") == "changed")
        }
    }

    @Test func `a copy is refused as long as the folder is there, and what was moved is known again`() async throws {
        try await withPhone { _, phone in
            try phone.write("one", to: "a")
            try phone.write("two", to: "b")
            try await phone.sync.run()
            let other = try TemporaryDirectory(.memory)
            let copy = other.path + "/copy"
            try FileManager.default.copyItem(atPath: phone.folder.path, toPath: copy)
            try FileManager.default.removeItem(atPath: copy + "/a")
            let sync = FolderSync(vault: phone.vault, root: URL(filePath: copy))
            await #expect {
                try await sync.run()
            } throws: { if case FolderError.copy(phone.folder.path) = $0 { true } else { false } }
            #expect(phone.files() == ["a": "one", "b": "two"])
            #expect(try await phone.sync.run().warnings.isEmpty)
            // Another folder has come in its place.
            let marker = phone.url(".saltern/folder")
            try Data(ItemID.random().description.utf8).write(to: marker)
            #expect(try await sync.run().deletedThere.map(\.text) == ["a"])
        }
    }

    @Test func `a folder of the kit's name in capitals does not make the disk fold names`() throws {
        let folder = try TemporaryDirectory(.memory)
        #expect(try !FolderTree(folder.path).root.folds)
        try make(folder.path + "/" + FolderPath.corner.uppercased())
        #expect(try !FolderTree(folder.path).root.folds)
    }

    @Test(arguments: ["👩‍👩‍👧‍👦", "x", "e\u{301}\u{302}\u{303}\u{304}\u{305}\u{306}\u{307}"])
    func `a file with a long name has room in the trash`(_ character: String) throws {
        let folder = try TemporaryDirectory(.memory)
        let tree = try FolderTree(folder.path)
        let unit = character.precomposedStringWithCanonicalMapping
        let name = String(repeating: unit, count: 255 / unit.utf8.count)
        try Data("old".utf8).write(to: URL(filePath: folder.path + "/" + name))
        var report = FolderReport()
        let path = try FolderPath(name)
        let content = try #require(tree.walk(into: &report).files[path])
        #expect(tree.parts.discard(path, content))
        #expect(tree.walk(into: &report).files.isEmpty)
    }

    @Test func `a conflict name has room wherever its file is, and is another one each time`() throws {
        let long = [String(repeating: "ä", count: 127), String(repeating: "👩‍👩‍👧‍👦", count: 10)]
        for name in ["a", ".profile", "a.tar.gz"] + long {
            for depth in [0, 1, 15] {
                let folders = String(repeating: String(repeating: "d", count: 240) + "/", count: depth)
                var path = try FolderPath(folders + name)
                var seen: Set<FolderPath> = [path]
                for _ in 0..<20 {
                    path = path.suffixed("conflict, \(String(repeating: "x", count: 64)), 2026-01-01")
                    #expect(path.names.allSatisfy { $0.utf8.count <= 255 } && path.text.utf8.count <= 4_000)
                    guard seen.insert(path).inserted else { break }
                }
                #expect(seen.count > 1)
                let plain = try FolderPath(folders + name)
                #expect(plain.suffixed("1") != plain.suffixed("2"))
            }
        }
    }

    @Test func `a time further away than nanoseconds count is as far as they do`() {
        #expect(timespec(tv_sec: .max, tv_nsec: 999_999_999).nanoseconds == .max)
        #expect(timespec(tv_sec: .min, tv_nsec: 0).nanoseconds == .min)
        #expect(timespec(tv_sec: 9_223_372_036, tv_nsec: 999_999_999).nanoseconds == .max)
        for nanoseconds in [Int64.min, -1_000_000_001, -1, 0, 1, 1_700_000_000_123_456_789, .max] {
            let time = timespec(nanoseconds: nanoseconds)
            #expect((0..<1_000_000_000).contains(time.tv_nsec))
            #expect(nanoseconds == .min || time.nanoseconds == nanoseconds)
        }
    }

    private func modified(_ file: URL) -> Int? {
        var status = stat()
        return stat(file.path, &status) == 0 ? status.st_mtim.tv_sec : nil
    }

    @Test func `a time before or after everybody's is kept as far as it can be, and changes nothing`() async throws {
        try await withPhone { server, phone in
            let laptop = try await FolderDevice("laptop", server, isFirst: false)
            let kept = ["past": -9_223_372_037, "early": -1, "future": 9_223_372_036]
            for (name, seconds) in [("past", -20_000_000_000), ("early", -1), ("future", 20_000_000_000)] {
                try phone.write(name, to: name)
                let times = [timespec](repeating: timespec(tv_sec: seconds, tv_nsec: 5), count: 2)
                let isSet = utimensat(AT_FDCWD, phone.url(name).path, times, 0) == 0
                try #require(isSet)
            }
            #expect(try await phone.sync.run().uploaded.count == 3)
            #expect(try await laptop.sync.run().downloaded.count == 3)
            for (name, seconds) in kept { #expect(modified(laptop.url(name)) == seconds, "\(name)") }
            for device in [phone, laptop, phone] {
                let report = try await device.sync.run()
                #expect(report.uploaded.isEmpty && report.downloaded.isEmpty && report.warnings.isEmpty)
            }
            // What was written last counts, whatever the times say.
            try laptop.write("changed", to: "future")
            try await laptop.sync.run()
            try await phone.sync.run()
            #expect(phone.files() == ["past": "past", "early": "early", "future": "changed"])
        }
    }
}
