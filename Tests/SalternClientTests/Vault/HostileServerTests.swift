import Cryptography
import Foundation
import SalternClient
import SalternTesting
import Synchronization
import Testing

/// A server that lies: each lie is refused or reported, never silently taken.
@Suite struct HostileServerTests {
    private let userid = "ada@example.org"
    private let password = Password("correct horse battery staple")

    private func withPhone(_ body: (LiveServer, Device, Vault) async throws -> Void) async throws {
        try await LiveServer.with { server in
            let phone = try Device("phone", server)
            let vault = try await Vault.signUp(phone.settings, userid: userid, password: password)
            try await body(server, phone, vault)
        }
    }

    /// A phone to which the server is honest, and a laptop to which it may lie.
    private func withTwoDevices(
        _ body: (_ vault: Vault, _ other: Vault, _ laptop: Device) async throws -> Void
    ) async throws {
        try await withPhone { server, _, vault in
            let laptop = try Device("laptop", server)
            let other = try await Vault.logIn(laptop.settings, userid: userid, password: password)
            try await body(vault, other, laptop)
        }
    }

    /// Changes a reply's JSON text.
    private static func rewriting(
        _ target: String, _ change: @escaping @Sendable (String) -> String
    ) -> @Sendable (HTTPRequest, HTTPReply) -> HTTPReply {
        { request, reply in
            guard request.target.hasPrefix(target), reply.head.status < 300 else { return reply }
            return HTTPReply(head: reply.head, body: Array(change(String(decoding: reply.body, as: UTF8.self)).utf8))
        }
    }

