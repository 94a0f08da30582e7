import Cryptography
import Foundation
import Synchronization
import Testing

@testable import SalternClient

/// A server that only says that its database was restored: that licenses nothing.
@Suite struct FalseRestoreTests {
    private let userid = "ada@example.org"
    private let password = Password("correct horse battery staple")

    /// A phone to which the server is honest, and a laptop to which it lies. Both have the same notes.
    /// - Parameter page: How many changes the laptop asks for at once.
    private func withNotes(
        _ count: Int = 3, page: Int = SyncLimits().page,
        _ body: (_ vault: Vault, _ other: Vault, _ laptop: Device, [ItemID]) async throws -> Void
    ) async throws {
        try await LiveServer.with { server in
            let phone = try Device("phone", server)
            let vault = try await Vault.signUp(phone.settings, userid: userid, password: password)
            var laptop = try Device("laptop", server)
            laptop.settings.limits.page = page
            let other = try await Vault.logIn(laptop.settings, userid: userid, password: password)
            var ids: [ItemID] = []
            for number in 0..<count { ids.append(try await notes(vault).put(Note(text: "\(number)"))) }
            for vault in [vault, other] { try await vault.sync() }
            try await body(vault, other, laptop, ids)
        }
    }

    private func notes(_ vault: Vault) -> VaultCollection<Note> { vault.collection("notes") }

    private func texts(_ vault: Vault) async throws -> [String] {
        try await notes(vault).all().values.map(\.text).sorted()
    }

    /// Counts the requests for changes, and changes what is answered.
    /// - Parameter change: What becomes of the reply to each of them, numbered from 1 on.
    private func lie(
        _ laptop: Device, _ change: @escaping @Sendable (_ number: Int, String) -> String
    ) -> @Sendable () -> Int {
        final class Count: Sendable { let value = Mutex(0) }
        let count = Count()
        laptop.link.setRewrite { request, reply in
            guard request.target.hasPrefix("/v1/changes"), reply.head.status == 200 else { return reply }
            let number = count.value.withLock { count in
                count += 1
                return count
            }
            let text = change(number, String(decoding: reply.body, as: UTF8.self))
            return HTTPReply(head: reply.head, body: Array(text.utf8))
        }
        return { count.value.withLock { $0 } }
    }

    private static func rebased(_ text: String, _ base: Int) -> String {
        text.replacing(/"revisionBase":[0-9]+/, with: "\"revisionBase\":\(base)")
    }

    private static func tombstones(_ ids: [ItemID]) -> String {
        let changes = ids.enumerated().map { index, id in
            #"{"id":"\#(id)","revision":\#(2_000 + index),"collection":"notes","deleted":true,"#
                + #""createdAt":"2026-01-01T00:00:00Z","updatedAt":"2026-01-01T00:00:00Z"}"#
        }
        return changes.joined(separator: ",")
    }

    private func expectWhole(_ vaults: [Vault], _ expected: [String]) async throws {
        for vault in vaults {
            #expect(try await texts(vault) == expected)
            #expect(try await vault.unsentCount() == 0)
            #expect(try await vault.deletedItems().isEmpty)
        }
    }

    @Test func `it is reported once, and nothing is sent, copied or deleted`() async throws {
        try await withNotes { vault, other, laptop, _ in
            let requests = lie(laptop) { Self.rebased($1, 1_000) }
            for _ in 0..<3 {
                let report = try await other.sync()
                #expect(report.sent == 0 && report.removed.isEmpty)
            }
            // One for each round, and the listing.
            #expect(requests() <= 5)
            #expect(try await other.notices().map(\.kind) == [.timeWentBack])
            // It is one to which the device has come, with what it writes.
            try await notes(other).put(Note(text: "later"))
            try await other.sync()
            laptop.link.setRewrite { $1 }
            for vault in [vault, other] { try await vault.sync() }
            try await expectWhole([vault, other], ["0", "1", "2", "later"])
            #expect(try await vault.notices().isEmpty)
        }
    }

