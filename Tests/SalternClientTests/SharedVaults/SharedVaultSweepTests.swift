import Cryptography
import Foundation
import SalternTesting
import Synchronization
import Testing

@testable import SalternClient

/// The chunks of replaced and deleted content in shared vaults, on a whole server.
@Suite struct SharedVaultSweepTests {
    private let content = SecureBytes(copying: [UInt8](repeating: 7, count: 600_000))
    private let item = ItemID.random()
    private let other = ItemID.random()

    /// A device of a person, with the items of one vault.
    private struct Member {
        let device: Device
        let vault: Vault
        let items: OwnedItems

        init(_ device: Device, _ vault: Vault, _ id: SharedVaultID) {
            self.device = device
            self.vault = vault
            items = OwnedItems(vault, of: .vault(id))
        }

        func put(_ body: SecureBytes, _ id: ItemID) async throws {
            try await items.put(PlainItem(body: body), id, in: "photos")
        }

        /// Lets an item hold other content, without chunks.
        func replace(_ id: ItemID) async throws { try await put(SecureBytes(copying: [1]), id) }

        func sync() async throws {
            let report = try await vault.sync()
            #expect(report.vaultFailures.isEmpty, "\(device.name)")
        }

        /// Lets so many days of the store's age pass, and syncs. The sync sweeps.
        func sync(afterDays days: Int64) async throws {
            try await items.pass(days: days)
            try await sync()
        }

        /// The chunks of the vault on the server.
        func chunks() async throws -> Set<ItemID> {
            try await vault.use(items.owner) { (parts) async throws(VaultError) in
                let token = try parts.scope.open.token
                do throws(APIError) {
                    let page = try await parts.scope.api.listItems(
                        collection: SalternClient.Attachment.chunkCollection, isMetaOnly: true, token)
                    return Set(page.items.map(\.id))
                } catch {
                    throw VaultError(error)
                }
            }
        }

        /// Sweeps the vault with room for so many chunks.
        /// - Returns: The rest of the room.
        func sweep(room: Int) async throws -> Int {
            try await vault.use(items.owner) { (parts) async throws(VaultError) in
                var room = room
                _ = await parts.attachments.sweeper.sweepWhenDue(at: Date(), age: 1, room: &room) {
                    () async throws(VaultError) in
                    try await parts.round()
                }
                return room
            }
        }
    }

    private static func signUp(_ name: String, _ server: LiveServer) async throws -> (Device, Vault) {
        var device = try Device(name, server)
        // Nothing is read but what the server has.
        device.settings.attachments = AttachmentStorage(waitingByteLimit: 0, copiedByteLimit: 0)
        let vault = try await Vault.signUp(
            device.settings, userid: "\(name)@example.org", password: Password("password"))
        return (device, vault)
    }

    /// Ada owns a vault, in which Bob has a role.
    private func withFamily(
        _ role: SharedRole = .writer, _ body: (LiveServer, Member, Member) async throws -> Void
    ) async throws {
        try await LiveServer.with { server in
            let (phone, ada) = try await Self.signUp("ada", server)
            let (laptop, bob) = try await Self.signUp("bob", server)
            let family = try await ada.shared.make(name: "Family", as: "Ada")
            let base = try #require(URL(string: server.base))
            let invitation = try await family.invite(base: base, role: role, code: .none)
            _ = try await bob.shared.join(invitation.link, code: nil, as: "Bob")
            for vault in [ada, bob, ada] { try await vault.sync() }
            try await body(server, Member(phone, ada, family.id), Member(laptop, bob, family.id))
        }
    }

    /// A member attaches content to an item, which others fetch.
    private func attach(_ member: Member, fetchedBy others: Member...) async throws -> SalternClient.Attachment {
        let made = try await member.items.attach(AttachmentSource(content))
        try await member.put(made.body(), item)
        for one in [member] + others { try await one.sync() }
        #expect(try await member.chunks() == Set(made.chunks) && made.chunks.count == 2)
        return made
    }

