import Foundation
import SalternTesting
import Testing

@testable import SalternClient

/// What a walk through a folder makes of what it cannot look at: nobody has deleted it.
@Suite struct FolderWalkTests {
    /// Two devices that have `a` and `sub/b`.
    private func withTwoMemories(_ body: (_ phone: MemoryDevice, _ laptop: MemoryDevice) async throws -> Void)
        async throws
    {
        let devices = try await MemoryPerson(1).devices
        for device in devices { try device.begin("files", foldsCase: false) }
        #expect(devices[0].put("one", at: "a") && devices[0].put("two", at: "sub/b"))
        for device in devices.prefix(2) { _ = try await device.run(isAgreeing: true) }
        try await body(devices[0], devices[1])
    }

    @Test func `where nobody can tell what is there, nothing was deleted`() async throws {
        try await withTwoMemories { phone, laptop in
            for name in ["a", "sub", "b"] {
                phone.disk.fail(at: name)
                let report = try await phone.run(isAgreeing: true)
                #expect(report.warnings == [FolderWarning(kind: .unreadable, path: name == "b" ? "sub/b" : name)])
                _ = try await laptop.run(isAgreeing: true)
                #expect(laptop.files() == ["a": "one", "sub/b": "two"], "\(name)")
            }
            // Nor is anything else, for the disk may have gone while it was looked at.
            #expect(phone.drop("a"))
            #expect(try await phone.run(isAgreeing: true).deletedThere.isEmpty)
            phone.disk.fail(at: nil)
            #expect(try await phone.run(isAgreeing: true).deletedThere.map(\.text) == ["a"])
        }
    }

    @Test func `a walk that is cancelled ends in the middle of a file, and has not seen everything`() async throws {
        let folder = try TemporaryDirectory(.memory)
        for name in ["a", "b"] {
            try Data(count: 1 << 20).write(to: URL(filePath: folder.path + "/" + name))
        }
        let (scan, read) = try await Task {
            let tree = try FolderTree(folder.path)
            var read = 0
            tree.onRead = { count in
                read = count
                withUnsafeCurrentTask { $0?.cancel() }
            }
            var report = FolderReport()
            return (tree.walk(into: &report), read)
        }.value
        #expect(read > 0 && read < 1 << 20)
        #expect(!scan.isComplete && scan.files.isEmpty)
    }

    @Test func `what the kernel cannot tell is not taken for nothing`() throws {
        let folder = try TemporaryDirectory(.memory)
        let disk = DiskFolders()
        let root = try #require(disk.openRoot(folder.path))
        let isNothing = if case .nothing? = disk.entry("missing", in: root) { true } else { false }
        #expect(isNothing)
        // A name that is too long stands for a disk that fails: any error but that there is none.
        #expect(disk.entry(String(repeating: "a", count: 300), in: root) == nil)
    }

    @Test func `another disk in the folder is left alone, and what it hides was not deleted`() async throws {
        try await withTwoMemories { phone, laptop in
            phone.disk.mount(at: "sub")
            #expect(laptop.put("three", at: "sub/c"))
            _ = try await laptop.run(isAgreeing: true)
            let report = try await phone.run(isAgreeing: true)
            #expect(report.warnings.contains(FolderWarning(kind: .unreadable, path: "sub")))
            #expect(report.deletedThere.isEmpty && report.downloaded.isEmpty)
            #expect(phone.files() == ["a": "one"])
            phone.disk.unmount(at: "sub")
            #expect(try await phone.run(isAgreeing: true).warnings.isEmpty)
            _ = try await laptop.run(isAgreeing: true)
            #expect(phone.files() == ["a": "one", "sub/b": "two", "sub/c": "three"])
            #expect(laptop.files() == phone.files())
        }
    }

    private func withTwoDisks(_ body: (_ phone: FolderDevice, _ laptop: FolderDevice) async throws -> Void)
        async throws
    {
        try await LiveServer.with { server in
            let phone = try await FolderDevice("phone", server, isFirst: true)
            let laptop = try await FolderDevice("laptop", server, isFirst: false)
            try phone.write("one", to: "a")
            try phone.write("two", to: "sub/b")
            try await phone.sync.run()
            try await laptop.sync.run()
            try await body(phone, laptop)
        }
    }

    /// Renames what is in the folder to bytes that are no UTF-8, or back.
    private func rename(_ from: [UInt8], _ to: [UInt8], in device: FolderDevice) {
        let prefix = Array((device.folder.path + "/").utf8)
        let result = (prefix + from + [0]).withUnsafeBytes { from in
            (prefix + to + [0]).withUnsafeBytes { to in
                Glibc.rename(
                    from.baseAddress?.assumingMemoryBound(to: CChar.self),
                    to.baseAddress?.assumingMemoryBound(to: CChar.self))
            }
        }
        #expect(result == 0)
    }

    @Test(arguments: ["a", "sub"])
    func `what got a name that nobody else can have was not deleted`(name: String) async throws {
        try await withTwoDisks { phone, laptop in
            let unusable: [UInt8] = [0x64, 0xe9, 0x6a, 0xe0]
            rename(Array(name.utf8), unusable, in: phone)
            let report = try await phone.agreeing.run()
            #expect(report.warnings.map(\.kind) == [.unusableName])
            #expect(report.deletedThere.isEmpty)
            try await laptop.agreeing.run()
            #expect(laptop.files() == ["a": "one", "sub/b": "two"])
            rename(unusable, Array(name.utf8), in: phone)
            #expect(try await phone.agreeing.run().warnings.isEmpty)
            #expect(phone.files() == ["a": "one", "sub/b": "two"])
        }
    }

    @Test func `pipes, sockets and links are left alone, and what they have replaced was not deleted`() async throws {
        try await withTwoDisks { phone, laptop in
            try phone.remove("a")
            try phone.remove("sub/b")
            #expect(mkfifo(phone.url("a").path, 0o600) == 0)
            try bindSocket(phone.url("sub/b").path)
            try FileManager.default.createSymbolicLink(atPath: phone.url("l").path, withDestinationPath: "/etc/passwd")
            let report = try await phone.agreeing.run()
            #expect(
                Set(report.warnings) == [
                    FolderWarning(kind: .specialFile, path: "a"), FolderWarning(kind: .specialFile, path: "sub/b"),
                    FolderWarning(kind: .link, path: "l"),
                ])
            #expect(report.deletedThere.isEmpty && report.uploaded.isEmpty && report.downloaded.isEmpty)
            try await laptop.agreeing.run()
            #expect(laptop.files() == ["a": "one", "sub/b": "two"])
        }
    }

    private func bindSocket(_ path: String) throws {
        let socket = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        defer { close(socket) }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        try #require(path.utf8.count < MemoryLayout.size(ofValue: address.sun_path))
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
        let result = withUnsafePointer(to: address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(socket, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        #expect(result == 0)
    }
}
