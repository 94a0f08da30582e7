import Foundation
import Synchronization
import Testing

@testable import SalternClient

/// A server that always has another page.
@Suite struct EndlessListingTests {
    private let password = Password("correct horse battery staple")

    private func withPhone(_ body: (Device, Vault) async throws -> Void) async throws {
        try await LiveServer.with { server in
            var phone = try Device("phone", server)
            phone.settings.limits.changes = 1_000
            phone.settings.limits.page = 20
            let vault = try await Vault.signUp(phone.settings, userid: "ada@example.org", password: password)
            try await body(phone, vault)
        }
    }

    private static func isUnexpected(_ error: any Error) -> Bool {
        if case VaultError.unavailable(.unexpectedReply) = error { true } else { false }
    }

    private static func reply(_ body: String) -> HTTPReply {
        HTTPReply(head: HTTPReplyHead(status: 200, fields: []), body: Array(body.utf8))
    }

    /// Answers what begins with a path with page after page.
    /// - Returns: How many there were; after 1,000 of them nothing is answered any more.
    private func answer(
        _ path: String, _ device: Device, _ page: @escaping @Sendable (Int) -> String
    ) -> @Sendable () -> Int {
        final class Count: Sendable { let value = Mutex(0) }
        let count = Count()
        device.link.setAnswer { request in
            guard request.target.hasPrefix(path) else { return nil }
            let number = count.value.withLock { count in
                count += 1
                return count
            }
            return number > 1_000
                ? HTTPReply(head: HTTPReplyHead(status: 404, fields: []), body: []) : Self.reply(page(number))
        }
        return { count.value.withLock { $0 } }
    }

    private static func page(_ changes: [String], _ cursor: String) -> String {
        #"{"changes":[\#(changes.joined(separator: ","))],"cursor":"\#(cursor)","more":true,"revisionBase":0}"#
    }

    private static func tombstone(_ id: ItemID, _ revision: Int) -> String {
        #"{"id":"\#(id)","revision":\#(revision),"collection":"notes","createdAt":"2026-01-01T00:00:00Z","#
            + #""updatedAt":"2026-01-01T00:00:00Z","deleted":true}"#
    }

    private static func chunk(_ revision: Int) -> String {
        tombstone(.random(), revision).replacing(#""deleted":true"#, with: #""deleted":false"#)
            .replacing(#""notes""#, with: #""saltern-chunks""#)
    }

    private static let lies: [(name: String, requests: Int, page: @Sendable (Int) -> String)] = [
        ("the same cursor", 2, { _ in page([tombstone(.random(), 1_000)], "same") }),
        ("the same change", 2, { page([tombstone(.random(), 1_000)], "cursor\($0)") }),
        ("changes in another order", 1, { page([2, 1].map { tombstone(.random(), $0) }, "cursor\($0)") }),
        ("nothing", 51, { page([], "cursor\($0)") }),
        ("new tombstones", 1_000, { page([tombstone(.random(), 1_000 + $0)], "cursor\($0)") }),
        (
            "many new tombstones", 51,
            { number in page((0..<20).map { tombstone(.random(), number * 100 + $0) }, "cursor\(number)") }
        ),
        (
            "heads of chunks", 51,
            { number in page((0..<20).map { chunk(number * 100 + $0) }, "cursor\(number)") }
        ),
    ]

    @Test(arguments: lies.indices) func `an endless listing of changes is refused`(_ index: Int) async throws {
        let lie = Self.lies[index]
        try await withPhone { phone, vault in
            let notes = vault.collection("notes", of: Note.self)
            let id = try await notes.put(Note(text: "kept"))
            try await vault.sync()
            let requests = answer("/v1/changes", phone, lie.page)
            await #expect("\(lie.name)") { try await vault.sync() } throws: { Self.isUnexpected($0) }
            #expect(requests() <= lie.requests + 1, "\(lie.name)")
            phone.link.setAnswer { _ in nil }
            #expect(try await notes.all() == [id: Note(text: "kept")])
        }
    }

    @Test func `an account with more items than that is none that does not end`() async throws {
        try await LiveServer.with { server in
            let phone = try Device("phone", server)
            let vault = try await Vault.signUp(phone.settings, userid: "ada@example.org", password: password)
            let notes = vault.collection("notes", of: Note.self)
            var expected: Set<ItemID> = []
            for number in 0..<50 { expected.insert(try await notes.put(Note(text: "\(number)"))) }
            try await vault.sync()
            var laptop = try Device("laptop", server)
            laptop.settings.limits.changes = 6
            laptop.settings.limits.page = 5
            let other = try await Vault.logIn(laptop.settings, userid: "ada@example.org", password: password)
            try await other.sync()
            #expect(Set(try await other.ids("notes")) == expected)
        }
    }

    @Test func `where a round ends the next one goes on`() async throws {
        try await withPhone { phone, vault in
            let first = answer("/v1/changes", phone) {
                number in Self.page((0..<20).map { Self.tombstone(.random(), number * 100 + $0) }, "cursor\(number)")
            }
            await #expect { try await vault.sync() } throws: { Self.isUnexpected($0) }
            let cursors = Mutex<[String]>([])
            phone.link.setAnswer { request in
                guard request.target.hasPrefix("/v1/changes") else { return nil }
                cursors.withLock { $0.append(request.target) }
                return Self.reply(#"{"changes":[],"cursor":"end","more":false,"revisionBase":0}"#)
            }
            try await vault.sync()
            #expect(cursors.withLock { $0.first }?.contains("since=cursor\(first() - 1)") == true)
        }
    }

    private static func share(_ id: String) -> String {
        #"{"id":"\#(id)","path":"/s/\#(id)","createdAt":"2026-01-01T00:00:00Z","updatedAt":"2026-01-01T00:00:00Z","#
            + #""views":0,"format":"aes-256-gcm","bytes":1}"#
    }

    @Test func `an endless list of shares, or of events, is refused`() async throws {
        try await withPhone { phone, vault in
            let lies: [@Sendable (Int) -> String] = [
                { #"{"shares":[\#(Self.share("same"))],"nextPage":"page\#($0)"}"# },
                { #"{"shares":[\#(Self.share("share\($0)"))],"nextPage":"same"}"# },
            ]
            for lie in lies {
                let requests = answer("/v1/shares", phone, lie)
                await #expect { try await vault.shares() } throws: { Self.isUnexpected($0) }
                #expect(requests() == 2)
            }
            let requests = answer("/v1/account/events", phone) { #"{"events":[],"nextPage":"page\#($0)"}"# }
            await #expect { try await vault.events() } throws: { Self.isUnexpected($0) }
            #expect(requests() == 1)
        }
    }
}