    // MARK: The period

    @Test func `chunks of a replaced version go after the period of the plan and of the other members`() async throws {
        try await withFamily { _, ada, bob in
            let made = try await attach(bob, fetchedBy: ada)
            try await bob.replace(item)
            try await bob.sync()
            try await ada.sync(afterDays: 0)
            for days in [31, 28] as [Int64] {
                try await ada.sync(afterDays: days)
                #expect(try await ada.chunks() == Set(made.chunks))
            }
            try await ada.sync(afterDays: 2)
            #expect(try await ada.chunks().isEmpty)
            try await bob.sync()
            #expect(try await bob.items.perform { store, _ in try store.chunks() }.isEmpty)
        }
    }

    @Test func `chunks of a deleted item stay while the trash has it, and for the period`() async throws {
        try await withFamily { _, ada, bob in
            let made = try await attach(bob, fetchedBy: ada)
            try await bob.items.delete(item)
            try await bob.sync()
            for days in [0, 31, 59] as [Int64] {
                try await ada.sync(afterDays: days)
                #expect(try await ada.chunks() == Set(made.chunks), "\(days)")
            }
            try await ada.sync(afterDays: 2)
            #expect(try await ada.chunks().isEmpty)
        }
    }

    @Test func `after a change to fewer days, what was replaced before stays as long as before`() async throws {
        try await withFamily { server, ada, bob in
            try await server.database.administer("UPDATE saltern.plans SET deleted_days = 100")
            let made = try await attach(bob, fetchedBy: ada)
            try await bob.replace(item)
            try await bob.sync()
            try await ada.sync(afterDays: 0)
            try await server.database.administer("UPDATE saltern.plans SET deleted_days = 30")
            for days in [62, 67] as [Int64] {
                try await ada.sync(afterDays: days)
                #expect(try await ada.chunks() == Set(made.chunks), "\(days)")
            }
            try await ada.sync(afterDays: 2)
            #expect(try await ada.chunks().isEmpty)
        }
    }

    // MARK: Names

    @Test func `an item that another member adds keeps the chunks, and begins the period again`() async throws {
        try await withFamily { _, ada, bob in
            let made = try await attach(ada, fetchedBy: bob)
            try await ada.replace(item)
            try await ada.sync()
            try await ada.sync(afterDays: 0)
            try await bob.put(made.body(), other)
            try await bob.sync()
            try await ada.sync(afterDays: 70)
            #expect(try await bob.items.content(of: made) == content)
            try await bob.replace(other)
            try await bob.sync()
            for days in [0, 59] as [Int64] {
                try await ada.sync(afterDays: days)
                #expect(try await ada.chunks() == Set(made.chunks), "\(days)")
            }
            try await ada.sync(afterDays: 2)
            #expect(try await ada.chunks().isEmpty)
        }
    }

    @Test func `an unsent edit of this device keeps the chunks`() async throws {
        try await withFamily { _, ada, bob in
            let made = try await attach(bob, fetchedBy: ada)
            try await bob.replace(item)
            try await bob.sync()
            try await ada.sync(afterDays: 0)
            let path = "\(ada.items.path)/items/batch"
            ada.device.link.setAnswer { request in request.target == path ? Self.problem(422, "strange") : nil }
            try await ada.put(made.body(), other)
            for days in [100, 100] as [Int64] { try await ada.sync(afterDays: days) }
            #expect(try await ada.items.unsentCount() == 1)
            ada.device.link.setAnswer { _ in nil }
            try await ada.sync()
            try await bob.sync()
            #expect(try await bob.items.wholeItem(other)?.body == content)
        }
    }

