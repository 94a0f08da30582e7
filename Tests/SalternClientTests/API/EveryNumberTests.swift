import Cryptography
import Foundation
import SalternTesting
import Synchronization
import Testing

@testable import SalternClient

/// A server may put any number where a number belongs. None of them ends the process.
@Suite struct EveryNumberTests {
    /// One number of one kind of reply.
    private struct Place: Hashable, Comparable {
        let target: String
        let index: Int

        static func < (left: Place, right: Place) -> Bool { (left.target, left.index) < (right.target, right.index) }
    }

    private static let password = Password("correct horse")
    private static let values = [String(Int64.min), "-1", "0", String(Int64.max)]

    @Test(arguments: Part.allCases)
    private func `every integer of every reply can be the lowest, negative, none and the highest`(
        _ part: Part
    ) async throws {
        try await LiveServer.with { server in
            let seen = Mutex<[String: Int]>([:])
            try await Self.live(part, 0, server) { request, reply in
                let (target, numbers) = (Self.target(request), Self.numbers(reply.body))
                seen.withLock { $0[target] = max($0[target] ?? 0, numbers.count) }
                return reply
            }
            let places = seen.withLock { $0 }.flatMap { target, count in
                (0..<min(count, 12)).map { Place(target: target, index: $0) }
            }
            #expect(!places.isEmpty)
            var life = 0
            for place in places.sorted() {
                for value in Self.values {
                    life += 1
                    guard life % PropertyTests.stride == 0 else { continue }
                    try await Self.live(part, life, server) { request, reply in
                        guard Self.target(request) == place.target else { return reply }
                        return Self.replacing(place.index, in: reply, by: value)
                    }
                }
            }
        }
    }

    @Test func `edits and keyrings with the highest numbers are followed, or refused, and end nothing`() throws {
        let highest = SealedBox.Edit(number: .max, previous: SealedBox.Edit.first.previous)
        #expect(highest.next(after: [1]).number == SealedBox.Edit.limit)
        #expect(highest.creating(afterHash: [1], deletedAt: Revision(.max)).number == SealedBox.Edit.limit)
        #expect(SealedBox.Edit.first.creating(afterHash: [1], deletedAt: Revision(.min)).number == 2)
        var keyring = Keyring.new()
        keyring.counter = UInt64(Int64.max)
        #expect(keyring.changed { _ in }.counter == UInt64(Int64.max))
        keyring.counter = UInt64(Int64.max) + 1
        let encoded = keyring.encoded()
        #expect(throws: Keyring.Failure.self) { try Keyring(encoded: encoded) }
    }

    @Test func `an item with the highest edit number is taken, changed, deleted and merged`() async throws {
        try await LiveServer.with { server in
            let phone = try await Vault.signUp(
                Device("phone", server).settings, userid: "ada", password: Self.password)
            let laptop = try await Vault.logIn(
                Device("laptop", server).settings, userid: "ada", password: Self.password)
            let edits: [UInt64] = [.max, .max - 1, 1 << 63, (1 << 63) - 1]
            for (index, edit) in edits.enumerated() {
                let id = ItemID.random()
                try await phone.put(item("first \(index)"), id, in: "notes", as: edit)
                try await phone.sync()
                try await laptop.sync()
                try await laptop.put(item("second \(index)"), id, in: "notes")
                try await phone.put(item("third \(index)"), id, in: "notes")
                try await laptop.sync()
                try await phone.sync()
                try await phone.delete(id)
                try await phone.sync()
                try await laptop.sync()
                try await phone.put(item("again \(index)"), id, in: "notes")
                try await phone.sync()
                try await laptop.sync()
                for vault in [phone, laptop] {
                    let texts = try await vault.items(in: "notes").count
                    #expect(texts > 0)
                    #expect(try await vault.item(id) != nil)
                    #expect(try await vault.unsentCount() == 0)
                }
            }
        }
    }

    private func item(_ text: String) -> PlainItem { PlainItem(body: SecureBytes(copying: text.utf8)) }

    // MARK: Lives

    /// What an app does with an account.
    private enum Part: CaseIterable {
        case signUp, logIn, items, attachments, shares, account, recovery, rotation
    }

