import Cryptography
import SalternTesting
import Synchronization
import Testing

@testable import SalternClient

/// A change of the data keys, with everything sealed anew.
@Suite final class RotationTests: Sendable {
    /// Their folders are there for as long as the test runs.
    private let devices = Mutex<[Device]>([])
    private let userid = "ada@example.org"
    private let password = Password("correct horse battery staple")

    private func signUp(_ server: LiveServer) async throws -> (Device, Vault) {
        var phone = try Device("phone", server)
        // Several requests for a handful of items.
        phone.settings.limits.batch = 2
        let settings = phone.settings
        devices.withLock { [phone] in $0.append(phone) }
        return (phone, try await Vault.signUp(settings, userid: userid, password: password))
    }

    private func logIn(_ name: String, _ server: LiveServer) async throws -> (Device, Vault) {
        let device = try Device(name, server)
        devices.withLock { $0.append(device) }
        return (device, try await Vault.logIn(device.settings, userid: userid, password: password))
    }

    private func notes(_ vault: Vault) -> VaultCollection<Note> { vault.collection("notes") }

    /// What a new device reads; and everything on the server is under the one key of the keyring.
    /// - Returns: That key.
    @discardableResult
    private func check(_ server: LiveServer, has expected: [ItemID: Note]) async throws -> DataKey.ID {
        let (_, vault) = try await logIn("new", server)
        try await vault.sync()
        #expect(try await notes(vault).all() == expected)
        #expect(try await vault.notices().isEmpty)
        let (token, keyring) = try await vault.secrets()
        let page = try await server.api().listChanges(since: nil, limit: 200, tellsDeletions: false, token)
        #expect(!page.more)
        let bodies = page.changes.compactMap(\.body?.bytes) + page.changes.compactMap(\.title?.bytes)
        #expect(keyring.dataKeys.count == 1)
        #expect(try Set(bodies.map { try SealedBox.keyID(of: $0) }) == [keyring.currentKey.id])
        return keyring.currentKey.id
    }

