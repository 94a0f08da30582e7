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

    @Test func `a name that is not in the trash is not found, and leads nowhere else`() async throws {
        try await withPair { phone, _ in
            #expect(try await phone.sync.trash().isEmpty)
            #expect(!phone.has(".saltern"))
            try phone.write("one", to: "a")
            try await phone.sync.run()
            try phone.write("mine", to: ".saltern/trash/mine")
            for name in ["mine", "../folder", "", "a", "20000-\(ItemID.random())-a"] {
                await #expect {
                    try await phone.sync.restore(name)
                } throws: { if case FolderError.vault(.notFound) = $0 { true } else { false } }
            }
            #expect(try await phone.sync.trash().isEmpty)
            #expect(phone.read(".saltern/trash/mine") == "mine")
        }
    }
}
