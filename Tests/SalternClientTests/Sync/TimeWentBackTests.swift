import Cryptography
import Foundation
import SalternClient
import SalternTesting
import Synchronization
import Testing

/// The server's database is restored from a backup while devices hold what came after it.
@Suite struct TimeWentBackTests {
    private let userid = "ada@example.org"
    private let password = Password("correct horse battery staple")

    private func texts(_ vault: Vault) async throws -> [String] {
        try await vault.collection("notes", of: Note.self).all().values.map(\.text).sorted()
    }

    @Test func `what is held is compared, what differs is kept twice, and only a tombstone deletes`() async throws {
        try await LiveServer.with { server in
            let (phone, laptop) = (try Device("phone", server), try Device("laptop", server))
            let vault = try await Vault.signUp(phone.settings, userid: userid, password: password)
            let other = try await Vault.logIn(laptop.settings, userid: userid, password: password)
            let notes = vault.collection("notes", of: Note.self)
            var ids: [String: ItemID] = [:]
            for name in ["same", "edited", "disputed", "offline", "deleted", "gone"] {
                ids[name] = try await notes.put(Note(text: name))
            }
            for vault in [vault, other] { try await vault.sync() }
            // Nobody may use the database while it is copied.
            await server.stop()
            try await server.database.withCopy { backup in
                func move(to database: String) async throws {
                    try await server.restart(timeout: .seconds(10), ["SALTERN_DATABASE_URL": database])
                    for device in [phone, laptop] { device.link.change(to: try CurlTransport(server.address())) }
                }
                try await move(to: server.database.serverURL)
                try await notes.put(Note(text: "edited since"), try #require(ids["edited"]))
                try await notes.put(Note(text: "disputed since"), try #require(ids["disputed"]))
                let created = try await notes.put(Note(text: "created since"))
                try await notes.delete(try #require(ids["deleted"]))
                for vault in [vault, other] { try await vault.sync() }
                try await notes.put(Note(text: "offline since"), try #require(ids["offline"]))

                try await move(to: backup.serverURL)
                let tablet = try Device("tablet", server)
                let third = try await Vault.logIn(tablet.settings, userid: userid, password: password)
                try await third.sync()
                #expect(try await texts(third) == ["deleted", "disputed", "edited", "gone", "offline", "same"])
                let there = third.collection("notes", of: Note.self)
                try await there.put(Note(text: "disputed there"), try #require(ids["disputed"]))
                try await there.delete(try #require(ids["gone"]))
                try await third.sync()

                let creations = Mutex<Set<String>>([])
                phone.link.setAnswer { request in
                    let names = Self.created(by: request)
                    creations.withLock { $0.formUnion(names) }
                    return nil
                }
                #expect(try await vault.sync().removed == [try #require(ids["gone"])])
                let all = [
                    "created since", "deleted", "disputed since", "disputed there", "edited", "edited since",
                    "offline since", "same",
                ]
                #expect(try await texts(vault) == all)
                #expect(try await vault.deletedItems().map(\.id) == [try #require(ids["gone"])])
                // What the server did not have was made there only where it still had nothing.
                let copies = try await vault.notices().compactMap(\.other)
                #expect(creations.withLock { $0 } == Set(([created] + copies).map(\.description)))
                let notices = try await vault.notices().map { "\($0.kind) \($0.item?.description ?? "")" }.sorted()
                let expected = try ["edited", "disputed"].map { "conflict \(try #require(ids[$0]))" }
                #expect(notices == (expected + ["keptUnlisted \(created)", "timeWentBack "]).sorted())
                #expect(try await vault.unsentCount() == 0)
                // Where the same was held nothing is lost either, and all come to the same in the end.
                for vault in [other, vault, third, other] { try await vault.sync() }
                // What the laptop held of "offline" the phone had seen when it changed it: that is no second version.
                let kept = Set(all)
                #expect(try await other.notices().contains { $0.kind == .timeWentBack })
                for vault in [vault, other, third] {
                    #expect(try await Set(texts(vault)) == kept)
                    #expect(try await texts(vault) == texts(third))
                    #expect(try await vault.unsentCount() == 0)
                }
                // It is over: from here on an older version is one again.
                let before = try await vault.notices().count
                try await notes.put(Note(text: "afterwards"), try #require(ids["same"]))
                for vault in [vault, other] { try await vault.sync() }
                #expect(
                    try await other.collection("notes", of: Note.self)[try #require(ids["same"])]?.text == "afterwards")
                #expect(try await vault.notices().count == before)
                try await move(to: server.database.serverURL)
            }
        }
    }

    /// The items that a request makes where the server has none.
    private static func created(by request: HTTPRequest) -> [String] {
        guard request.target == "/v1/items/batch", let body = request.body?.withUnsafeBytes({ Data($0) }),
            let members = try? JSONSerialization.jsonObject(with: body) as? [String: Any],
            let operations = members["operations"] as? [[String: Any]]
        else { return [] }
        return operations.filter { ($0["ifRevision"] as? NSNumber)?.int64Value == 0 }.compactMap { $0["id"] as? String }
    }
}