    @Test func `an item that does not open here keeps every chunk`() async throws {
        try await withFamily { _, ada, bob in
            let made = try await attach(bob, fetchedBy: ada)
            try await bob.replace(item)
            try await bob.replace(other)
            try await bob.sync()
            ada.device.link.setRewrite { [other] _, reply in Self.damaging(other, in: reply) }
            for days in [0, 100, 100] as [Int64] {
                try await ada.sync(afterDays: days)
                #expect(try await ada.chunks() == Set(made.chunks), "\(days)")
            }
            ada.device.link.setRewrite { $1 }
            try await bob.put(SecureBytes(copying: [2]), other)
            try await bob.sync()
            for days in [0, 100] as [Int64] { try await ada.sync(afterDays: days) }
            #expect(try await ada.chunks().isEmpty)
        }
    }

    @Test func `while deletions wait for a person, no chunk goes`() async throws {
        try await withFamily { _, ada, bob in
            let notes = (0..<12).map { _ in ItemID.random() }
            for id in notes { try await bob.items.put(PlainItem(body: SecureBytes(copying: [1])), id, in: "notes") }
            let made = try await attach(bob, fetchedBy: ada)
            try await bob.replace(item)
            try await bob.sync()
            try await ada.sync(afterDays: 0)
            for id in notes.prefix(6) { try await bob.items.delete(id) }
            try await bob.sync()
            try await ada.sync(afterDays: 100)
            #expect(try await ada.items.heldDeletions().count == 6)
            #expect(try await ada.chunks() == Set(made.chunks))
            try await ada.items.agreeToDeletions()
            #expect(try await ada.chunks().isEmpty)
        }
    }

    // MARK: Members

    @Test(arguments: [SharedRole.reader, .writer])
    func `only managers' devices sweep`(_ role: SharedRole) async throws {
        try await withFamily(role) { _, ada, bob in
            let made = try await attach(ada, fetchedBy: bob)
            try await ada.replace(item)
            for member in [ada, bob] { try await member.sync() }
            let count = Mutex(0)
            bob.device.link.setAnswer { request in
                if request.method == .delete { count.withLock { $0 += 1 } }
                return nil
            }
            for days in [0, 100, 100] as [Int64] { try await bob.sync(afterDays: days) }
            #expect(count.withLock { $0 } == 0)
            #expect(try await ada.chunks() == Set(made.chunks))
            for days in [0, 100] as [Int64] { try await ada.sync(afterDays: days) }
            #expect(try await ada.chunks().isEmpty)
        }
    }

    @Test func `a manager that was made a reader no longer sweeps`() async throws {
        try await withFamily(.manager) { _, ada, bob in
            let made = try await attach(bob, fetchedBy: ada)
            try await bob.replace(item)
            try await bob.sync()
            try await bob.sync(afterDays: 0)
            let family = try await #require(ada.vault.shared.all().first)
            let member = try #require(family.members.first { !$0.isOwn })
            try await family.setRole(member.id, to: .reader)
            for days in [100, 100] as [Int64] { try await bob.sync(afterDays: days) }
            #expect(try await ada.chunks() == Set(made.chunks))
        }
    }

    @Test func `two managers' devices sweep at the same time`() async throws {
        try await withFamily(.manager) { _, ada, bob in
            _ = try await attach(bob, fetchedBy: ada)
            try await bob.replace(item)
            try await bob.sync()
            for member in [ada, bob] {
                try await member.sync(afterDays: 0)
                try await member.items.pass(days: 100)
            }
            async let first: Void = ada.sync()
            async let second: Void = bob.sync()
            _ = try await (first, second)
            #expect(try await ada.chunks().isEmpty)
            for member in [ada, bob] {
                try await member.sync()
                #expect(try await member.items.perform { store, _ in try store.chunks() }.isEmpty)
            }
        }
    }

    // MARK: Failures and limits

