import Foundation
import SalternTesting
import Testing

@testable import SalternClient

/// Folders with ignore files.
@Suite struct FolderIgnoreTests {
    private func withPair(_ body: (FolderDevice, FolderDevice) async throws -> Void) async throws {
        try await LiveServer.with { server in
            let phone = try await FolderDevice("phone", server, isFirst: true)
            let laptop = try await FolderDevice("laptop", server, isFirst: false)
            try await body(phone, laptop)
        }
    }

    private func titles(_ device: FolderDevice) async throws -> Set<String> {
        var titles: Set<String> = []
        for id in try await device.vault.ids("files") {
            if let title = try await device.vault.item(id)?.title { titles.insert(title) }
        }
        return titles
    }

    @Test func `what is ignored is not sent, and the ignore file is`() async throws {
        try await withPair { phone, laptop in
            try phone.write("*.log\nbuild/\n", to: ".salternignore")
            try phone.write("!keep.log\n", to: "inner/.salternignore")
            for path in ["a", "a.log", "build/a", "inner/b.log", "inner/keep.log", "inner/build/x/y"] {
                try phone.write(path, to: path)
            }
            let report = try await phone.sync.run()
            #expect(
                Set(report.uploaded.map(\.text)) == [".salternignore", "a", "inner/.salternignore", "inner/keep.log"])
            #expect(report.ignored == ["a.log", "build/", "inner/b.log", "inner/build/"])
            try await laptop.sync.run()
            #expect(Set(laptop.files().keys) == [".salternignore", "a", "inner/.salternignore", "inner/keep.log"])
            // What the laptop has under such names is its own.
            try laptop.write("of the laptop", to: "a.log")
            try laptop.write("of the laptop", to: "build/b")
            #expect(try await laptop.sync.run().uploaded.isEmpty)
            try await phone.sync.run()
            #expect(phone.read("a.log") == "a.log")
        }
    }

    @Test func `what becomes ignored is deleted neither on the server nor elsewhere`() async throws {
        try await withPair { phone, laptop in
            for path in ["a.log", "b.log", "c.log", "d.log", "e"] { try phone.write(path, to: path) }
            try await phone.sync.run()
            try await laptop.sync.run()
            try phone.write("*.log\n", to: ".salternignore")
            try phone.remove("a.log")
            try phone.write("changed", to: "b.log")
            let report = try await phone.sync.run()
            #expect(report.uploaded.map(\.text) == [".salternignore"] && report.deletedThere.isEmpty)
            try await laptop.sync.run()
            #expect(laptop.read("a.log") == "a.log" && laptop.read("b.log") == "b.log")
            // On the other side, too.
            try laptop.remove("c.log")
            try laptop.write("of the laptop", to: "d.log")
            try laptop.write("changed", to: "e")
            #expect(try await laptop.sync.run().uploaded.map(\.text) == ["e"])
            try await phone.sync.run()
            #expect(phone.read("c.log") == "c.log" && phone.read("d.log") == "d.log" && phone.read("e") == "changed")
            #expect(try await titles(phone) == [".salternignore", "a.log", "b.log", "c.log", "d.log", "e"])
            // When they are ignored no longer, what was missing meanwhile comes back, and changes are sent.
            try phone.write("", to: ".salternignore")
            #expect(Set(try await phone.sync.run().uploaded.map(\.text)) == [".salternignore", "b.log"])
            #expect(phone.read("a.log") == "a.log")
            let last = try await laptop.sync.run()
            #expect(last.conflicts.isEmpty && last.deletedThere.isEmpty)
            #expect(laptop.read("c.log") == "c.log" && laptop.read("b.log") == "changed")
            try await phone.sync.run()
            #expect(phone.files() == laptop.files() && phone.read("d.log") == "of the laptop")
            // From then on they are files like all others.
            try phone.remove("a.log")
            #expect(try await phone.sync.run().deletedThere.map(\.text) == ["a.log"])
        }
    }

    @Test func `a deletion and the end of the pattern between two rounds delete nothing`() async throws {
        try await withPair { phone, laptop in
            try phone.write("one", to: "a.log")
            try await phone.sync.run()
            try phone.write("*.log\n", to: ".salternignore")
            try await phone.sync.run()
            try phone.remove("a.log")
            try phone.remove(".salternignore")
            let report = try await phone.sync.run()
            #expect(report.deletedThere.map(\.text) == [".salternignore"])
            #expect(phone.files() == ["a.log": "one"])
            try await laptop.sync.run()
            #expect(laptop.files() == ["a.log": "one"])
        }
    }

    @Test func `a new device applies the patterns before it fetches or sends anything else`() async throws {
        try await withPair { phone, laptop in
            try phone.write("one", to: "secret/key")
            try phone.write("two", to: "a")
            try await phone.sync.run()
            try phone.write("secret/\n*.tmp\n", to: ".salternignore")
            try await phone.sync.run()
            try laptop.write("of the laptop", to: "b.tmp")
            let report = try await laptop.sync.run()
            #expect(Set(report.downloaded.map(\.text)) == [".salternignore", "a"] && report.uploaded.isEmpty)
            #expect(laptop.read("secret/key") == nil)
            #expect(try await titles(laptop).contains("secret/key"))
        }
    }

    @Test func `where two devices have other patterns, both apply until a person has merged them`() async throws {
        try await withPair { phone, laptop in
            try phone.write("*.phone\n", to: ".salternignore")
            try await phone.sync.run()
            try laptop.write("*.laptop\n", to: ".salternignore")
            for name in ["a.phone", "a.laptop", "a"] { try laptop.write(name, to: name) }
            let report = try await laptop.sync.run()
            #expect(report.conflicts.count == 1)
            #expect(laptop.read(".salternignore") == "*.phone\n")
            #expect(try await titles(laptop) == [".salternignore", report.conflicts[0].text, "a"])
            try laptop.remove(report.conflicts[0].text)
            #expect(try await laptop.sync.run().uploaded.map(\.text) == ["a.laptop"])
        }
    }

    @Test(arguments: [
        ("[x\n", IgnoreFault.Reason.openBracket), (String(repeating: "a\n", count: 40_000), .fileTooLong),
    ])
    func `a broken ignore file stops its folder, says why, and loses nothing`(
        text: String, reason: IgnoreFault.Reason
    ) async throws {
        try await withPair { phone, laptop in
            for path in ["a", "inner/b", "inner/c"] { try phone.write(path, to: path) }
            try await phone.sync.run()
            try await laptop.sync.run()
            try phone.write(text, to: "inner/.salternignore")
            try phone.remove("inner/b")
            try phone.write("new", to: "inner/new")
            try phone.write("changed", to: "a")
            for _ in 0..<2 {
                let report = try await phone.sync.run()
                #expect(report.warnings.map(\.path) == ["inner/.salternignore"])
                #expect(report.warnings.first?.kind == .ignoreFile && report.warnings.first?.isRepeated == false)
                #expect(report.warnings.first?.ignoreFault?.reason == reason)
                #expect(report.deletedThere.isEmpty)
            }
            // The laptop has it, too, and goes on with everything else.
            try laptop.write("of the laptop", to: "inner/c")
            try laptop.write("more", to: "d")
            let report = try await laptop.sync.run()
            #expect(Set(report.downloaded.map(\.text)) == ["a", "inner/.salternignore"])
            #expect(report.uploaded.map(\.text) == ["d"])
            // Another device corrects it; then everything that has waited is done.
            try laptop.write("*.tmp\n", to: "inner/.salternignore")
            try await laptop.sync.run()
            let last = try await phone.sync.run()
            #expect(last.warnings.isEmpty && last.deletedThere.map(\.text) == ["inner/b"])
            try await laptop.sync.run()
            #expect(phone.files() == laptop.files() && phone.read("inner/new") == "new")
            #expect(laptop.read("inner/c") == "of the laptop")
        }
    }

    @Test func `a link in the place of an ignore file is refused`() async throws {
        try await withPair { phone, _ in
            try phone.write("one", to: "a")
            try FileManager.default.createSymbolicLink(
                atPath: phone.url(".salternignore").path, withDestinationPath: "/dev/zero")
            let report = try await phone.sync.run()
            #expect(report.warnings.contains { $0.ignoreFault?.reason == .noFile })
            #expect(report.uploaded.isEmpty)
        }
    }

    @Test func `a name that cannot be synced stops no deletion when it is ignored`() async throws {
        try await withPair { phone, _ in
            try phone.write("one", to: "a")
            try await phone.sync.run()
            try #require(close(open(phone.folder.path + "/b\u{e4}.tmp", O_CREAT | O_WRONLY, 0o600)) == 0)
            let name = Array((phone.folder.path + "/").utf8) + [0xff] + Array(".tmp".utf8) + [0]
            try #require(close(open(name.map { CChar(bitPattern: $0) }, O_CREAT | O_WRONLY, 0o600)) == 0)
            try phone.remove("a")
            let held = try await phone.sync.run()
            #expect(held.deletedThere.isEmpty)
            #expect(held.warnings.map(\.path) == ["\\xff.tmp"])
            try phone.write("*.tmp\n", to: ".salternignore")
            let report = try await phone.sync.run()
            #expect(report.deletedThere.map(\.text) == ["a"] && report.warnings.isEmpty)
            #expect(report.ignored == ["b\u{e4}.tmp", "\\xff.tmp"].sorted())
        }
    }

    @Test func `rounds of a watched folder leave out what is ignored`() async throws {
        try await withPair { phone, laptop in
            func focus(_ paths: String...) -> FolderFocus {
                FolderFocus(entries: Set(paths.map { Array($0.utf8) }))
            }
            try phone.write("build/\n", to: ".salternignore")
            try phone.write("one", to: "a")
            try await phone.sync.run()
            try phone.write("two", to: "build/b")
            try phone.write("three", to: "c")
            let report = try await phone.sync.run(within: focus("build", "build/b", "c"))
            #expect(report.uploaded.map(\.text) == ["c"])
            // With an ignore file everything is examined.
            try phone.write("c\n", to: ".salternignore")
            let next = try await phone.sync.run(within: focus(".salternignore"))
            #expect(Set(next.uploaded.map(\.text)) == [".salternignore", "build/b"])
            // Also when it comes from elsewhere.
            try await laptop.sync.run()
            try laptop.write("a\n", to: ".salternignore")
            try await laptop.sync.run()
            try phone.write("changed", to: "a")
            try phone.write("changed", to: "c")
            let last = try await phone.sync.run(within: FolderFocus())
            #expect(last.downloaded.map(\.text) == [".salternignore"])
            #expect(last.uploaded.map(\.text) == ["c"])
        }
    }
}