    /// - Parameter page: With several pages it says so also within a listing, which would begin anew for ever.
    @Test(arguments: [200, 2])
    func `one that says so each time is followed for a while, and what is here stays`(page: Int) async throws {
        try await withNotes(page: page) { vault, other, laptop, _ in
            let requests = lie(laptop) { Self.rebased($1, 1_000 * $0) }
            try await notes(other).put(Note(text: "written here"))
            for _ in 0..<3 {
                let before = requests()
                _ = try? await other.sync()
                #expect(requests() - before <= 6)
            }
            #expect(try await texts(other) == ["0", "1", "2", "written here"])
            #expect(try await other.notices().map(\.kind) == [.timeWentBack])
            laptop.link.setRewrite { $1 }
            for vault in [other, vault] { try await vault.sync() }
            try await expectWhole([vault, other], ["0", "1", "2", "written here"])
        }
    }

    @Test func `what it does not list then is kept, and is where it was`() async throws {
        try await withNotes { vault, other, laptop, ids in
            let requests = lie(laptop) {
                Self.rebased($1, 1_000).replacing(/"changes":\[.*\],"cursor"/, with: #""changes":[],"cursor""#)
            }
            for _ in 0..<3 {
                // What is sent again is acknowledged, and not listed either.
                do { try await other.sync() } catch VaultError.unavailable(.unexpectedReply) {}
            }
            #expect(requests() <= 7)
            #expect(try await texts(other) == ["0", "1", "2"])
            laptop.link.setRewrite { $1 }
            for vault in [vault, other] { try await vault.sync() }
            try await expectWhole([vault, other], ["0", "1", "2"])
            #expect(Set(try await notes(other).all().keys) == Set(ids))
            #expect(Set(try await other.notices().map(\.kind)) == [.timeWentBack, .keptUnlisted])
        }
    }

    @Test func `an older version that it gives then is kept beside the known one, once`() async throws {
        try await withNotes(1) { vault, other, laptop, ids in
            let first = try await vault.sealedBody(of: ids[0])
            try await notes(vault).put(Note(text: "second"), ids[0])
            for vault in [vault, other] { try await vault.sync() }
            let second = try await vault.sealedBody(of: ids[0])
            // Each round another history, in which the old version is the last, or the known one again.
            for base in 1...5 {
                let body = base.isMultiple(of: 2) ? second : first
                let item =
                    #"{"id":"\#(ids[0])","revision":\#(base),"collection":"notes","deleted":false,"#
                    + #""createdAt":"2026-01-01T00:00:00Z","updatedAt":"2026-01-01T00:00:00Z","#
                    + #""format":"saltern-1","body":"\#(body)"}"#
                _ = lie(laptop) {
                    Self.rebased($1, base * 1_000).replacing(
                        /"changes":\[.*\],"cursor"/, with: #""changes":[\#(item)],"cursor""#)
                }
                _ = try? await other.sync()
                #expect(try await texts(other).contains("second"), "\(base)")
            }
            laptop.link.setRewrite { $1 }
            for vault in [other, vault, other] { try await vault.sync() }
            for vault in [vault, other] {
                let all = try await texts(vault)
                #expect(all.contains("second"))
                #expect(all.count <= 2, "\(all)")
                #expect(try await vault.unsentCount() == 0)
            }
            let kinds = try await other.notices().map(\.kind)
            #expect(Set(kinds).isSuperset(of: [.timeWentBack, .conflict]), "\(kinds)")
        }
    }

    @Test func `deletions that it tells of then wait for somebody to agree`() async throws {
        try await withNotes(12) { _, other, laptop, ids in
            let tombstones = Self.tombstones(ids)
            _ = lie(laptop) {
                Self.rebased($1, 1_000).replacing(
                    /"changes":\[.*\],"cursor"/, with: #""changes":[\#(tombstones)],"cursor""#)
            }
            let report = try await other.sync()
            #expect(report.isHeld)
            #expect(try await texts(other).count == 12)
            #expect(Set(try await other.notices().map(\.kind)) == [.timeWentBack, .massDeletion])
        }
    }
}

extension Vault {
    /// What the server has of an item, in base64.
    fileprivate func sealedBody(of id: ItemID) throws -> String {
        Base64.encodeToString(try #require(try store.item(id)).content.body.bytes)
    }
}
