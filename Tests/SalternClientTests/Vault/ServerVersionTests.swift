import Cryptography
import Foundation
import SalternTesting
import Synchronization
import Testing

@testable import SalternClient

/// Older versions that the server keeps, on devices that have never had them.
@Suite struct ServerVersionTests {
    private static let password = Password("correct horse")

    private static func item(_ text: String, title: String? = nil) -> PlainItem {
        PlainItem(title: title, body: SecureBytes(copying: Array(text.utf8)))
    }

    private static func texts(of id: ItemID, in vault: Vault) async throws -> [String] {
        var texts: [String] = []
        for version in try await vault.replacedVersions(of: id) {
            let item = try await vault.item(id, replaced: version.number)
            texts.append(item.body.withUnsafeBytes { String(decoding: $0, as: UTF8.self) })
        }
        return texts
    }

    /// A phone that has written an item several times, each time after ten minutes for the server, and a laptop that logs in
    /// afterwards.
    private static func withNewLaptop(
        _ texts: [String], of id: ItemID,
        _ body: (LiveServer, _ phone: Vault, _ laptop: Device, Vault) async throws -> Void
    ) async throws {
        try await LiveServer.with { server in
            let phone = try await Vault.signUp(
                Device("phone", server).settings, userid: "ada", password: password)
            for text in texts { try await write(text, id, phone, server) }
            let laptop = try Device("laptop", server)
            let vault = try await Vault.logIn(laptop.settings, userid: "ada", password: password)
            try await vault.sync()
            try await body(server, phone, laptop, vault)
        }
    }

    private static func write(_ text: String, _ id: ItemID, _ vault: Vault, _ server: LiveServer) async throws {
        try await server.database.administer("UPDATE saltern.items SET kept_at = NULL")
        try await vault.put(item(text, title: "title of \(text)"), id, in: "notes")
        try await vault.sync()
    }