    @Test func `everything is under the new key, and other devices go on after a log-in without conflicts`()
        async throws
    {
        try await LiveServer.with { server in
            let (_, vault) = try await signUp(server)
            let (_, other) = try await logIn("laptop", server)
            let ids = (0..<5).map { _ in ItemID.random() }
            for (number, id) in ids.enumerated() {
                try await notes(vault).put(Note(text: "\(number)"), id, title: "T\(number)")
            }
            try await vault.sync()
            try await other.sync()
            let first = ids.enumerated().map { ($1, Note(text: "\($0)")) }
            let before = try await check(server, has: Dictionary(uniqueKeysWithValues: first))
            // Edited, deleted, moved, created and thrown away there, and not sent.
            try await notes(other).put(Note(text: "edited"), ids[0], title: "T0")
            try await notes(other).delete(ids[1])
            let moved = try #require(try await other.item(ids[2]))
            try await other.put(moved, ids[2], in: "archive")
            let created = try await notes(other).put(Note(text: "created"))
            // And here, while it goes on.
            try await notes(vault).put(Note(text: "edited here"), ids[3], title: "T3")
            try await vault.rotateKeys(password: password)
            await #expect { try await other.sync() } throws: {
                if case VaultError.sessionEnded = $0 { true } else { false }
            }
            try await other.logInAgain(password: password)
            // Offline, too, everything is there.
            #expect(try await notes(other)[ids[4]] == Note(text: "4"))
            for vault in [other, vault, other] { try await vault.sync() }
            let expected = [
                ids[0]: Note(text: "edited"), ids[3]: Note(text: "edited here"), ids[4]: Note(text: "4"),
                created: Note(text: "created"),
            ]
            for vault in [vault, other] {
                #expect(try await notes(vault).all() == expected)
                #expect(try await vault.ids("archive") == [ids[2]])
                #expect(try await vault.notices().isEmpty)
                #expect(try await vault.unsentCount() == 0)
            }
            #expect(try await check(server, has: expected) != before)
            // What was in the trash of before opens.
            try await notes(other).restore(ids[1])
            #expect(try await notes(other)[ids[1]] == Note(text: "1"))
        }
    }

    @Test func `a vault that was locked while keys changed opens what it had not sent`() async throws {
        try await LiveServer.with { server in
            let (_, vault) = try await signUp(server)
            let (_, other) = try await logIn("laptop", server)
            let id = try await notes(other).put(Note(text: "not sent"))
            try await other.lock()
            try await vault.rotateKeys(password: password)
            try await other.logInAgain(password: password)
            try await other.sync()
            try await check(server, has: [id: Note(text: "not sent")])
            // With another password, too, that of before has to be known.
            let next = try await notes(other).put(Note(text: "next"))
            try await other.lock()
            try await vault.logInAgain(password: password)
            try await vault.rotateKeys(password: password)
            try await vault.changePassword(from: password, to: Password("another"))
            await #expect { try await other.logInAgain(password: Password("another")) } throws: {
                if case VaultError.unsentEdits(count: 1) = $0 { true } else { false }
            }
            try await other.unlock(password)
            try await other.logInAgain(password: Password("another"))
            try await other.sync()
            try await vault.sync()
            #expect(try await notes(vault)[next] == Note(text: "next"))
        }
    }

    @Test func `the code that was printed before opens what is sealed afterwards`() async throws {
        try await LiveServer.with { server in
            let (_, vault) = try await signUp(server)
            let code = try await vault.makeRecoveryCode(password: password)
            let id = try await notes(vault).put(Note(text: "kept"))
            try await vault.rotateKeys(password: password)
            try await vault.rotateKeys(password: password)
            let later = try await notes(vault).put(Note(text: "later"))
            try await vault.sync()
            let device = try Device("recovered", server)
            let recovered = try await Vault.recover(
                device.settings, userid: userid, code: code, newPassword: Password("another"))
            try await recovered.sync()
            #expect(try await notes(recovered).all() == [id: Note(text: "kept"), later: Note(text: "later")])
        }
    }

    @Test(arguments: [true, false]) func `interrupted at any exchange it goes on or is undone`(losesReplies: Bool)
        async throws
    {
        try await LiveServer.with { server in
            let phone: Device
            var vault: Vault?
            (phone, vault) = try await signUp(server)
            _ = try await vault?.makeRecoveryCode(password: password)
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
                let isDone = await Self.isDone { try await vault?.rotateKeys(password: password) }
                // Written by who does not know how it ended, and nothing of it was sent.
                let id = ItemID.random()
                try await vault?.collection("notes").put(Note(text: "after \(exchange)"), id)
                expected[id] = Note(text: "after \(exchange)")
                vault = nil
                phone.link.setFate { .passes }
                vault = try await Vault.resume(phone.settings)
                try await vault?.sync()
                #expect(try await vault?.collection("notes").all() == expected)
                #expect(try await vault?.notices().isEmpty == true)
                #expect(try await vault?.unsentCount() == 0)
                keys.insert(try await check(server, has: expected))
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
            (phone, vault) = try await signUp(server)
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
                _ = await Self.isDone { try await vault?.rotateKeys(password: password) }
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
                try await check(server, has: expected)
                for id in expected.keys { try await vault?.delete(id) }
                try await vault?.sync()
            }
        }
    }

    @Test(arguments: LossyTransport.Moment.allCases)
    func `what is written meanwhile is kept, and under the new key`(moment: LossyTransport.Moment) async throws {
        try await LiveServer.with { server in
            let (phone, vault) = try await signUp(server)
            let (_, other) = try await logIn("laptop", server)
            var expected: [ItemID: Note] = [:]
            let (shared, own) = (ItemID.random(), ItemID.random())
            for id in [shared, own] + (0..<3).map({ _ in .random() }) {
                expected[id] = Note(text: "first")
                try await notes(vault).put(Note(text: "first"), id)
            }
            for vault in [vault, other] { try await vault.sync() }
            for exchange in 0... {
                let (created, here) = (ItemID.random(), ItemID.random())
                let text = Note(text: "\(exchange)")
                phone.link.interrupt(
                    LossyTransport.Interruption(exchange: exchange, moment: moment) {
                        _ = try? await self.notes(other).put(text, shared)
                        _ = try? await self.notes(other).put(text, created)
                        _ = try? await self.notes(vault).put(text, own)
                        _ = try? await self.notes(vault).put(text, here)
                        _ = try? await other.sync()
                    })
                try await vault.rotateKeys(password: password)
                if phone.link.endInterruption() != nil { break }
                expected[shared] = text
                expected[created] = text
                expected[own] = text
                expected[here] = text
                try await other.logInAgain(password: password)
                for vault in [vault, other, vault] { try await vault.sync() }
                for vault in [vault, other] {
                    #expect(try await notes(vault).all() == expected)
                    #expect(try await vault.notices().isEmpty)
                }
                try await check(server, has: expected)
                // Each time the same number of requests.
                for id in [created, here] {
                    try await notes(vault).delete(id)
                    expected[id] = nil
                }
                for vault in [vault, other] { try await vault.sync() }
                try #require(exchange < 40)
            }
        }
    }

    @Test func `what nobody can open stops it, and everything stays`() async throws {
        try await LiveServer.with { server in
            let (_, vault) = try await signUp(server)
            let id = try await notes(vault).put(Note(text: "kept"))
            try await vault.sync()
            let token = try await vault.secrets().token
            let foreign = Sealer(account: .random(), keyring: .new())
            let content = try foreign.seal(
                PlainItem(body: SecureBytes(copying: [1])), .random(), collection: "notes", .first)
            let api = try server.api()
            let broken = ItemID.random()
            _ = try await api.writeBatch([.put(broken, content, ifRevision: Revision(0))], token)
            await #expect { try await vault.rotateKeys(password: password) } throws: {
                if case VaultError.unreadable = $0 { true } else { false }
            }
            _ = try await api.writeBatch([.delete(broken, ifRevision: nil)], token)
            try await vault.sync()
            try await check(server, has: [id: Note(text: "kept")])
            try await vault.rotateKeys(password: password)
            try await check(server, has: [id: Note(text: "kept")])
        }
    }

    @Test func `a keyring of before is refused, and nothing is sealed with its keys`() async throws {
        try await LiveServer.with { server in
            let (phone, vault) = try await signUp(server)
            let id = try await notes(vault).put(Note(text: "kept"))
            let token = try await vault.secrets().token
            let old = try #require(try await server.api().getKeyring(token)).keyring.bytes
            try await vault.rotateKeys(password: password)
            let lie = #""keyring":"\#(Base64.encodeToString(old))""#
            phone.link.setRewrite { request, reply in
                guard request.target != "/v1/changes" else { return reply }
                let text = String(decoding: reply.body, as: UTF8.self).replacing(/"keyring":"[^"]*"/, with: lie)
                return HTTPReply(head: reply.head, body: Array(text.utf8))
            }
            for _ in 0..<2 {
                await #expect { try await vault.rotateKeys(password: password) } throws: {
                    if case VaultError.keyringUnusable = $0 { true } else { false }
                }
            }
            #expect(try await vault.notices().map(\.kind) == [.keyringRolledBack])
            await #expect { try await vault.logInAgain(password: password) } throws: {
                if case VaultError.keyringUnusable = $0 { true } else { false }
            }
            phone.link.setRewrite { $1 }
            let later = try await notes(vault).put(Note(text: "later"))
            try await vault.sync()
            try await check(server, has: [id: Note(text: "kept"), later: Note(text: "later")])
        }
    }

    @Test func `after a restore of the server no newer key is sealed under a password of before`() async throws {
        try await LiveServer.with { server in
            let (_, vault) = try await signUp(server)
            let api = try server.api()
            let old = try #require(try await api.getKeyring(vault.secrets().token)).keyring.bytes
            try await vault.rotateKeys(password: password)
            let next = Password("correct horse battery staple, too")
            try await vault.changePassword(from: password, to: next)
            // Another device makes the server what it was.
            let other = try await Vault.logIn(
                try Device("other", server).settings, userid: userid, password: next, code: nil)
            try await other.changePassword(from: next, to: password)
            let token = try await other.secrets().token
            let now = try #require(try await api.getKeyring(token))
            _ = try await api.putKeyring(old, recoveryKeyring: nil, .revision(now.revision), token)
            await #expect {
                try await vault.logInAgain(password: password, restoringKeyring: true)
            } throws: {
                if case VaultError.keyringUnusable = $0 { true } else { false }
            }
        }
    }

    /// What the account's recovery is when the server's database is restored.
    enum RestoredCode: CaseIterable { case none, same, laterHere }

    @Test(arguments: RestoredCode.allCases)
    func `after a restore of the server the later keyring is put back when a person agrees`(
        _ kind: RestoredCode
    ) async throws {
        try await LiveServer.with { server in
            let (_, vault) = try await signUp(server)
            let code = kind == .same ? try await vault.makeRecoveryCode(password: password) : nil
            let id = try await notes(vault).put(Note(text: "kept"))
            try await vault.sync()
            let api = try server.api()
            let old = try #require(try await api.getKeyring(vault.secrets().token)).keyring.bytes
            let item = try #require(try await api.getItem(id, vault.secrets().token).content)
            if kind == .laterHere { _ = try await vault.makeRecoveryCode(password: password) }
            try await vault.rotateKeys(password: password)
            let later = try await notes(vault).put(Note(text: "later"))
            try await vault.sync()
            let (token, keyring) = try await vault.secrets()
            let now = try #require(try await api.getKeyring(token))
            let recoveryKeyring = kind == .none ? nil : SecureRandom.bytes(300)
            _ = try await api.putKeyring(old, recoveryKeyring: recoveryKeyring, .revision(now.revision), token)
            _ = try await api.putItem(id, item, .present, token)

            await #expect { try await vault.logInAgain(password: password) } throws: {
                if case VaultError.keyringUnusable = $0 { true } else { false }
            }
            let unsent = try await notes(vault).put(Note(text: "unsent"))
            try await vault.logInAgain(password: password, restoringKeyring: true)
            let next = try await vault.secrets().keyring
            #expect(next.counter > keyring.counter && next.currentKey == keyring.currentKey)
            try await vault.sync()
            let all = [id: Note(text: "kept"), later: Note(text: "later"), unsent: Note(text: "unsent")]
            let (_, other) = try await logIn("other", server)
            try await other.sync()
            #expect(try await notes(other).all() == all)
            // What is sealed with the older key opens: it is an edit of before, and no riddle.
            let kinds: [Notice.Kind] = kind == .laterHere ? [.recoveryRemoved, .rolledBack] : [.rolledBack]
            #expect(try await vault.notices().map(\.kind) == kinds)
            #expect(try await vault.account().recovery.set == (kind == .same))
            // What needs the server's keyring goes on.
            try await vault.rotateKeys(password: password)
            try await check(server, has: all)
            if let code {
                let device = try Device("recovered", server)
                let recovered = try await Vault.recover(
                    device.settings, userid: userid, code: code, newPassword: Password("another"))
                try await recovered.sync()
                #expect(try await notes(recovered).all() == all)
            } else {
                _ = try await vault.makeRecoveryCode(password: password)
            }
        }
    }

    @Test func `new keys go to the recovery key of one's own keyring, whatever recovery the server has`() async throws {
        try await LiveServer.with { server in
            let (phone, vault) = try await signUp(server)
            let code = try await vault.makeRecoveryCode(password: password)
            let id = try await notes(vault).put(Note(text: "kept"))
            // A recovery keyring of somebody else, in the place of the person's.
            let (token, keyring) = try await vault.secrets()
            let account = try await vault.account().accountId
            let stretched = await code.stretched(saltPrefix: LiveServer.saltPrefix)
            let proof = try await phone.settings.stretching.stretch(password, userid: userid, iterations: 10_000)
            let foreign = try await RecoveryKeys.new(
                for: RecoveryCode.random().stretched(saltPrefix: "x"), account: account)
            let own = try #require(try await server.api().getKeyring(token))
            _ = try await server.api().setRecovery(
                recoveryKey: stretched.passwordKey, keyring: foreign.sealedKeyring(keyring, account: account),
                accountKeyring: (own.keyring.bytes, own.revision), currentPasswordKey: proof.passwordKey, token)
            try await vault.rotateKeys(password: password)
            let device = try Device("recovered", server)
            let recovered = try await Vault.recover(
                device.settings, userid: userid, code: code, newPassword: Password("another"))
            try await recovered.sync()
            #expect(try await notes(recovered).all() == [id: Note(text: "kept")])
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
        (try open.token, try open.engine.sealer.keyring)
    }
}
