import CommandLineKit
import Foundation
import SalternClient
import SalternTesting
import Testing

@testable import saltern_client

@Suite struct ProfileTests {
    private static let pin = "sha256//" + String(repeating: "A", count: 43) + "="
    private static let next = "sha256//" + String(repeating: "B", count: 42) + "A="

    private func profile(pins: [String] = [pin]) -> AccountProfile {
        AccountProfile(
            server: "https://localhost:1", userid: "ada@example.org", pins: pins, certificate: nil,
            saltPrefix: "com.example:", deviceName: "phone")
    }

    @Test func `profiles and stores are where XDG says, and relative paths do not count`() throws {
        let folder = "saltern-client/accounts/ada"
        let named = try ProfileStore(["HOME": "/h", "XDG_DATA_HOME": "/d", "XDG_CONFIG_HOME": "/c"])
        let ada = try AccountName("ada")
        #expect(named.folder(ada).path == "/d/\(folder)")
        let relative = try ProfileStore(["HOME": "/h", "XDG_DATA_HOME": "d", "XDG_CONFIG_HOME": ""])
        #expect(relative.folder(ada).path == "/h/.local/share/\(folder)")
        #expect(throws: CommandFailure.self) { try ProfileStore([:]) }
    }

    @Test func `any name is one file, and is found again`() throws {
        let directory = try TemporaryDirectory()
        let profiles = try ProfileStore(["HOME": directory.path])
        let longest = String(repeating: "界", count: 26) + "abcdef"
        let names = try ["../../etc/passwd", ".", "ada@example.org", "ä ö%2F", "a/b", longest].map(AccountName.init)
        for name in names {
            try profiles.save(profile(), name)
            #expect(try profiles.profile(name) == profile())
            #expect(profiles.folder(name).deletingLastPathComponent().lastPathComponent == "accounts")
        }
        #expect(Set(profiles.names()) == Set(names))
        #expect(profiles.names().map(\.description) == names.map(\.description).sorted())
        let folder = directory.path + "/.config/saltern-client/accounts"
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder).count == names.count)
        let file = try FileManager.default.attributesOfItem(atPath: folder + "/ada@example.org.json")
        #expect(file[.posixPermissions] as? Int == 0o600)
        profiles.remove(names[4])
        #expect(try profiles.profile(names[4]) == nil)
        #expect(profiles.names().count == names.count - 1)
    }

    @Test func `a profile that cannot be read is an error, and not an account that is new`() throws {
        let directory = try TemporaryDirectory()
        let profiles = try ProfileStore(["HOME": directory.path])
        let ada = try AccountName("ada")
        #expect(try profiles.profile(ada) == nil)
        // A folder in its place cannot be read, not even by root.
        try FileManager.default.createDirectory(
            atPath: directory.path + "/.config/saltern-client/accounts/ada.json", withIntermediateDirectories: true)
        #expect(throws: CommandFailure.self) { try profiles.profile(ada) }
    }

    @Test(arguments: ["", String(repeating: "界", count: 27), String(repeating: "a", count: 241)])
    func `what no file can be called is no account's name`(_ name: String) {
        // Of an empty one the folder would be the one that holds all accounts.
        #expect(throws: UsageError.self) { try AccountName(name) }
    }

    private func service(active: [String], backup: [String]) throws -> ServiceDescription {
        let pins = String(decoding: try JSONEncoder().encode(["active": active, "backup": backup]), as: UTF8.self)
        let limits =
            #"{"useridBytes":1,"keyringBytes":1,"itemRequestBytes":1,"itemsPerPage":1,"changesPerPage":1,"#
            + #""batchOperations":1,"batchRequestBytes":1}"#
        let kdf =
            #"{"algorithm":"a","iterations":1,"minimumIterations":1,"maximumIterations":1,"keyLength":32}"#
        let json =
            #"{"name":"s","saltPrefix":"p","kdf":\#(kdf),"registration":"open","formats":[],"#
            + #""shares":{"formats":[],"anonymous":false},"limits":\#(limits),"pins":\#(pins)}"#
        return try JSONDecoder().decode(ServiceDescription.self, from: Data(json.utf8))
    }

    @Test func `pins that a pinned server publishes are learnt, and others are not`() throws {
        let learnt = profile().learning(from: try service(active: [Self.pin], backup: [Self.next]))
        #expect(learnt.publishedPins == [Self.pin, Self.next])
        #expect(learnt.pins == [Self.pin])
        #expect(profile().learning(from: try service(active: ["sha256//x"], backup: [])) == profile())
        let unpinned = profile(pins: [])
        #expect(unpinned.learning(from: try service(active: [Self.pin], backup: [])) == unpinned)
    }

    @Test func `published pins are added to the profile that is stored by then`() throws {
        let directory = try TemporaryDirectory()
        let profiles = try ProfileStore(["HOME": directory.path])
        let ada = try AccountName("ada")
        let published = try service(active: [Self.pin], backup: [Self.next])
        try profiles.learn(from: published, over: profile(), ada)
        #expect(try profiles.profile(ada) == nil)
        var stored = profile()
        stored.deviceName = "tablet"
        try profiles.save(stored, ada)
        try profiles.learn(from: published, over: profile(), ada)
        stored.publishedPins = [Self.pin, Self.next]
        #expect(try profiles.profile(ada) == stored)
        // They are pins of the server that was contacted.
        stored.server = "https://localhost:2"
        stored.publishedPins = []
        try profiles.save(stored, ada)
        try profiles.learn(from: published, over: profile(), ada)
        #expect(try profiles.profile(ada) == stored)
    }

    @Test func `an item is named by its id, by the beginning of it, or by its title`() throws {
        func summary(_ id: String, _ title: String?) throws -> ItemSummary {
            ItemSummary(
                id: try #require(ItemID(id)), collection: "notes", title: title, byteCount: 1, isUnsent: false)
        }
        let items = [
            try summary("aaaaaaaa-0000-4000-8000-000000000001", "one"),
            try summary("aaaaaaaa-0000-4000-8000-000000000002", "two"),
            try summary("bbbbbbbb-0000-4000-8000-000000000003", "two"),
        ]
        func find(_ text: String) throws -> ItemID { try ItemReference(text).find(in: items).id }
        #expect(try find("AAAAAAAA-0000-4000-8000-000000000001") == items[0].id)
        #expect(try find("one") == items[0].id)
        #expect(try find("bbbb") == items[2].id)
        for (text, code) in [("two", "ambiguous"), ("aaaa", "ambiguous"), ("bbb", "not_found"), ("x", "not_found")] {
            #expect { try find(text) } throws: {
                ($0 as? CommandFailure)?.code == code && ($0 as? CommandFailure)?.status == 66
            }
        }
    }
}