    @Test func `a new device lists, reads and restores what was written over before it was there`() async throws {
        let id = ItemID.random()
        try await Self.withNewLaptop(["first", "second", "third"], of: id) { _, phone, _, laptop in
            #expect(try await laptop.replacedVersions(of: id).isEmpty)
            let versions = try await laptop.serverVersions(of: id)
            #expect(versions.map(\.collection) == ["notes", "notes"])
            #expect(versions.allSatisfy { $0.bytes > 0 && $0.replacedAt >= $0.updatedAt })
            #expect(versions.allSatisfy { $0.expiresAt > $0.replacedAt })
            let first = try #require(versions.last)
            #expect(
                try await laptop.item(id, serverRevision: first.revision)
                    == Self.item("first", title: "title of first"))
            try await laptop.restore(id, serverRevision: first.revision)
            #expect(try await laptop.item(id) == Self.item("first", title: "title of first"))
            try await laptop.sync()
            try await phone.sync()
            #expect(try await phone.item(id) == Self.item("first", title: "title of first"))
            #expect(try await phone.notices().isEmpty)
            await #expect(throws: VaultError.self) { try await laptop.item(id, serverRevision: Revision(4_711)) }
            #expect(try await laptop.serverVersions(of: .random()).isEmpty)
        }
    }

    @Test func `fetched versions are listed with those of the device, each once`() async throws {
        let id = ItemID.random()
        try await Self.withNewLaptop(["first", "second", "third"], of: id) { server, phone, laptop, vault in
            #expect(try await vault.fetchVersions(of: id).fetched == 2)
            #expect(try await Self.texts(of: id, in: vault) == ["second", "first"])
            #expect(try await vault.replacedVersions(of: id).map(\.title) == ["title of second", "title of first"])
            // What is known is not fetched again.
            let asked = Mutex(0)
            laptop.link.setRewrite { request, reply in
                if request.target.contains("/versions/") { asked.withLock { $0 += 1 } }
                return reply
            }
            try await Self.write("fourth", id, vault, server)
            #expect(try await vault.fetchVersions(of: id) == VersionReport())
            #expect(asked.withLock { $0 } == 0)
            #expect(try await Self.texts(of: id, in: vault) == ["third", "second", "first"])
            // The phone has kept all of them itself.
            try await phone.sync()
            #expect(try await phone.fetchVersions(of: id) == VersionReport())
            #expect(try await Self.texts(of: id, in: phone) == ["third", "second", "first"])
        }
    }

    @Test func `versions of a deleted item come to a device that never had it`() async throws {
        let id = ItemID.random()
        try await Self.withNewLaptop(["first", "second"], of: id) { server, phone, _, _ in
            try await phone.delete(id)
            try await phone.sync()
            let tablet = try await Vault.logIn(
                Device("tablet", server).settings, userid: "ada", password: Self.password)
            try await tablet.sync()
            #expect(try await tablet.fetchVersions(of: id).fetched == 1)
            #expect(try await Self.texts(of: id, in: tablet) == ["first"])
            let first = try #require(await tablet.replacedVersions(of: id).first)
            try await tablet.restore(id, replaced: first.number)
            try await tablet.sync()
            try await phone.sync()
            #expect(try await phone.item(id) == Self.item("first", title: "title of first"))
        }
    }

    @Test func `a rotation ends the server's versions; a device that has fetched them still opens them`() async throws {
        let id = ItemID.random()
        try await Self.withNewLaptop(["first", "second", "third"], of: id) { server, phone, _, laptop in
            try await laptop.fetchVersions(of: id)
            try await laptop.rotateKeys(password: Self.password)
            #expect(try await Self.texts(of: id, in: laptop) == ["second", "first"])
            #expect(try await laptop.serverVersions(of: id).isEmpty)
            // What is replaced under the new key is kept again.
            try await Self.write("fourth", id, laptop, server)
            let version = try #require(await laptop.serverVersions(of: id).first)
            #expect(
                try await laptop.item(id, serverRevision: version.revision)
                    == Self.item("third", title: "title of third"))
            try await phone.logInAgain(password: Self.password)
            try await phone.sync()
            #expect(
                try await phone.item(id, serverRevision: version.revision)
                    == Self.item("third", title: "title of third"))
        }
    }

    /// What a server may return in the place of a version.
    private enum Lie: CaseIterable {
        case otherItem, present, later, title, otherRevision, garbage, otherCollection
    }

    @Test(arguments: Lie.allCases)
    private func `a server that returns something else than the version is refused, and nothing changes`(
        _ lie: Lie
    ) async throws {
        let (id, other) = (ItemID.random(), ItemID.random())
        try await Self.withNewLaptop(["first", "second", "third"], of: id) { server, phone, laptop, vault in
            try await Self.write("of another item", other, phone, server)
            try await vault.sync()
            if lie == .later {
                // A later content than the laptop has seen, under the revision of an old one.
                try await Self.write("fourth", id, phone, server)
            }
            let api = try server.api()
            let token = try await phone.versionToken
            let versions = try await api.listVersions(id, token).versions
            let first = try #require(versions.last)
            let present = try await api.getItem(lie == .otherItem ? other : id, token)
            let second = try await api.getVersion(id, versions[versions.count - 2].revision, token)
            let genuine = try await api.getVersion(id, first.revision, token)
            let content = try #require(present.content)
            let (body, title) = (content.body.bytes, content.title?.bytes ?? [])
            let sealed = try #require(genuine.content)
            laptop.link.setRewrite { request, reply in
                guard request.target.hasSuffix("/versions/\(first.revision.number)") else { return reply }
                var text = String(decoding: reply.body, as: UTF8.self)
                switch lie {
                case .otherItem, .present, .later:
                    text = Self.replacing(title: title, body: body, in: text)
                case .title: text = Self.replacing(title: second.title?.bytes, body: nil, in: text)
                case .otherRevision: text = text.replacing(#""revision":1"#, with: #""revision":2"#)
                case .garbage:
                    text = Self.replacing(title: nil, body: SecureRandom.bytes(sealed.body.bytes.count), in: text)
                case .otherCollection:
                    text = text.replacing(#""collection":"notes""#, with: #""collection":"letters""#)
                }
                return HTTPReply(head: reply.head, body: Array(text.utf8))
            }
            await #expect(throws: VaultError.self) { try await vault.item(id, serverRevision: first.revision) }
            await #expect(throws: VaultError.self) { try await vault.restore(id, serverRevision: first.revision) }
            let report = try await vault.fetchVersions(of: id)
            #expect(report.refused == 1)
            #expect(try await !Self.texts(of: id, in: vault).contains { $0 != "second" && $0 != "third" })
            #expect(try await vault.item(id) == Self.item("third", title: "title of third"))
            #expect(try await vault.unsentCount() == 0)
        }
    }

    @Test func `two versions that were exchanged are noticed in the list`() async throws {
        let id = ItemID.random()
        try await Self.withNewLaptop(["first", "second", "third"], of: id) { server, phone, laptop, vault in
            let token = try await phone.versionToken
            let api = try server.api()
            let versions = try await api.listVersions(id, token).versions
            var contents: [String: ItemContent] = [:]
            for (version, other) in zip(versions, versions.reversed()) {
                contents["/versions/\(version.revision.number)"] =
                    try await api.getVersion(id, other.revision, token).content
            }
            laptop.link.setRewrite { [contents] request, reply in
                let content = contents.first { request.target.hasSuffix($0.key) }?.value
                guard let found = content else { return reply }
                let text = Self.replacing(
                    title: found.title?.bytes, body: found.body.bytes, in: String(decoding: reply.body, as: UTF8.self))
                return HTTPReply(head: reply.head, body: Array(text.utf8))
            }
            #expect(try await vault.fetchVersions(of: id).refused == 1)
        }
    }

    @Test func `a list that is not in order, or repeats itself, is refused`() async throws {
        let id = ItemID.random()
        try await Self.withNewLaptop(["first", "second", "third"], of: id) { server, phone, laptop, vault in
            let token = try await phone.versionToken
            let versions = try await server.api().listVersions(id, token).versions
            for (page, revisions) in [("one", [2, 1]), ("two", [1, 2]), ("three", [])] as [(String, [Int64])] {
                let pages = Mutex(0)
                laptop.link.setRewrite { request, reply in
                    guard request.target.contains("/versions") else { return reply }
                    let number = pages.withLock { pages in
                        pages += 1
                        return pages
                    }
                    // The second page is the first one again; the server refuses this token of a page, and this reply hides it.
                    let records = revisions.map { revision in
                        #"{"revision":\#(revision),"collection":"notes","bytes":1,"updatedAt":"2026-01-01T00:00:00Z","#
                            + #""replacedAt":"2026-01-01T00:00:00Z","expiresAt":"2026-01-01T00:00:00Z"}"#
                    }
                    let text = #"{"versions":[\#(records.joined(separator: ","))],"nextPage":"\#(page)\#(number)"}"#
                    return HTTPReply(head: HTTPReplyHead(status: 200, fields: []), body: Array(text.utf8))
                }
                await #expect {
                    try await vault.serverVersions(of: id)
                } throws: {
                    if case VaultError.unavailable(.unexpectedReply) = $0 { true } else { false }
                }
                #expect(pages.withLock { $0 } <= 2, "\(page)")
            }
            #expect(versions.count == 2)
        }
    }

    @Test func `fetched versions remove none that only the device has`() async throws {
        let id = ItemID.random()
        try await Self.withNewLaptop(["first", "second", "third"], of: id) { _, _, _, vault in
            for number in 0..<Store.versionLimit {
                try await vault.put(Self.item("local \(number)"), id, in: "notes")
            }
            // The last one is the present one, and the server's is the first that was replaced.
            let kept = try await Self.texts(of: id, in: vault)
            #expect(kept.count == Store.versionLimit && kept.last == "third")
            #expect(try await vault.fetchVersions(of: id) == VersionReport())
            #expect(try await Self.texts(of: id, in: vault) == kept)
        }
    }

    @Test func `lengths whose sum no number holds end the list`() async throws {
        let id = ItemID.random()
        try await Self.withNewLaptop(["first", "second", "third"], of: id) { _, _, laptop, vault in
            laptop.link.setRewrite { request, reply in
                guard request.target.contains("/versions?") else { return reply }
                return HTTPReply(head: reply.head, body: Self.withLongVersions(reply.body))
            }
            let listed = try await vault.serverVersions(of: id).map(\.bytes)
            #expect(listed == [1, .max])
            #expect(try await vault.fetchVersions(of: id).fetched == 1)
            #expect(try await Self.texts(of: id, in: vault) == ["second"])
        }
    }

    /// Gives the first version of a list one byte, and the others the greatest length.
    private static func withLongVersions(_ body: [UInt8]) -> [UInt8] {
        var parts = String(decoding: body, as: UTF8.self)
            .split(separator: #""bytes":"#, omittingEmptySubsequences: false)
        for index in parts.indices.dropFirst() {
            let rest = parts[index].drop { $0.isNumber }
            parts[index] = Substring("\(index == 1 ? 1 : Int64.max)" + rest)
        }
        return Array(parts.joined(separator: #""bytes":"#).utf8)
    }

    /// Puts other sealed bytes in a reply; nil for those that it has.
    private static func replacing(title: [UInt8]?, body: [UInt8]?, in text: String) -> String {
        var text = text
        if let title {
            text = text.replacing(#/"title":"[^"]*"/#, with: #""title":"\#(Base64.encodeToString(title))""#)
        }
        if let body {
            text = text.replacing(#/"body":"[^"]*"/#, with: #""body":"\#(Base64.encodeToString(body))""#)
        }
        return text
    }
}

extension Vault {
    fileprivate var versionToken: Token { get throws { try open.token } }
}