    @Test func `a sweep that fails fails no sync, and stops no other vault`() async throws {
        try await withFamily { _, ada, _ in
            let id = try await ada.vault.shared.make(name: "Other", as: "Ada").id
            let members = [ada, Member(ada.device, ada.vault, id)].sorted { $0.items.path < $1.items.path }
            for member in members { _ = try await attach(member) }
            for member in members { try await member.replace(item) }
            for member in members { try await member.sync(afterDays: 0) }
            let path = "\(members[0].items.path)/items/"
            // The second one is that of an ended membership.
            for (days, problem) in [(100, (422, "strange")), (1, (404, "not_found")), (1, (403, "role_too_low"))] {
                ada.device.link.setAnswer { request in
                    request.method == .delete && request.target.hasPrefix(path)
                        ? Self.problem(problem.0, problem.1) : nil
                }
                for member in members { try await member.items.pass(days: Int64(days)) }
                try await ada.sync()
                #expect(try await members[0].chunks().count == 2, "\(problem)")
                #expect(try await members[1].chunks().isEmpty, "\(problem)")
            }
            ada.device.link.setAnswer { _ in nil }
            try await members[0].sync(afterDays: 1)
            #expect(try await members[0].chunks().isEmpty)
        }
    }

    @Test func `a device removes a part of a vault's limits in a day, within the room of all owners`() async throws {
        try await withFamily { server, ada, _ in
            try await server.database.administer("UPDATE saltern.plans SET max_item_bytes = 12000, vault_items = 280")
            let count = 26
            let bytes = (0..<(count * 2_048)).map { UInt8(truncatingIfNeeded: $0 / 2_048) }
            let made = try await ada.items.attach(AttachmentSource(SecureBytes(copying: bytes)))
            #expect(made.pieceCount == count)
            try await ada.put(made.body(), item)
            try await ada.sync()
            try await ada.replace(item)
            try await ada.sync(afterDays: 0)
            try await ada.sync(afterDays: 100)
            #expect(try await ada.chunks().count == 16)
            try await ada.sync()
            #expect(try await ada.chunks().count == 16)
            try await ada.items.pass(days: 1)
            // Without room, the vault is still due.
            #expect(try await ada.sweep(room: 0) == 0)
            #expect(try await ada.chunks().count == 16)
            #expect(try await ada.sweep(room: 4) == 0)
            #expect(try await ada.chunks().count == 12)
            #expect(try await ada.sweep(room: 200) == 200)
            for left in [2, 0] {
                try await ada.sync(afterDays: 1)
                #expect(try await ada.chunks().count == left)
            }
        }
    }

    // MARK: Replies

    private static func problem(_ status: Int, _ code: String) -> HTTPReply {
        let body = #"{"type":"about:blank","title":"No","status":\#(status),"code":"\#(code)"}"#
        return HTTPReply(head: HTTPReplyHead(status: status, fields: []), body: Array(body.utf8))
    }

    /// Changes an item in a page of changes so that it does not open.
    private static func damaging(_ id: ItemID, in reply: HTTPReply) -> HTTPReply {
        guard var page = try? JSONSerialization.jsonObject(with: Data(reply.body)) as? [String: Any],
            var changes = page["changes"] as? [[String: Any]]
        else { return reply }
        for index in changes.indices where changes[index]["id"] as? String == id.description {
            guard let text = changes[index]["body"] as? String, var body = Data(base64Encoded: text) else { continue }
            body[body.count - 1] ^= 1
            changes[index]["body"] = body.base64EncodedString()
        }
        page["changes"] = changes
        return HTTPReply(
            head: reply.head, body: Array((try? JSONSerialization.data(withJSONObject: page)) ?? Data()))
    }
}

extension OwnedItems {
    fileprivate var path: String { owner.path }

    /// Everything that ages in the store is so many days older, and a sweep is due.
    fileprivate func pass(days: Int64) async throws {
        try await perform { store, _ in
            let seconds = SQLiteValue.integer(days * 86_400)
            try store.database.execute("UPDATE chunks SET stored_at = stored_at - ?", seconds)
            try store.database.execute("UPDATE aging SET since = since - ?", seconds)
            try store.set(.sweptAt, nil)
            try store.set(.agedTo, nil)
        }
    }
}
