import Cryptography
import SalternTesting
import Synchronization
import Testing

@testable import SalternClient

/// A change of the data keys, with everything sealed anew.
@Suite struct RotationTests {
    private let fixture = RotationFixture()

    @Test func `everything is under the new key, and other devices go on after a log-in without conflicts`()
        async throws
    {
        try await LiveServer.with { server in
            let (_, vault) = try await fixture.signUp(server)
            let (_, other) = try await fixture.logIn("laptop", server)
            let ids = (0..<5).map { _ in ItemID.random() }
            for (number, id) in ids.enumerated() {
                try await fixture.notes(vault).put(Note(text: "\(number)"), id, title: "T\(number)")
            }
            try await vault.sync()
            try await other.sync()
            let first = ids.enumerated().map { ($1, Note(text: "\($0)")) }
            let before = try await fixture.check(server, has: Dictionary(uniqueKeysWithValues: first))
            // Edited, deleted, moved, created and thrown away there, and not sent.
            try await fixture.notes(other).put(Note(text: "edited"), ids[0], title: "T0")
            try await fixture.notes(other).delete(ids[1])
            let moved = try #require(try await other.item(ids[2]))
            try await other.put(moved, ids[2], in: "archive")
            let created = try await fixture.notes(other).put(Note(text: "created"))
            // And here, while it goes on.
            try await fixture.notes(vault).put(Note(text: "edited here"), ids[3], title: "T3")
            try await vault.rotateKeys(password: fixture.password)
            await #expect { try await other.sync() } throws: {
                if case VaultError.sessionEnded = $0 { true } else { false }
            }
            try await other.logInAgain(password: fixture.password)
            // Offline, too, everything is there.
            #expect(try await fixture.notes(other)[ids[4]] == Note(text: "4"))
            for vault in [other, vault, other] { try await vault.sync() }
            let expected = [
                ids[0]: Note(text: "edited"), ids[3]: Note(text: "edited here"), ids[4]: Note(text: "4"),
                created: Note(text: "created"),
            ]
            for vault in [vault, other] {
                #expect(try await fixture.notes(vault).all() == expected)
                #expect(try await vault.ids("archive") == [ids[2]])
                #expect(try await vault.notices().isEmpty)
                #expect(try await vault.unsentCount() == 0)
            }
            #expect(try await fixture.check(server, has: expected) != before)
            // What was in the trash of before opens.
            try await fixture.notes(other).restore(ids[1])
            #expect(try await fixture.notes(other)[ids[1]] == Note(text: "1"))
        }
    }

    @Test func `a rotation leaves a lasting notice of the printed code until there is another or none`()
        async throws
    {
        try await LiveServer.with { server in
            let (_, vault) = try await fixture.signUp(server)
            try await vault.rotateKeys(password: fixture.password)
            #expect(try await vault.notices().isEmpty)
            _ = try await vault.makeRecoveryCode(password: fixture.password)
            let (_, other) = try await fixture.logIn("laptop", server)
            for changesCode in [true, false] {
                try await vault.rotateKeys(password: fixture.password)
                try await other.logInAgain(password: fixture.password)
                for vault in [vault, other] {
                    for notice in try await vault.notices() { try await vault.forget(notice) }
                    #expect(try await vault.notices().map(\.kind) == [.recoveryCodeOutdated])
                }
                // Another password changes nothing about it.
                try await vault.changePassword(from: fixture.password, to: Password("another"))
                try await vault.changePassword(from: Password("another"), to: fixture.password)
                #expect(try await vault.notices().map(\.kind) == [.recoveryCodeOutdated])
                if changesCode {
                    _ = try await vault.makeRecoveryCode(password: fixture.password)
                } else {
                    try await vault.removeRecoveryCode(password: fixture.password)
                }
                #expect(try await vault.notices().isEmpty)
                try await other.logInAgain(password: fixture.password)
                #expect(try await other.notices().isEmpty)
            }
        }
    }

    @Test func `a vault that was locked while keys changed opens what it had not sent`() async throws {
        try await LiveServer.with { server in
            let (_, vault) = try await fixture.signUp(server)
            let (_, other) = try await fixture.logIn("laptop", server)
            let id = try await fixture.notes(other).put(Note(text: "not sent"))
            try await other.lock()
            try await vault.rotateKeys(password: fixture.password)
            try await other.logInAgain(password: fixture.password)
            try await other.sync()
            try await fixture.check(server, has: [id: Note(text: "not sent")])
            // With another password, too, that of before has to be known.
            let next = try await fixture.notes(other).put(Note(text: "next"))
            try await other.lock()
            try await vault.logInAgain(password: fixture.password)
            try await vault.rotateKeys(password: fixture.password)
            try await vault.changePassword(from: fixture.password, to: Password("another"))
            await #expect { try await other.logInAgain(password: Password("another")) } throws: {
                if case VaultError.unsentEdits(count: 1) = $0 { true } else { false }
            }
            try await other.unlock(fixture.password)
            try await other.logInAgain(password: Password("another"))
            try await other.sync()
            try await vault.sync()
            #expect(try await fixture.notes(vault)[next] == Note(text: "next"))
        }
    }

    @Test func `the code that was printed before opens what is sealed afterwards`() async throws {
        try await LiveServer.with { server in
            let (_, vault) = try await fixture.signUp(server)
            let code = try await vault.makeRecoveryCode(password: fixture.password)
            let id = try await fixture.notes(vault).put(Note(text: "kept"))
            try await vault.rotateKeys(password: fixture.password)
            try await vault.rotateKeys(password: fixture.password)
            let later = try await fixture.notes(vault).put(Note(text: "later"))
            try await vault.sync()
            let device = try Device("recovered", server)
            let recovered = try await Vault.recover(
                device.settings, userid: fixture.userid, code: code, newPassword: Password("another"))
            try await recovered.sync()
            #expect(try await fixture.notes(recovered).all() == [id: Note(text: "kept"), later: Note(text: "later")])
        }
    }

    @Test(arguments: [true, false]) func `interrupted at any exchange it goes on or is undone`(losesReplies: Bool)
        async throws
    {
        try await LiveServer.with { server in
            let phone: Device
            var vault: Vault?
            (phone, vault) = try await fixture.signUp(server)
            _ = try await vault?.makeRecoveryCode(password: fixture.password)
            var expected: [ItemID: Note] = [:]
            var keys: Set<DataKey.ID> = []
            for number in 0..<5 {
                let id = ItemID.random()
                try await vault?.collection("notes").put(Note(text: "\(number)"), id)
                expected[id] = Note(text: "\(number)")
            }
            try await vault?.sync()
            for exchange in 0... {
                let count = Mutex(0)
                phone.link.setFate {
                    let number = count.withLock { count in
                        defer { count += 1 }
                        return count
                    }
                    return number < exchange
                        ? .passes : losesReplies && number == exchange ? .losesReply : .losesRequest
                }
                let isDone = await Self.isDone { try await vault?.rotateKeys(password: fixture.password) }
                // Written by who does not know how it ended, and nothing of it was sent.
                let id = ItemID.random()
                try await vault?.collection("notes").put(Note(text: "after \(exchange)"), id)
                expected[id] = Note(text: "after \(exchange)")
                vault = nil
                phone.link.setFate { .passes }
                vault = try await Vault.resume(phone.settings)
                try await vault?.sync()
                #expect(try await vault?.collection("notes").all() == expected)
                let kinds = try await vault?.notices().map(\.kind) ?? []
                #expect(kinds.allSatisfy { $0 == .recoveryCodeOutdated }, "\(kinds)")
                #expect(try await vault?.unsentCount() == 0)
                keys.insert(try await fixture.check(server, has: expected))
                if isDone, count.withLock({ $0 }) <= exchange { break }
                try #require(exchange < 40)
            }
            #expect(keys.count > 1)
        }
    }

    /// Nothing that comes from the server says that there is another key.
    @Test(arguments: [LossyTransport.Fate.losesRequest, .losesReply, .arrivesLate])
    func `interrupted in an empty account, the first item is under the key in force`(fate: LossyTransport.Fate)
        async throws
    {
        try await LiveServer.with { server in
            let phone: Device
            var vault: Vault?
            (phone, vault) = try await fixture.signUp(server)
            for exchange in 0..<8 {
                let count = Mutex(0)
                phone.link.setFate {
                    let number = count.withLock { count in
                        defer { count += 1 }
                        return count
                    }
                    return number < exchange
                        ? .passes : number == exchange || fate == .arrivesLate ? fate : .losesRequest
                }
                _ = await Self.isDone { try await vault?.rotateKeys(password: fixture.password) }
                var expected: [ItemID: Note] = [:]
                for text in ["before", "after"] {
                    let id = ItemID.random()
                    try await vault?.collection("notes").put(Note(text: text), id)
                    expected[id] = Note(text: text)
                    vault = nil
                    phone.link.setFate { .passes }
                    vault = try await Vault.resume(phone.settings)
                    try await vault?.sync()
                    // A commit that comes only now changes nothing any more.
                    await phone.link.deliverLate()
                }
                try await fixture.check(server, has: expected)
                for id in expected.keys { try await vault?.delete(id) }
                try await vault?.sync()
            }
        }
    }

    @Test(arguments: LossyTransport.Moment.allCases)
    func `what is written meanwhile is kept, and under the new key`(moment: LossyTransport.Moment) async throws {
        try await LiveServer.with { server in
            let (phone, vault) = try await fixture.signUp(server)
            let (_, other) = try await fixture.logIn("laptop", server)
            var expected: [ItemID: Note] = [:]
            let (shared, own) = (ItemID.random(), ItemID.random())
            for id in [shared, own] + (0..<3).map({ _ in .random() }) {
                expected[id] = Note(text: "first")
                try await fixture.notes(vault).put(Note(text: "first"), id)
            }
            for vault in [vault, other] { try await vault.sync() }
            for exchange in 0... {
                let (created, here) = (ItemID.random(), ItemID.random())
                let text = Note(text: "\(exchange)")
                phone.link.interrupt(
                    LossyTransport.Interruption(exchange: exchange, moment: moment) {
                        _ = try? await self.fixture.notes(other).put(text, shared)
                        _ = try? await self.fixture.notes(other).put(text, created)
                        _ = try? await self.fixture.notes(vault).put(text, own)
                        _ = try? await self.fixture.notes(vault).put(text, here)
                        _ = try? await other.sync()
                    })
                try await vault.rotateKeys(password: fixture.password)
                if phone.link.endInterruption() != nil { break }
                expected[shared] = text
                expected[created] = text
                expected[own] = text
                expected[here] = text
                try await other.logInAgain(password: fixture.password)
                for vault in [vault, other, vault] { try await vault.sync() }
                for vault in [vault, other] {
                    #expect(try await fixture.notes(vault).all() == expected)
                    #expect(try await vault.notices().isEmpty)
                }
                try await fixture.check(server, has: expected)
                // Each time the same number of requests.
                for id in [created, here] {
                    try await fixture.notes(vault).delete(id)
                    expected[id] = nil
                }
                for vault in [vault, other] { try await vault.sync() }
                try #require(exchange < 40)
            }
        }
    }

    @Test func `what nobody can open stops it, and everything stays`() async throws {
        try await LiveServer.with { server in
            let (_, vault) = try await fixture.signUp(server)
            let id = try await fixture.notes(vault).put(Note(text: "kept"))
            try await vault.sync()
            let token = try await vault.secrets().token
            let foreign = Sealer(account: .random(), keyring: .new())
            let content = try foreign.seal(
                PlainItem(body: SecureBytes(copying: [1])), .random(), collection: "notes", .first)
            let api = try server.api()
            let broken = ItemID.random()
            _ = try await api.writeBatch([.put(broken, content, ifRevision: Revision(0))], token)
            await #expect { try await vault.rotateKeys(password: fixture.password) } throws: {
                if case VaultError.unreadable = $0 { true } else { false }
            }
            _ = try await api.writeBatch([.delete(broken, ifRevision: nil)], token)
            try await vault.sync()
            try await fixture.check(server, has: [id: Note(text: "kept")])
            try await vault.rotateKeys(password: fixture.password)
            try await fixture.check(server, has: [id: Note(text: "kept")])
        }
    }

    private static func isDone(_ body: () async throws -> Void) async -> Bool {
        do {
            try await body()
            return true
        } catch {
            return false
        }
    }
}

extension Vault {
    func secrets() throws -> (token: Token, keyring: Keyring) {
        (try open.token, try open.sealer.keyring)
    }
}
