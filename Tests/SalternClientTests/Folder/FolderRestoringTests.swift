import Foundation
import SalternTesting
import Testing

@testable import SalternClient

/// Files that come back from the trash of a folder.
@Suite struct FolderRestoringTests {
    private func withPair(_ body: (FolderDevice, FolderDevice) async throws -> Void) async throws {
        try await LiveServer.with { server in
            let phone = try await FolderDevice("phone", server, isFirst: true)
            let laptop = try await FolderDevice("laptop", server, isFirst: false)
            try await body(phone, laptop)
        }
    }

    @Test func `what was deleted elsewhere is listed with its path, and comes back on all devices`() async throws {
        try await withPair { phone, laptop in
            for path in ["a/b/file", "other"] { try phone.write("one " + path, to: path) }
            try await phone.sync.run()
            try await laptop.sync.run()
            try phone.remove("a")
            try phone.write("two", to: "other")
            try await phone.sync.run()
            #expect(try await laptop.sync.trash().isEmpty)
            try await laptop.sync.run()
            let trash = try await laptop.sync.trash()
            #expect(trash.map(\.path.text) == ["a/b/file", "other"] && trash[0].byteCount == 12)
            #expect(try await laptop.sync.restore(trash[0].name).text == "a/b/file")
            // The path of the other one is taken.
            #expect(try await laptop.sync.restore(trash[1].name).text == "other (restored)")
            #expect(try await laptop.sync.trash().isEmpty)
            #expect(Set(try await laptop.sync.run().uploaded.map(\.text)) == ["a/b/file", "other (restored)"])
            try await phone.sync.run()
            #expect(phone.read("a/b/file") == "one a/b/file" && phone.read("other (restored)") == "one other")
            #expect(phone.read("other") == "two")
        }
    }

    @Test func `a file is restored beside what has the place of its folder`() async throws {
        try await withPair { phone, laptop in
            for path in ["a/b/c/file", "x"] { try phone.write("one " + path, to: path) }
            try await phone.sync.run()
            try await laptop.sync.run()
            try phone.remove("a")
            try phone.write("a file", to: "a")
            try await phone.sync.run()
            try await laptop.sync.run()
            #expect(laptop.read("a") == "a file")
            try laptop.write("taken, too", to: "a (restored)")
            let name = try #require(try await laptop.sync.trash().first?.name)
            #expect(try await laptop.sync.restore(name).text == "a (restored, 2)/b/c/file")
            try await laptop.sync.run()
            try await phone.sync.run()
            #expect(phone.read("a (restored, 2)/b/c/file") == "one a/b/c/file")
            #expect(phone.read("a") == "a file" && phone.read("a (restored)") == "taken, too")
        }
    }

    @Test func `a file is restored beside a folder that has its name, and beside a link in the place of its folder`()
        async throws
    {
        try await withPair { phone, laptop in
            for path in ["a", "b/file"] { try phone.write("one " + path, to: path) }
            try await phone.sync.run()
            try await laptop.sync.run()
            for path in ["a", "b"] { try phone.remove(path) }
            try await phone.sync.run()
            try await laptop.sync.run()
            try laptop.write("new", to: "a/inner")
            let elsewhere = try TemporaryDirectory(.memory)
            try FileManager.default.createSymbolicLink(
                atPath: laptop.url("b").path, withDestinationPath: elsewhere.path)
            let trash = try await laptop.sync.trash()
            #expect(trash.map(\.path.text) == ["a", "b/file"])
            var places: [String] = []
            for entry in trash { places.append(try await laptop.sync.restore(entry.name).text) }
            #expect(places == ["a (restored)", "b (restored)/file"])
            #expect(try FileManager.default.contentsOfDirectory(atPath: elsewhere.path).isEmpty)
            #expect(laptop.read("a (restored)") == "one a" && laptop.read("b (restored)/file") == "one b/file")
        }
    }

    @Test func `what it costs to restore a file does not depend on how many are in the trash`() async throws {
        try await withPair { phone, laptop in
            for number in 0..<20 { try phone.write("one \(number)", to: "\(number)") }
            try await phone.sync.run()
            try await laptop.sync.run()
            let disk = CountedFolders()
            let (sync, _) = FolderDevice.syncs(laptop.vault, laptop.folder.path, "laptop", disk)
            for number in 0..<20 { try phone.write("two \(number)", to: "\(number)") }
            try await phone.sync.run()
            try await sync.run()
            let trash = try await sync.trash()
            #expect(trash.count == 20)
            _ = disk.takeListedNames()
            for entry in trash { try await sync.restore(entry.name) }
            #expect(disk.takeListedNames() == 0)
            #expect(try await sync.trash().isEmpty)
        }
    }

    @Test func `a day that a person has written is no reason to end`() throws {
        for name in ["\(Int.max)-\(ItemID.random())-a", "-1-\(ItemID.random())-a", "x", "2932897-\(ItemID.random())-a"]
        {
            #expect(FolderTrash.day(ofName: name) == 0)
        }
        #expect(FolderTrash.day(ofName: "20000-\(ItemID.random())-a") == 20_000)
    }

    @Test func `a name that is not in the trash is not found, and leads nowhere else`() async throws {
        try await withPair { phone, _ in
            #expect(try await phone.sync.trash().isEmpty)
            #expect(!phone.has(".saltern"))
            try phone.write("one", to: "a")
            try await phone.sync.run()
            try phone.write("mine", to: ".saltern/trash/mine")
            let folder = "20000-\(ItemID.random())-a"
            try phone.write("mine", to: ".saltern/trash/\(folder)/file")
            for name in [
                "mine", "../folder", "", "a", "20000-\(ItemID.random())-a", folder + "/../mine",
            ] {
                await #expect {
                    try await phone.sync.restore(name)
                } throws: { if case FolderError.vault(.notFound) = $0 { true } else { false } }
            }
            #expect(try await phone.sync.trash().isEmpty)
            #expect(phone.read(".saltern/trash/mine") == "mine")
        }
    }
}
