import CommandLineKit
import Cryptography
import Foundation
import SalternClient
import SalternTesting
import Testing

@testable import saltern_client

@Suite struct EditingTests {
    /// The folder of an account, which need not exist: only its path counts.
    private let account = FileManager.default.temporaryDirectory.appending(path: "saltern-\(UUID())/account")

    private func contents(_ path: String) -> String? {
        FileManager.default.contents(atPath: path).map { String(decoding: $0, as: UTF8.self) }
    }

    private func withFile(_ body: (PrivateFolder, String) async throws -> Void) async throws {
        let folder = try PrivateFolder([:], of: account)
        defer { folder.wipe() }
        let file = try Array("Buy salt.\n".utf8).withUnsafeBytes { bytes throws(CommandFailure) in
            try folder.write("item.txt", bytes)
        }
        try await body(folder, file)
    }

    @Test func `two commands do not write one unfinished download`() throws {
        let folder = try TemporaryDirectory()
        let (item, target) = (ItemID.random(), folder.path + "/film")
        func append(_ text: String, to part: PartialFile) throws {
            try Array(text.utf8).withUnsafeBytes { bytes throws in try part.append(bytes) }
        }
        var first: PartialFile? = try PartialFile(of: item, for: target)
        try first.map { try append("one", to: $0) }
        #expect { try PartialFile(of: item, for: target) } throws: { ($0 as? CommandFailure)?.code == "file_in_use" }
        first = nil
        let next = try PartialFile(of: item, for: target)
        #expect(!next.isEmpty)
        try append(" two", to: next)
        try next.finish()
        #expect(contents(target) == "one two")
    }

    @Test func `an editor changes a file that only its owner can reach`() async throws {
        try await withFile { folder, file in
            let modes = try [folder.path, file].map {
                try FileManager.default.attributesOfItem(atPath: $0)[.posixPermissions] as? Int
            }
            #expect(modes == [0o700, 0o600])
            try await Editor(["EDITOR": "printf pepper >>"]).edit(file, in: folder)
            #expect(contents(file) == "Buy salt.\npepper")
            // VISUAL comes first, and temporary files go beside the file.
            try await Editor(["VISUAL": "printf %s \"$TMPDIR\" >", "EDITOR": "false"]).edit(file, in: folder)
            #expect(contents(file) == folder.path)
        }
    }

    @Test func `what is too long to edit is not read`() async throws {
        try await withFile { folder, file in
            let content = try EditItem.content(of: file, limit: 10)
            #expect(content?.count == 10)
            #expect {
                try EditItem.content(of: file, limit: 9)
            } throws: { ($0 as? CommandFailure)?.code == "too_long_to_edit" }
            #expect(try EditItem.content(of: folder.path + "/missing", limit: 9) == nil)
        }
    }

    @Test func `where there is no file system in memory nothing is written`() throws {
        let disk = try TemporaryDirectory(.disk)
        #expect {
            try PrivateFolder(["XDG_RUNTIME_DIR": disk.path], of: account, shared: disk.path)
        } throws: { ($0 as? CommandFailure)?.code == "no_memory_file_system" }
        #expect(try FileManager.default.contentsOfDirectory(atPath: disk.path).isEmpty)
        let folder = try PrivateFolder(["XDG_RUNTIME_DIR": disk.path], of: account)
        defer { folder.wipe() }
        #expect(folder.path.hasPrefix("/dev/shm/"))
    }

    @Test func `an editor that fails, and none, are errors`() async throws {
        try await withFile { folder, file in
            await #expect(throws: CommandFailure.self) { try await Editor(["EDITOR": "false"]).edit(file, in: folder) }
            #expect(throws: CommandFailure.self) { try Editor(["EDITOR": ""]) }
        }
    }

    @Test func `whoever ends the command ends the editor`() async throws {
        try await withFile { folder, file in
            let task = Task { try await Editor(["EDITOR": "exec sleep 600 #"]).edit(file, in: folder) }
            task.cancel()
            await #expect(throws: CancellationError.self) { try await task.value }
        }
    }

    @Test func `what was in the folder is overwritten, also what an editor has left`() throws {
        let folder = try PrivateFolder([:], of: account)
        // Another name for the same bytes shows what became of them.
        let witness = "/dev/shm/saltern-witness-\(UUID())"
        defer { unlink(witness) }
        try Data("left behind".utf8).write(to: URL(filePath: folder.path + "/.item.txt.swp"))
        try #require(link(folder.path + "/.item.txt.swp", witness) == 0)
        folder.wipe()
        #expect(!FileManager.default.fileExists(atPath: folder.path))
        #expect(FileManager.default.contents(atPath: witness) == Data(count: 11))
    }

    @Test func `what a process has left that was killed is found, by its account and nobody else`() throws {
        var folder: PrivateFolder? = try PrivateFolder([:], of: account)
        let path = try #require(folder?.path)
        defer { try? FileManager.default.removeItem(atPath: path) }
        #expect(PrivateFolder.abandoned([:], of: account).isEmpty)
        folder = nil
        // Another test's program may be about to begin, and has the lock with it until then.
        var found = PrivateFolder.abandoned([:], of: account)
        for _ in 0..<3_000 where found.isEmpty {
            usleep(10_000)
            found = PrivateFolder.abandoned([:], of: account)
        }
        #expect(found == [path])
        #expect(PrivateFolder.abandoned([:], of: account.deletingLastPathComponent()).isEmpty)
        // It is left as it is.
        #expect(FileManager.default.fileExists(atPath: path + "/.saltern-edit"))
    }

    @Test func `a folder on a disk is not used`() throws {
        let directory = try TemporaryDirectory(.disk)
        let folder = try PrivateFolder(["XDG_RUNTIME_DIR": directory.path], of: account)
        defer { folder.wipe() }
        #expect(!folder.path.hasPrefix(directory.path))
    }

    @Test func `text is shared as it is, and anything else as a file`() throws {
        let text = PlainItem(title: "a", body: SecureBytes(copying: Array("Buy salt.".utf8)))
        #expect(try SharedFile.payload(of: text) == text.body)
        #expect(SharedFile(payload: text.body) == nil)
        let bytes = PlainItem(title: "a.bin", body: SecureBytes(copying: [0, 255] as [UInt8]))
        let file = try #require(SharedFile(payload: try SharedFile.payload(of: bytes)))
        #expect(file.filename == "a.bin")
        #expect(file.data.bytes == [0, 255])
        let other = SecureBytes(copying: Array(#"{"filename":"a","mediaType":"b","data":"","more":"c"}"#.utf8))
        #expect(SharedFile(payload: other) == nil)
    }
}

@Suite struct ItemReferenceTests {
    @Test func `a title is found byte by byte first, and in its other form when there is no such one`() throws {
        let items = ["\u{e9}", "e\u{301}"].map {
            ItemSummary(id: .random(), collection: "notes", title: $0, byteCount: 1, isUnsent: false)
        }
        for item in items { #expect(try ItemReference(item.title ?? "").find(in: items).id == item.id) }
        #expect(try ItemReference("e\u{301}").find(in: [items[0]]).id == items[0].id)
        #expect(throws: CommandFailure.self) { try ItemReference("e").find(in: items) }
    }
}
