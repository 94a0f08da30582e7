import Foundation
import SalternTesting
import Testing

@testable import SalternClient

/// Executable files beneath names with a leading dot do not come into a folder by themselves.
@Suite struct HiddenExecutableTests {
    private static let hook = ".git/hooks/post-checkout"

    @Test func `a hook of another device is left alone until it is allowed, and everything else comes`() async throws {
        try await LiveServer.with { server in
            let phone = try await FolderDevice("phone", server, isFirst: true)
            let laptop = try await FolderDevice("laptop", server, isFirst: false)
            let files = [Self.hook, ".git/config", "run.sh", ".local/bin/tool", ".profile"]
            let executables = [Self.hook, "run.sh", ".local/bin/tool"]
            for path in files { try phone.write("one", to: path) }
            for path in executables { try phone.setExecutable(path) }
            try await phone.sync.run()
            for _ in 0..<2 {
                let report = try await laptop.sync.run()
                let warnings = report.warnings.filter { $0.kind == .hiddenExecutable }
                #expect(Set(warnings.map(\.path)) == [Self.hook, ".local/bin/tool"])
                #expect(Set(laptop.files().keys) == [".git/config", "run.sh", ".profile"])
            }
            // The device that has it hears of nothing, and keeps it.
            let report = try await phone.sync.run()
            #expect(report.warnings.isEmpty && report.deletedHere.isEmpty)
            #expect(try phone.isExecutable(Self.hook))
            try await laptop.allowing.run()
            #expect(laptop.read(Self.hook) == "one")
            #expect(try laptop.isExecutable(Self.hook))
            // What is here and the same needs no permission any more.
            #expect(try await laptop.sync.run().warnings.isEmpty)
        }
    }

    @Test func `a hidden file that becomes executable, is changed or is moved elsewhere does not arrive`() async throws
    {
        try await LiveServer.with { server in
            let phone = try await FolderDevice("phone", server, isFirst: true)
            let laptop = try await FolderDevice("laptop", server, isFirst: false)
            for path in [".git/a", ".git/b", "c"] { try phone.write(path, to: path) }
            try phone.setExecutable("c")
            try phone.write("d", to: ".git/d")
            try phone.setExecutable(".git/d")
            try await phone.sync.run()
            try await laptop.allowing.run()
            try phone.setExecutable(".git/a")
            try phone.rename("c", ".git/hooks/c")
            try phone.write("changed", to: ".git/d")
            try await phone.sync.run()
            let report = try await laptop.sync.run()
            #expect(Set(report.warnings.map(\.path)) == [".git/a", ".git/hooks/c", ".git/d"])
            #expect(try !laptop.isExecutable(".git/a"))
            #expect(laptop.read("c") == "c" && laptop.read(".git/d") == "d")
            // A person deletes it, and takes away the bit: neither needs a permission.
            try phone.remove(".git/d")
            try phone.setExecutable(".git/a", false)
            try phone.remove(".git/hooks/c")
            try await phone.sync.run()
            #expect(try await laptop.sync.run().warnings.isEmpty)
            #expect(Set(laptop.files().keys) == [".git/a", ".git/b"])
        }
    }

    @Test func `a file that becomes executable here and is changed elsewhere is one file with both`() async throws {
        try await LiveServer.with { server in
            let phone = try await FolderDevice("phone", server, isFirst: true)
            let laptop = try await FolderDevice("laptop", server, isFirst: false)
            try phone.write("one", to: "tool")
            try await phone.sync.run()
            try await laptop.sync.run()
            try laptop.setExecutable("tool")
            try phone.write("two", to: "tool")
            try await phone.sync.run()
            let report = try await laptop.sync.run()
            #expect(report.conflicts.isEmpty && report.renamed.isEmpty && report.unsent == 0)
            try await phone.sync.run()
            for device in [phone, laptop] {
                #expect(device.files() == ["tool": "two"])
                #expect(try device.isExecutable("tool"))
            }
            #expect(try await laptop.sync.run().uploaded.isEmpty)
        }
    }

    @Test func `a file that is changed here and becomes executable elsewhere is one file with both`() async throws {
        try await LiveServer.with { server in
            let phone = try await FolderDevice("phone", server, isFirst: true)
            let laptop = try await FolderDevice("laptop", server, isFirst: false)
            for path in ["tool", Self.hook] { try phone.write("one", to: path) }
            try await phone.sync.run()
            try await laptop.sync.run()
            for path in ["tool", Self.hook] {
                try phone.setExecutable(path)
                try laptop.write("two", to: path)
            }
            try await phone.sync.run()
            let report = try await laptop.sync.run()
            #expect(report.conflicts.isEmpty && report.renamed.isEmpty && report.unsent == 0)
            #expect(report.downloaded.map(\.text) == ["tool"] && report.uploaded.map(\.text) == ["tool"])
            // The permission does not arrive beneath a name with a leading dot.
            #expect(report.warnings.map(\.path) == [Self.hook])
            #expect(try !laptop.isExecutable(Self.hook))
            try await phone.sync.run()
            for device in [phone, laptop] {
                #expect(device.read("tool") == "two")
                #expect(try device.isExecutable("tool"))
            }
            #expect(phone.read(Self.hook) == "one" && laptop.read(Self.hook) == "two")
            #expect(laptop.files().count == 2 && phone.files().count == 2)
            #expect(try await laptop.sync.run().uploaded.isEmpty)
        }
    }

    @Test func `a hook that was made on both devices stays as it is on each`() async throws {
        try await LiveServer.with { server in
            let phone = try await FolderDevice("phone", server, isFirst: true)
            let laptop = try await FolderDevice("laptop", server, isFirst: false)
            for (device, text) in [(phone, "phone"), (laptop, "laptop")] {
                try device.write(text, to: Self.hook)
                try device.setExecutable(Self.hook)
            }
            for _ in 0..<3 {
                for device in [phone, laptop] { try await device.sync.run() }
            }
            #expect(phone.read(Self.hook) == "phone")
            #expect(laptop.read(Self.hook) == "laptop")
        }
    }
}

extension FolderDevice {
    /// The same folder, where a person has allowed hidden executables.
    fileprivate var allowing: FolderSync {
        var settings = FolderSettings(deviceName: name)
        settings.allowsHiddenExecutables = true
        return FolderSync(vault: vault, root: URL(filePath: folder.path), settings: settings)
    }

    fileprivate func setExecutable(_ path: String, _ isExecutable: Bool = true) throws {
        try FileManager.default.setAttributes(
            [.posixPermissions: isExecutable ? 0o755 : 0o644], ofItemAtPath: url(path).path)
    }

    fileprivate func isExecutable(_ path: String) throws -> Bool {
        let mode = try FileManager.default.attributesOfItem(atPath: url(path).path)[.posixPermissions] as? Int
        return (mode ?? 0) & 0o100 != 0
    }
}
