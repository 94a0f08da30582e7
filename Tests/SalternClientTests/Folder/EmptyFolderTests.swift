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

    @Test(arguments: ["build/", "build", "/build", "build/*", "build/**", "b*/**", "*"])
    func `an empty folder whose pattern leaves out all that is in it is neither sent nor made`(pattern: String)
        async throws
    {
        try await withPair { phone, laptop in
            func focus(_ path: String) -> FolderFocus { FolderFocus(entries: [Array(path.utf8)]) }
            try phone.write(pattern + "\n", to: ".salternignore")
            try make("build", on: phone)
            let report = try await phone.sync.run()
            #expect(report.sentFolders.isEmpty && report.ignored == ["build/"])
            #expect(try await phone.sync.plan().sentFolders.isEmpty)
            #expect(try await phone.sync.run(within: focus("build")).sentFolders.isEmpty)
            try phone.write("one", to: "build/a")
            #expect(try await !phone.sync.run(within: focus("build/a")).hasDone)
            try phone.remove("build/a")
            #expect(try await !phone.sync.run(within: focus("build/a")).hasDone)
            // A device without the patterns has sent it.
            let item = PlainItem(
                title: try FolderPath("build").folderTitle, body: SecureBytes(copying: [UInt8]()))
            try await laptop.vault.put(item, .random(), in: "files")
            try await laptop.vault.sync()
            try phone.remove("build")
            #expect(try await !phone.sync.run().hasDone)
            #expect(try await !laptop.sync.run().fetchedFolders.contains { $0.text == "build" })
            #expect(phone.folders().isEmpty && laptop.folders().isEmpty)
            #expect(try await phone.vault.ids("files").count == 2)
            // Without the pattern it is a folder like all others.
            try phone.remove(".salternignore")
            #expect(try await phone.sync.run().fetchedFolders.map(\.text) == ["build"])
        }
    }

    @Test(arguments: ["build/*.o", "build/*\n!build/keep", "build/*/", "other/**"])
    func `an empty folder in which something could be kept is sent`(patterns: String) async throws {
        try await withPair { phone, laptop in
            try phone.write(patterns + "\n", to: ".salternignore")
            try make("build", on: phone)
            let isKept = !patterns.contains("!")
            #expect(try await phone.sync.run().sentFolders.map(\.text) == (isKept ? ["build"] : []))
            try phone.write("one", to: "build/keep")
            try await phone.sync.run()
            try await laptop.sync.run()
            #expect(laptop.read("build/keep") == "one")
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

    @Test func `a folder that two devices create at once stays`() async throws {
        try await withPair { phone, laptop in
            for device in [phone, laptop] { try make("a/b", on: device) }
            // Both send an item of their own before either has seen the other.
            for device in [phone, laptop] {
                let folder = try FolderPath("a/b")
                let item = PlainItem(title: folder.folderTitle, body: SecureBytes(copying: [UInt8]()))
                try await device.vault.put(item, .random(), in: "files")
            }
            for device in [phone, laptop, phone, laptop] { try await device.sync.run() }
            for device in [phone, laptop] {
                #expect(device.folders() == ["a", "a/b"])
                #expect(try await device.vault.ids("files").count == 1)
                #expect(try await !device.sync.run().hasDone)
            }
        }
    }

    @Test func `a folder stays when its last file is deleted elsewhere while it is watched`() async throws {
        try await withPair { phone, laptop in
            try make("a/b", on: phone)
            try await phone.sync.run()
            try phone.write("one", to: "a/b/file")
            try await phone.sync.run()
            try await laptop.sync.run()
            try phone.remove("a/b/file")
            try await phone.sync.run()
            #expect(try await laptop.sync.run(within: FolderFocus()).deletedHere.map(\.text) == ["a/b/file"])
            #expect(laptop.folders() == ["a", "a/b"])
            #expect(try await !laptop.sync.run().hasDone)
        }
    }

    @Test func `another spelling of a folder's name removes nothing where the disk takes both for one`() throws {
        let (lower, upper) = (try FolderPath("a/b"), try FolderPath("A/B"))
        let (old, new) = (ItemID.random(), ItemID.random())
        var view = FolderView()
        view.foldsCase = true
        view.knownFolders = [old: KnownFolder(path: lower, stamp: ItemStamp(revision: 1))]
        view.remoteFolders = [new: RemoteFolder(path: upper)]
        view.buried = [old]
        view.folders = [try FolderPath("a"), lower]
        view.emptyFolders = [lower]
        #expect(EmptyFolderDecision.decide(view) == [.noteFolder(new, upper), .forgetFolder(old)])
        view.foldsCase = false
        #expect(EmptyFolderDecision.decide(view) == [.makeFolderHere(new, upper), .removeFolderHere(old, lower)])
    }

    @Test func `a folder goes with all folders in it, and stays with one of its own or a file`() throws {
        func ids(_ paths: [String]) throws -> [ItemID: KnownFolder] {
            Dictionary(
                uniqueKeysWithValues: try paths.map { (.random(), KnownFolder(path: try FolderPath($0))) })
        }
        var view = FolderView()
        view.knownFolders = try ids(["a", "a/b", "a/c/d"])
        view.buried = Set(view.knownFolders.keys)
        view.folders = Set(try ["a", "a/b", "a/c", "a/c/d"].map { try FolderPath($0) })
        view.emptyFolders = Set(try ["a/b", "a/c/d"].map { try FolderPath($0) })
        func removed(_ view: FolderView) -> [String] {
            EmptyFolderDecision.decide(view).compactMap { action in
                if case .removeFolderHere(_, let path) = action { path.text } else { nil }
            }
        }
        func forgotten(_ view: FolderView) -> Int {
            EmptyFolderDecision.decide(view).count { if case .forgetFolder = $0 { true } else { false } }
        }
        #expect(removed(view) == ["a/c/d", "a/b"] && forgotten(view) == 0)
        var other = view
        other.folders.insert(try FolderPath("a/own"))
        other.emptyFolders.insert(try FolderPath("a/own"))
        #expect(removed(other) == ["a/c/d", "a/b"] && forgotten(other) == 1)
        view.local = [try FolderPath("a/c/file"): FileContent(digest: [], byteCount: 0, isExecutable: false)]
        #expect(removed(view) == ["a/c/d", "a/b"] && forgotten(view) == 1)
    }

    /// To Swift a slash behind this sign is one character with it.
    @Test func `a folder whose name ends with a sign that binds what follows is one like others`() async throws {
        try await withPair { phone, laptop in
            try make("x\u{600}", on: phone)
            #expect(try await phone.sync.run().sentFolders.map(\.text) == ["x\u{600}"])
            try await laptop.sync.run()
            #expect(laptop.folders() == ["x\u{600}"])
            #expect(try await !phone.sync.run().hasDone)
        }
    }

    /// Titles come from other devices and are not trusted.
    @Test(arguments: ["/", "//", "a//", "../x/", "a/../b/", "./", "/a/", ".saltern/x/", "a/.SALTERN/", "a\0/"])
    func `a title that leads elsewhere is reported, and nothing is made`(title: String) async throws {
        try await withPair { phone, laptop in
            let item = PlainItem(title: title, body: SecureBytes(copying: [UInt8]()))
            try await phone.vault.put(item, .random(), in: "files")
            try await phone.vault.sync()
            let report = try await laptop.sync.run()
            #expect(report.warnings.map(\.kind) == [.refusedTitle] && !report.hasDone)
            #expect(laptop.folders().isEmpty)
            #expect(try await laptop.vault.ids("files").count == 1)
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