    @Test func `other parameters of the stretching are refused before the password is used`() async throws {
        try await withPhone { server, _, _ in
            let lies: [(String, String)] = [
                (#""iterations":10000"#, #""iterations":1000"#), (#""iterations":10000"#, #""iterations":100000000"#),
                (#""saltPrefix":"com"#, #""saltPrefix":"org"#), (":ada@", ":eve@"),
                ("PBKDF2-HMAC-SHA256", "PBKDF2-HMAC-SHA1"),
            ]
            for (truth, lie) in lies {
                let laptop = try Device("laptop", server)
                laptop.link.setRewrite(Self.rewriting("/v1/kdf") { $0.replacing(truth, with: lie) })
                await #expect {
                    try await Vault.logIn(laptop.settings, userid: userid, password: password)
                } throws: { if case VaultError.untrustworthy = $0 { true } else { false } }
            }
        }
    }

    @Test func `a keyring of somebody else is refused, and so is none`() async throws {
        try await withPhone { server, _, _ in
            let foreign = Base64.encodeToString(SecureRandom.bytes(161))
            for lie in [#""keyring":"\#(foreign)""#, #""x":"""#] {
                let laptop = try Device("laptop", server)
                laptop.link.setRewrite(
                    Self.rewriting("/v1/sessions") { $0.replacing(/"keyring":"[^"]*"/, with: lie) })
                await #expect {
                    try await Vault.logIn(laptop.settings, userid: userid, password: password)
                } throws: { if case VaultError.keyringUnusable = $0 { true } else { false } }
            }
        }
    }

    @Test func `items that were exchanged are not taken, and the known ones stay`() async throws {
        try await withPhone { server, _, vault in
            let notes = vault.collection("notes", of: Note.self)
            let one = try await notes.put(Note(text: "one"))
            let two = try await notes.put(Note(text: "two"))
            try await vault.sync()
            let laptop = try Device("laptop", server)
            laptop.link.setRewrite(
                Self.rewriting("/v1/changes") {
                    $0.replacing(one.description, with: "\u{2}").replacing(two.description, with: one.description)
                        .replacing("\u{2}", with: two.description)
                })
            let other = try await Vault.logIn(laptop.settings, userid: userid, password: password)
            try await other.sync()
            let contents = try await other.collection("notes", of: Note.self).contents()
            #expect(contents.items.isEmpty)
            #expect(contents.unreadable == [one: .doesNotOpen, two: .doesNotOpen])
            #expect(Set(try await other.notices().map(\.kind)) == [.unreadable])
            // What has never been opened is looked at again when everything is listed.
            laptop.link.expireCursor()
            try await other.sync()
            #expect(try await other.collection("notes", of: Note.self).all().count == 2)
        }
    }

    @Test func `an old version is noticed, reported and overwritten with the known one`() async throws {
        try await withTwoDevices { vault, other, laptop in
            let notes = vault.collection("notes", of: Note.self)
            let id = try await notes.put(Note(text: "first"))
            // What the server keeps of the first version.
            let kept = Mutex("")
            laptop.link.setRewrite(
                Self.rewriting("/v1/changes") { text in
                    if let match = text.firstMatch(of: /"body":"([^"]*)"/) { kept.withLock { $0 = String(match.1) } }
                    return text
                })
            try await vault.sync()
            try await other.sync()
            try await notes.put(Note(text: "second"), id)
            try await vault.sync()
            laptop.link.setRewrite { $1 }
            try await other.sync()
            #expect(try await other.collection("notes", of: Note.self)[id] == Note(text: "second"))
            try await notes.put(Note(text: "third"), id)
            try await vault.sync()
            let old = kept.withLock { $0 }
            let lie = Mutex("")
            laptop.link.setRewrite(
                Self.rewriting("/v1/changes") { text in
                    let changed = text.replacing(/"body":"[^"]*"/, with: #""body":"\#(old)""#)
                    lie.withLock { if $0.isEmpty { $0 = changed } }
                    return changed
                })
            try await other.sync()
            let notice = try #require(try await other.notices().first)
            #expect(notice.kind == .rolledBack && notice.item == id)
            // What looks old may be new: it is kept beside the known one, however often it is repeated once.
            let there = other.collection("notes", of: Note.self)
            let both = [id: Note(text: "second"), try #require(notice.other): Note(text: "first")]
            #expect(try await there.all() == both)
            // That page hides what was acknowledged of the copy, which is no less noticed.
            laptop.link.setRewrite(Self.rewriting("/v1/changes") { _ in lie.withLock { $0 } })
            for revision in 1_001...1_004 {
                lie.withLock { $0 = $0.replacing(/"revision":[0-9]+/, with: "\"revision\":\(revision)") }
                do { try await other.sync() } catch VaultError.unavailable(.unexpectedReply) {}
            }
            #expect(try await there.all() == both)
            #expect(try await other.notices().count == 1)
        }
    }

    @Test func `an old version after a deletion is noticed and reported`() async throws {
        try await withTwoDevices { vault, other, laptop in
            let notes = vault.collection("notes", of: Note.self)
            let id = try await notes.put(Note(text: "first"))
            let page = Mutex([UInt8]())
            laptop.link.setRewrite { request, reply in
                if request.target.hasPrefix("/v1/changes") { page.withLock { $0 = reply.body } }
                return reply
            }
            try await vault.sync()
            try await other.sync()
            let old = page.withLock { $0 }
            laptop.link.setRewrite { $1 }
            try await notes.put(Note(text: "second"), id)
            try await vault.sync()
            try await other.sync()
            try await notes.delete(id)
            try await vault.sync()
            try await other.sync()
            let there = other.collection("notes", of: Note.self)
            #expect(try await there.all().isEmpty)
            #expect(try await other.notices().isEmpty)
            laptop.link.setRewrite(Self.rewriting("/v1/changes") { _ in String(decoding: old, as: UTF8.self) })
            try await other.sync()
            #expect(try await there.all() == [id: Note(text: "first")])
            #expect(try await other.notices().map(\.kind) == [.rolledBack])
        }
    }

    @Test func `a title that goes away is reported, also where the server only left it out`() async throws {
        try await withTwoDevices { vault, other, laptop in
            let body = SecureBytes(copying: Array("salt".utf8))
            let id = try await vault.put(PlainItem(title: "Shopping", body: body), .random(), in: "notes")
            try await vault.sync()
            try await other.sync()
            let later = SecureBytes(copying: Array("pepper".utf8))
            try await vault.put(PlainItem(title: "Shopping", body: later), id, in: "notes")
            try await vault.sync()
            laptop.link.setRewrite(Self.rewriting("/v1/changes") { $0.replacing(/"title":"[^"]*",?/, with: "") })
            try await other.sync()
            #expect(try await other.item(id) == PlainItem(title: nil, body: later))
            let notice = try #require(try await other.notices().first)
            #expect(notice.kind == .titleMissing && notice.item == id)
            #expect(try await other.notices().count == 1)
        }
    }

    @Test(arguments: [false, true])
    func `a title that goes away is reported in a conflict, too`(isMerged: Bool) async throws {
        try await withPhone { server, _, vault in
            let merge: MergeRule = { _, _, mine, theirs in PlainItem(title: theirs.title, body: mine.body) }
            let laptop = try Device("laptop", server, merge: isMerged ? merge : nil)
            let other = try await Vault.logIn(laptop.settings, userid: userid, password: password)
            let (first, second, third) = (bytes("one"), bytes("two"), bytes("three"))
            let id = try await vault.put(PlainItem(title: "Shopping", body: first), .random(), in: "notes")
            try await vault.sync()
            try await other.sync()
            try await vault.put(PlainItem(title: "Shopping", body: second), id, in: "notes")
            try await vault.sync()
            try await other.put(PlainItem(title: "Shopping", body: third), id, in: "notes")
            laptop.link.setRewrite(Self.rewriting("/v1/changes") { $0.replacing(/"title":"[^"]*",?/, with: "") })
            try await other.sync()
            #expect(try await other.item(id) == PlainItem(title: nil, body: isMerged ? third : second))
            let kinds = try await other.notices().map(\.kind)
            #expect(kinds == (isMerged ? [.titleMissing] : [.titleMissing, .conflict]))
        }
    }

    @Test func `a title that goes away from what others made of an edit is reported`() async throws {
        try await withTwoDevices { vault, other, laptop in
            let id = try await vault.put(PlainItem(title: "Shopping", body: bytes("one")), .random(), in: "notes")
            try await vault.sync()
            try await other.sync()
            try await other.put(PlainItem(title: "Shopping", body: bytes("two")), id, in: "notes")
            laptop.link.setFate { .losesReply }
            await #expect(throws: VaultError.self) { try await other.sync() }
            laptop.link.setFateFromSecond(.losesReply)
            await #expect(throws: VaultError.self) { try await other.sync() }
            laptop.link.setFate { .passes }
            try await vault.sync()
            try await vault.put(PlainItem(title: "Shopping", body: bytes("three")), id, in: "notes")
            try await vault.sync()
            laptop.link.setRewrite(Self.rewriting("/v1/changes") { $0.replacing(/"title":"[^"]*",?/, with: "") })
            try await other.sync()
            #expect(try await other.item(id) == PlainItem(title: nil, body: bytes("three")))
            #expect(try await other.notices().map(\.kind) == [.titleMissing])
        }
    }

    private func bytes(_ text: String) -> SecureBytes { SecureBytes(copying: Array(text.utf8)) }

    @Test func `each deletion from elsewhere is counted, however few there are`() async throws {
        try await withTwoDevices { vault, other, _ in
            let notes = vault.collection("notes", of: Note.self)
            let ids = [try await notes.put(Note(text: "one")), try await notes.put(Note(text: "two"))]
            try await vault.sync()
            try await other.sync()
            try await notes.delete(ids[0])
            try await vault.sync()
            #expect(try await other.sync().removed == [ids[0]])
            #expect(try await other.deletedItems().map(\.id) == [ids[0]])
        }
    }

    @Test func `what cannot be read is not written over`() async throws {
        try await withTwoDevices { vault, other, laptop in
            let notes = vault.collection("notes", of: Note.self)
            let there = other.collection("notes", of: Note.self)
            let id = try await notes.put(Note(text: "first"))
            try await vault.sync()
            try await other.sync()
            try await notes.put(Note(text: "second"), id)
            try await vault.sync()
            try await there.put(Note(text: "mine"), id)
            let garbage = Base64.encodeToString([1] + SecureRandom.bytes(160))
            laptop.link.setRewrite(
                Self.rewriting("/v1/changes") { $0.replacing(/"body":"[^"]*"/, with: #""body":"\#(garbage)""#) })
            try await other.sync()
            laptop.link.setRewrite { $1 }
            try await vault.sync()
            #expect(Set(try await notes.all().values.map(\.text)) == ["second", "mine"])
            let notice = try #require(try await other.notices().first)
            #expect(notice.kind == .unreadable && notice.item == id)
            #expect(try await there[#require(notice.other)] == Note(text: "mine"))
        }
    }

    @Test func `a change whose conflict is never told is decided all the same, and holds nothing up`() async throws {
        try await withTwoDevices { vault, other, laptop in
            let notes = vault.collection("notes", of: Note.self)
            let there = other.collection("notes", of: Note.self)
            let ids = [try await notes.put(Note(text: "a")), try await notes.put(Note(text: "b"))]
            try await vault.sync()
            try await other.sync()
            try await notes.put(Note(text: "a2"), ids[0])
            try await notes.delete(ids[1])
            try await vault.sync()
            // The page that tells of both is withheld, but not its cursor.
            laptop.link.setRewrite(
                Self.rewriting("/v1/changes") {
                    $0.replacing(/"changes":\[.*\],"cursor"/, with: #""changes":[],"cursor""#)
                })
            try await other.sync()
            laptop.link.setRewrite { $1 }
            try await there.put(Note(text: "a3"), ids[0])
            try await there.put(Note(text: "b3"), ids[1])
            try await there.put(Note(text: "c"))
            try await other.sync()
            #expect(try await other.unsentCount() == 0)
            try await vault.sync()
            #expect(Set(try await notes.all().values.map(\.text)) == ["a2", "a3", "b3", "c"])
            #expect(Set(try await other.notices().map(\.kind)) == [.conflict, .keptAfterDeletion])
        }
    }

    @Test func `many deletions at once wait for somebody to agree`() async throws {
        try await withTwoDevices { vault, other, laptop in
            let notes = vault.collection("notes", of: Note.self)
            var ids: [ItemID] = []
            for number in 0..<12 { ids.append(try await notes.put(Note(text: "\(number)"))) }
            try await vault.sync()
            try await other.sync()
            for id in ids[..<6] { try await notes.delete(id) }
            try await vault.sync()
            #expect(try await other.sync().isHeld)
            #expect(try await other.collection("notes", of: Note.self).all().count == 12)
            #expect(try await other.notices().map(\.kind) == [.massDeletion])
            #expect(try await !other.agreeToDeletions().isHeld)
            #expect(try await other.collection("notes", of: Note.self).all().count == 6)
            #expect(try await other.notices().isEmpty)
            try await other.restore(ids[0])
            #expect(try await other.collection("notes", of: Note.self)[ids[0]] == Note(text: "0"))
        }
    }

    @Test func `a cursor that expired deletes nothing`() async throws {
        try await withPhone { _, phone, vault in
            let notes = vault.collection("notes", of: Note.self)
            let id = try await notes.put(Note(text: "kept"))
            try await vault.sync()
            let hasExpired = Mutex(false)
            phone.link.setRewrite { request, reply in
                if request.target.contains("since="),
                    hasExpired.withLock({
                        let was = $0; $0 = true; return !was
                    })
                {
                    let body = #"{"type":"about:blank","title":"Gone","status":410,"code":"cursor_expired"}"#
                    return HTTPReply(head: HTTPReplyHead(status: 410, fields: []), body: Array(body.utf8))
                }
                // Everything else is listed as if there were nothing.
                guard request.target.hasPrefix("/v1/changes") else { return reply }
                let text = String(decoding: reply.body, as: UTF8.self)
                return HTTPReply(
                    head: reply.head,
                    body: Array(text.replacing(/"changes":\[.*\],"cursor"/, with: #""changes":[],"cursor""#).utf8))
            }
            try await vault.sync()
            #expect(try await notes.all() == [id: Note(text: "kept")])
            #expect(try await vault.notices().map(\.kind) == [.keptUnlisted])
        }
    }
}
