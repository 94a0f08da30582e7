import CPlatform
import Cryptography
import Foundation
import SalternTesting
import Testing

@testable import SalternClient

/// File systems that have less than Linux's own.
@Suite struct FolderFileSystemTests {
    /// The kernel's files without the flags of `renameat2`.
    private static func without(_ number: Int32) -> DiskFolders {
        DiskFolders(
            renaming: RenameCall { _, _, _, _, _ in
                errno = number
                return -1
            })
    }

    @Test(arguments: [ENOSYS, EINVAL, EPERM])
    func `a folder is kept in sync where nothing is renamed with flags`(_ number: Int32) async throws {
        try await LiveServer.with { server in
            let phone = try await FolderDevice("phone", server, isFirst: true)
            let laptop = try await FolderDevice("laptop", server, isFirst: false)
            let (poor, _) = FolderDevice.syncs(laptop.vault, laptop.folder.path, "laptop", Self.without(number))
            try phone.write("one", to: "a/b")
            try phone.write("one", to: "c")
            try phone.write("two", to: "d")
            try await phone.sync.run()
            #expect(try await poor.run().downloaded.count == 3)
            try phone.write("changed", to: "a/b")
            try phone.rename("c", "e/c")
            try phone.remove("d")
            try await phone.sync.run()
            let report = try await poor.run()
            #expect(report.warnings.isEmpty && report.conflicts.isEmpty)
            #expect(laptop.files() == phone.files())
            #expect(laptop.trash() == ["one", "two"])
            try laptop.write("of the laptop", to: "a/b")
            try phone.write("of the phone", to: "a/b")
            try await phone.sync.run()
            #expect(try await poor.run().conflicts.count == 1)
            try await phone.sync.run()
            #expect(laptop.files() == phone.files() && phone.files().count == 3)
            #expect(try FileManager.default.contentsOfDirectory(atPath: laptop.url(".saltern/parts").path) == [])
        }
    }

    @Test func `renaming in steps writes over nothing`() throws {
        let folder = try TemporaryDirectory()
        let disk = Self.without(EINVAL)
        let root = try #require(disk.openRoot(folder.path))
        for name in ["a", "b"] { try Data(name.utf8).write(to: URL(filePath: folder.path + "/" + name)) }
        #expect(!disk.rename("a", in: root, to: "b", in: root))
        #expect(disk.takeFailure()?.number == EEXIST && disk.takeFailure() == nil)
        #expect(disk.makeFolder("inner", in: root) && disk.makeFolder("empty", in: root))
        #expect(!disk.rename("inner", in: root, to: "empty", in: root))
        #expect(!disk.rename("a", in: root, to: "empty", in: root))
        #expect(!disk.rename("missing", in: root, to: "c", in: root))
        #expect(disk.rename("inner", in: root, to: "other", in: root))
        #expect(disk.exchange("a", in: root, with: "b", in: root))
        #expect(!disk.exchange("a", in: root, with: "missing", in: root))
        #expect(disk.rename("a", in: root, to: "c", in: root))
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted()
        #expect(names == ["b", "c", "empty", "other"])
        let read = { try String(contentsOf: URL(filePath: folder.path + "/" + $0), encoding: .utf8) }
        #expect(try read("b") == "a" && read("c") == "b")
    }

    @Test func `a download that another process has begun is neither taken over nor removed`() throws {
        let folder = try TemporaryDirectory(.memory)
        let (one, two) = (try FolderTree(folder.path), try FolderTree(folder.path))
        let id = ItemID.random()
        var part = try one.parts.fetchPart(id)
        #expect(part != nil)
        #expect(try two.parts.fetchPart(id) == nil)
        two.parts.removeFetches()
        let path = folder.path + "/.saltern/parts/" + FolderParts.fetchPrefix + id.description
        #expect(FileManager.default.fileExists(atPath: path))
        part = nil
        #expect(try two.parts.fetchPart(id) != nil)
        two.parts.removeFetches()
        #expect(!FileManager.default.fileExists(atPath: path))
    }

    /// Every file of a mount looks executable, or none does, whatever is set.
    private struct OneMode: FolderSystem {
        let inner = DiskFolders()
        let mode: mode_t

        private func changed(_ status: stat) -> stat {
            var status = status
            if status.isFile { status.st_mode = status.st_mode & ~0o777 | mode }
            return status
        }

