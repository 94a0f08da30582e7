import Cryptography
import Foundation
import SalternTesting
import Testing

@testable import SalternClient

/// Folders in which nothing is.
@Suite struct EmptyFolderTests {
    private func withPair(_ body: (FolderDevice, FolderDevice) async throws -> Void) async throws {
        try await LiveServer.with { server in
            let phone = try await FolderDevice("phone", server, isFirst: true)
            let laptop = try await FolderDevice("laptop", server, isFirst: false)
            try await body(phone, laptop)
        }
    }

    private func make(_ path: String, on device: FolderDevice) throws {
        try FileManager.default.createDirectory(
            atPath: device.url(path).path, withIntermediateDirectories: true)
    }

    @Test func `an empty folder comes, stays when it is filled and emptied, and goes`() async throws {
        try await withPair { phone, laptop in
            try make("a/b", on: phone)
            try make("c", on: phone)
            #expect(try await phone.sync.run().sentFolders.map(\.text) == ["a/b", "c"])
            #expect(try await laptop.sync.run().fetchedFolders.map(\.text) == ["a/b", "c"])
            #expect(laptop.folders() == ["a", "a/b", "c"])
            try laptop.write("one", to: "c/file")
            try await laptop.sync.run()
            try await phone.sync.run()
            try phone.remove("c/file")
            #expect(try await phone.sync.run().deletedThere.map(\.text) == ["c/file"])
            try await laptop.sync.run()
            #expect(laptop.folders() == ["a", "a/b", "c"] && laptop.files().isEmpty)
            try laptop.remove("a")
            #expect(try await laptop.sync.run().removedFoldersThere.map(\.text) == ["a/b"])
            #expect(try await phone.sync.run().removedFoldersHere.map(\.text) == ["a/b"])
            #expect(phone.folders() == ["c"])
            for device in [phone, laptop] { #expect(try await !device.sync.run().hasDone) }
        }
    }

    @Test func `a folder that another device has filled is not removed`() async throws {
        try await withPair { phone, laptop in
            try make("a/b", on: phone)
            try await phone.sync.run()
            try await laptop.sync.run()
            try laptop.write("one", to: "a/b/file")
            try phone.remove("a")
            try await phone.sync.run()
            #expect(try await laptop.sync.run().removedFoldersHere.isEmpty)
            try await phone.sync.run()
            #expect(phone.files() == ["a/b/file": "one"])
            // What is ignored counts, too.
            try make("c", on: phone)
            try phone.write("*.log", to: ".salternignore")
            try await phone.sync.run()
            try await laptop.sync.run()
            try laptop.write("mine", to: "c/x.log")
            #expect(try await !laptop.sync.run().hasDone)
            #expect(try await !phone.sync.run().hasDone)
            try phone.remove("c")
            try await phone.sync.run()
            #expect(try await laptop.sync.run().removedFoldersHere.isEmpty)
            #expect(laptop.read("c/x.log") == "mine")
        }
    }

    @Test func `folders in folders go together, and a file takes the place of an empty folder`() async throws {
        try await withPair { phone, laptop in
            try make("a", on: phone)
            try make("x", on: phone)
            try await phone.sync.run()
            try make("a/b", on: phone)
            try await phone.sync.run()
            try make("a/b/c", on: phone)
            try await phone.sync.run()
            try await laptop.sync.run()
            #expect(laptop.folders() == ["a", "a/b", "a/b/c", "x"])
            try phone.remove("a")
            try phone.remove("x")
            try phone.write("file", to: "x")
            try await phone.sync.run()
            try await laptop.sync.run()
            #expect(laptop.folders().isEmpty && laptop.files() == ["x": "file"])
            for device in [phone, laptop, phone] { #expect(try await !device.sync.run().hasDone) }
            #expect(phone.folders().isEmpty)
        }
    }

    @Test func `an ignored folder is neither sent nor removed`() async throws {
        try await withPair { phone, laptop in
            try make("build", on: phone)
            try make("a", on: phone)
            try await phone.sync.run()
            try await laptop.sync.run()
            try phone.write("build/\n", to: ".salternignore")
            try phone.remove("build")
            try make("inner/build", on: phone)
            let report = try await phone.sync.run()
            #expect(report.sentFolders.isEmpty && report.removedFoldersThere.isEmpty)
            try await laptop.sync.run()
            #expect(laptop.folders() == ["a", "build"])
            try phone.remove(".salternignore")
            #expect(try await phone.sync.run().fetchedFolders.map(\.text) == ["build"])
        }
    }

    @Test func `rounds of a watched folder see empty folders`() async throws {
        try await withPair { phone, laptop in
            func focus(_ paths: String...) -> FolderFocus {
                FolderFocus(entries: Set(paths.map { Array($0.utf8) }))
            }
            try phone.write("one", to: "a/file")
            try await phone.sync.run()
            try make("b", on: phone)
            #expect(try await phone.sync.run(within: focus("b")).sentFolders.map(\.text) == ["b"])
            try phone.remove("a/file")
            #expect(try await phone.sync.run(within: focus("a/file")).sentFolders.map(\.text) == ["a"])
            try await laptop.sync.run()
            #expect(laptop.folders() == ["a", "b"])
            try phone.remove("b")
            #expect(try await phone.sync.run(within: focus("b")).removedFoldersThere.map(\.text) == ["b"])
            try await laptop.sync.run()
            #expect(laptop.folders() == ["a"])
        }
    }

    /// Versions without empty folders refuse such a title, and leave the item alone.
    @Test func `the item of a folder is no file to an earlier version, and no file has such a title`()
        async throws
    {
        try await withPair { phone, laptop in
            try make("a", on: phone)
            try await phone.sync.run()
            let id = try #require(try await phone.item("a/"))
            #expect(try await phone.vault.item(id)?.body.isEmpty == true)
            #expect(throws: FolderPath.Refusal.empty) { try FolderPath("a/") }
            let item = PlainItem(title: "b/", body: SecureBytes(copying: Array("x".utf8)))
            try await phone.vault.put(item, .random(), in: "files")
            try await phone.vault.sync()
            #expect(try await laptop.sync.run().warnings.map(\.kind) == [.refusedTitle])
            #expect(laptop.folders() == ["a"])
        }
    }
}