    /// Does one thing with a new account, as far as it comes, while replies are rewritten.
    private static func live(
        _ part: Part, _ number: Int, _ server: LiveServer,
        _ rewrite: @escaping @Sendable (HTTPRequest, HTTPReply) -> HTTPReply
    ) async throws {
        let userid = "person-\(number)"
        var device = try Device("phone", server)
        // A copy of an attachment would be read without the server.
        device.settings.attachments = AttachmentStorage(copiedByteLimit: 0)
        if part == .signUp { device.link.setRewrite(rewrite) }
        guard let phone = try? await Vault.signUp(device.settings, userid: userid, password: password) else { return }
        let id = ItemID.random()
        _ = try? await phone.put(PlainItem(title: "a", body: SecureBytes(copying: [1])), id, in: "notes")
        _ = try? await phone.sync()
        device.link.setRewrite(rewrite)
        switch part {
        case .signUp: break
        case .logIn, .recovery:
            let laptop = try Device("laptop", server)
            laptop.link.setRewrite(rewrite)
            if part == .logIn {
                let vault = try? await Vault.logIn(laptop.settings, userid: userid, password: password)
                _ = try? await vault?.sync()
                _ = try? await vault?.delete(id)
                _ = try? await vault?.sync()
            } else if let code = try? await phone.makeRecoveryCode(password: password) {
                _ = try? await Vault.recover(laptop.settings, userid: userid, code: code, newPassword: password)
            }
        case .items:
            _ = try? await phone.put(PlainItem(body: SecureBytes(copying: [2])), id, in: "notes")
            _ = try? await phone.sync()
            _ = try? await phone.delete(id)
            _ = try? await phone.sync()
            _ = try? await phone.restore(id)
            _ = try? await phone.sync()
        case .attachments:
            let content = SecureBytes(copying: [UInt8](repeating: 7, count: 600_000))
            guard let file = try? await phone.attach(AttachmentSource(content)) else { return }
            _ = try? await phone.put(PlainItem(body: file.body()), .random(), in: "files")
            _ = try? await phone.sync()
            _ = try? await phone.content(of: file)
            _ = try? await phone.sweepChunks()
        case .shares:
            guard let base = URL(string: server.base),
                let link = try? await phone.share(SecureBytes(copying: [1]), base: base, maxViews: 3)
            else { return }
            _ = try? await phone.shares()
            if let address = try? ShareAddress(link.url.absoluteString) {
                _ = try? await SharedLink.viewsLeft(address, over: device.link)
            }
            _ = try? await phone.open(link.url)
        case .account:
            _ = try? await phone.account()
            _ = try? await phone.body(holding: SecureBytes(copying: [UInt8](repeating: 7, count: 5_000)))
            _ = try? await phone.sessions()
            _ = try? await phone.events()
            _ = try? await phone.endOtherSessions()
            _ = try? await phone.changePassword(from: password, to: password)
            _ = try? await phone.sync()
        case .rotation:
            _ = try? await phone.rotateKeys(password: password)
            _ = try? await phone.sync()
        }
    }

    // MARK: Numbers

    /// A request's kind: its method and its path without ids.
    private static func target(_ request: HTTPRequest) -> String {
        let path = request.target.prefix { $0 != "?" }.split(separator: "/").map { part in
            part.count > 20 ? "ID" : String(part)
        }
        return "\(request.method.rawValue) /\(path.joined(separator: "/"))"
    }

    /// Where the integers of a JSON text are.
    private static func numbers(_ body: [UInt8]) -> [Range<Int>] {
        var ranges: [Range<Int>] = []
        var isInString = false
        var index = 0
        while index < body.count {
            let byte = body[index]
            if isInString {
                if byte == UInt8(ascii: "\\") { index += 1 } else if byte == UInt8(ascii: "\"") { isInString = false }
            } else if byte == UInt8(ascii: "\"") {
                isInString = true
            } else if (0x30...0x39).contains(byte) || byte == UInt8(ascii: "-") {
                let begin = index
                while index < body.count, (0x30...0x39).contains(body[index]) || body[index] == UInt8(ascii: "-") {
                    index += 1
                }
                ranges.append(begin..<index)
                continue
            }
            index += 1
        }
        return ranges
    }

    private static func replacing(_ index: Int, in reply: HTTPReply, by value: String) -> HTTPReply {
        var body = reply.body
        let numbers = numbers(body)
        guard index < numbers.count else { return reply }
        body.replaceSubrange(numbers[index], with: value.utf8)
        return HTTPReply(head: reply.head, body: body)
    }
}

extension Vault {
    /// Writes an item as an edit with this number.
    fileprivate func put(_ item: PlainItem, _ id: ItemID, in collection: String, as number: UInt64) throws {
        let edit = SealedBox.Edit(number: number, previous: SealedBox.Edit.first.previous)
        let content = try engine.sealer.seal(item, id, collection: collection, edit)
        try store.record(id, content: content, edit: number)
    }
}