        func openRoot(_ path: String) -> Descriptor? { inner.openRoot(path) }
        func openFolder(_ name: String, in folder: Descriptor) -> Descriptor? { inner.openFolder(name, in: folder) }
        func openFile(_ name: String, in folder: Descriptor) -> Descriptor? { inner.openFile(name, in: folder) }
        func createFile(_ name: String, in folder: Descriptor) -> Descriptor? { inner.createFile(name, in: folder) }
        func openForAppending(_ name: String, in folder: Descriptor) -> Descriptor? {
            inner.openForAppending(name, in: folder)
        }
        func truncate(_ file: Descriptor, to count: Int64) -> Bool { inner.truncate(file, to: count) }
        func makeFolder(_ name: String, in folder: Descriptor) -> Bool { inner.makeFolder(name, in: folder) }
        func removeFolder(_ name: String, in folder: Descriptor) -> Bool { inner.removeFolder(name, in: folder) }
        func removeFile(_ name: String, in folder: Descriptor) { inner.removeFile(name, in: folder) }
        func rename(_ name: String, in from: Descriptor, to newName: String, in to: Descriptor) -> Bool {
            inner.rename(name, in: from, to: newName, in: to)
        }
        func rename(bytes: [UInt8], in folder: Descriptor, to name: String) -> Bool {
            inner.rename(bytes: bytes, in: folder, to: name)
        }
        func exchange(_ name: String, in one: Descriptor, with other: String, in two: Descriptor) -> Bool {
            inner.exchange(name, in: one, with: other, in: two)
        }
        func entry(_ name: String, in folder: Descriptor) -> FolderEntry? {
            if case .something(let status)? = inner.entry(name, in: folder) { return .something(changed(status)) }
            return inner.entry(name, in: folder)
        }
        func status(_ descriptor: Descriptor) -> stat? { inner.status(descriptor).map(changed) }
        func sync(_ descriptor: Descriptor) -> Bool { inner.sync(descriptor) }
        func write(_ bytes: UnsafeRawBufferPointer, to file: Descriptor) -> Bool { inner.write(bytes, to: file) }
        func read(_ file: Descriptor, at offset: Int64, into buffer: UnsafeMutableRawBufferPointer) -> Int? {
            inner.read(file, at: offset, into: buffer)
        }
        /// As `fchmod` of a mount that has no modes.
        func set(_ file: Descriptor, modified: timespec?, mode: mode_t) -> Bool { false }
        func names(in folder: Descriptor) -> [[UInt8]]? { inner.names(in: folder) }
    }

    @Test(arguments: [mode_t(0o777), 0o600])
    func `where the executable bit is not kept, none is changed for others`(_ mode: mode_t) async throws {
        try await LiveServer.with { server in
            let phone = try await FolderDevice("phone", server, isFirst: true)
            let laptop = try await FolderDevice("laptop", server, isFirst: false)
            let (mount, _) = FolderDevice.syncs(laptop.vault, laptop.folder.path, "laptop", OneMode(mode: mode))
            try phone.write("#!", to: "run")
            try phone.write("text", to: "text")
            try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: phone.url("run").path)
            try await phone.sync.run()
            #expect(try await mount.run().downloaded.count == 2)
            for _ in 0..<2 {
                let report = try await mount.run()
                #expect(report.uploaded.isEmpty && report.downloaded.isEmpty && report.warnings.isEmpty)
            }
            try laptop.rename("run", "other")
            try laptop.write("changed", to: "text")
            try laptop.write("new", to: "new")
            try await mount.run()
            try await phone.sync.run()
            func isExecutable(_ name: String) -> Bool {
                FileManager.default.isExecutableFile(atPath: phone.url(name).path)
            }
            #expect(phone.files() == ["other": "#!", "text": "changed", "new": "new"])
            // The one who runs the tests may do anything but run what nobody may.
            #expect(isExecutable("other") && !isExecutable("text") && !isExecutable("new"))
        }
    }

    @Test(arguments: [mode_t(0o777), 0o600])
    func `a hidden executable arrives on a mount only where no file is executable`(_ mode: mode_t) async throws {
        try await LiveServer.with { server in
            let phone = try await FolderDevice("phone", server, isFirst: true)
            let laptop = try await FolderDevice("laptop", server, isFirst: false)
            let (mount, _) = FolderDevice.syncs(laptop.vault, laptop.folder.path, "laptop", OneMode(mode: mode))
            try phone.write("#!", to: ".git/hooks/a")
            try phone.write("text", to: ".git/config")
            try FileManager.default.setAttributes(
                [.posixPermissions: 0o755], ofItemAtPath: phone.url(".git/hooks/a").path)
            try await phone.sync.run()
            let report = try await mount.run()
            let isLeft = mode == 0o777
            #expect(laptop.files() == (isLeft ? [".git/config": "text"] : phone.files()))
            #expect(report.warnings.map(\.kind) == (isLeft ? [.hiddenExecutable] : []))
            #expect(try await phone.sync.run().deletedHere.isEmpty)
        }
    }

    @Test func `a file that cannot be written says why`() async throws {
        try await LiveServer.with { server in
            let phone = try await FolderDevice("phone", server, isFirst: true)
            let laptop = try await FolderDevice("laptop", server, isFirst: false)
            let (full, _) = FolderDevice.syncs(laptop.vault, laptop.folder.path, "laptop", Self.without(ENOSPC))
            try phone.write("one", to: "a")
            try await phone.sync.run()
            // The marker cannot be exchanged either.
            let warning = try #require(try await full.run().warnings.first { $0.path == "a" })
            #expect(warning.kind == .failed && warning.failure?.number == ENOSPC)
            #expect(warning.failure?.reason == "No space left on device")
        }
    }
}
