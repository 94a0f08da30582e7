import Cryptography
import Foundation
import SalternClient
import SalternTesting
import Testing

/// The API against a real server: that what this client sends is what the server understands, and the other way round.
@Suite struct LiveAPITests {
    private func secret() -> SecretBytes { SecretBytes(SecureRandom.secureBytes(32)) }

    private func content(_ count: Int = 200, collection: String = "notes") -> ItemContent {
        ItemContent(
            collection: collection, format: "aes-256-gcm", title: SecureRandom.bytes(80),
            body: SecureRandom.bytes(count))
    }

    /// What the server says of a call that it refuses.
    private func problem(_ call: () async throws -> Void) async throws -> Problem {
        let error = await #expect(throws: APIError.self) { try await call() }
        guard case .problem(let problem) = try #require(error) else { throw try #require(error) }
        return problem
    }

    @Test func `an account's life, from registration to deletion`() async throws {
        try await LiveServer.with { server in
            let api = try server.api()
            let service = try await api.describeService()
            #expect(service.saltPrefix == LiveServer.saltPrefix)
            #expect(service.pins.active == [try server.pins().active])
            let userid = "life@example.org"
            #expect(try await api.getKDFParameters(userid: userid).salt == LiveServer.saltPrefix + userid)
            let key = secret()
            let keyring = SecureRandom.bytes(200)
            let registration = try await api.register(
                userid: userid, passwordKey: key, iterations: 10_000, keyring: keyring, deviceName: "phone")
            let token = registration.session.token
            #expect(try await api.getAccount(token).userid == userid)
            #expect(try await api.getKeyring(token)?.keyring.bytes == keyring)

            let login = try await api.logIn(userid: userid, passwordKey: key, device: DeviceClaim(name: "laptop"))
            #expect(login.accountId == registration.accountId)
            #expect(login.keyring?.bytes == keyring)
            #expect(try await api.listSessions(token).count == 2)
            #expect(try await api.endOtherSessions(token).ended == 1)

            let second = SecureRandom.bytes(300)
            let revision = try await api.putKeyring(
                second, .revision(try #require(login.keyringRevision)), token)
            let next = secret()
            let change = try await api.changeCredential(
                NewCredential(passwordKey: next, iterations: 10_000, keyring: keyring, keyringRevision: revision),
                current: key, token)
            #expect(!change.currentSessionEnded)
            await #expect { try await api.logIn(userid: userid, passwordKey: key) } throws: {
                ($0 as? APIError)?.code == .wrongCredentials
            }
            #expect(try await !api.listEvents(token).events.isEmpty)
            var export: [UInt8] = []
            for try await piece in try await api.exportAccount(currentPasswordKey: next, token).body { export += piece }
            #expect(String(decoding: export, as: UTF8.self).contains(#""type":"end""#))
            try await api.deleteAccount(currentPasswordKey: next, token)
            await #expect { try await api.getAccount(token) } throws: { ($0 as? APIError)?.code == .unauthenticated }
        }
    }

    @Test func `an item's life, alone and in batches`() async throws {
        try await LiveServer.with { server in
            let api = try server.api()
            let token = try await api.register(
                userid: "items@example.org", passwordKey: secret(), iterations: 10_000, keyring: nil
            ).session.token
            let id = ItemID.random()
            let first = content()
            let created = try await api.putItem(id, first, .absent, token)
            #expect(try await api.getItem(id, token).content == first)
            let second = content(100_000)
            let updated = try await api.putItemBody(id, second, .revision(created.revision), token)
            #expect(try await api.getItem(id, token).content == second)
            let stale = try await problem { _ = try await api.putItem(id, first, .revision(created.revision), token) }
            #expect(stale.code == .preconditionFailed)
            #expect(stale.current?.content == second)
            let tombstone = try await api.deleteItem(id, .revision(updated.revision), token)
            #expect(tombstone.deleted && tombstone.content == nil)
            #expect(try await api.restoreItem(id, .present, token).content == second)

            let ids = (0..<3).map { _ in ItemID.random() }
            let result = try await api.writeBatch(
                ids.map { .put($0, content(), ifRevision: Revision(0)) } + [.delete(id, ifRevision: nil)], token)
            #expect(result.results.map(\.id) == ids + [id])
            let conflict = try await problem {
                _ = try await api.writeBatch([.put(ids[0], content(), ifRevision: Revision(1))], token)
            }
            #expect(conflict.conflicts?.first?.id == ids[0])
            #expect(conflict.conflicts?.first?.revision == result.results[0].revision)
            #expect(try await api.listItems(collection: "notes", isMetaOnly: true, token).items.count == 3)
            var page = try await api.listChanges(limit: 2, token)
            var changes = page.changes
            while page.more {
                page = try await api.listChanges(since: page.cursor, limit: 2, token)
                changes += page.changes
            }
            #expect(Set(changes.filter { !$0.deleted }.map(\.id)) == Set(ids))
            #expect(changes.map(\.revision) == changes.map(\.revision).sorted())
        }
    }

    private struct Name: Decodable {
        let text: String
        /// Nil for what can be no userid.
        let canonical: String?
    }

    private func canonicalForm(of userid: String, _ api: SalternAPI) async throws -> String? {
        do {
            _ = try await api.getKDFParameters(userid: userid)
            return userid
        } catch {
            guard case .problem(let problem) = error, problem.status == 422 else { throw error }
            return problem.canonical
        }
    }

    @Test func `a userid's canonical form is asked for, and comes back as other languages have it`() async throws {
        let file = URL(filePath: #filePath).appending(path: "../../../Integration/userids.json").standardized
        let names = try JSONDecoder().decode([Name].self, from: Data(contentsOf: file))
        try await LiveServer.with { server in
            let api = try server.api()
            for name in names {
                let canonical = try await self.canonicalForm(of: name.text, api)
                #expect(canonical.map { Array($0.utf8) } == name.canonical.map { Array($0.utf8) }, "\(name)")
            }
        }
    }

    @Test func `recovery, second factor, rotation and shares`() async throws {
        try await LiveServer.with { server in
            let api = try server.api()
            let key = secret()
            let userid = "rest@example.org"
            let keyring = SecureRandom.bytes(200)
            let registration = try await api.register(
                userid: userid, passwordKey: key, iterations: 10_000, keyring: keyring)
            let token = registration.session.token
            let recoveryKey = secret()
            let recoveryKeyring = SecureRandom.bytes(150)
            let present = try #require(try await api.getKeyring(token)).revision
            try await api.setRecovery(
                recoveryKey: recoveryKey, keyring: recoveryKeyring, accountKeyring: (keyring, present),
                currentPasswordKey: key, token)
            let recovery = try await api.recover(userid: userid, recoveryKey: recoveryKey)
            #expect(recovery.keyring?.bytes == recoveryKeyring)
            try await api.removeRecovery(currentPasswordKey: key, token)

            #expect(try await api.beginTOTP(currentPasswordKey: key, token).uri.hasPrefix("otpauth://"))
            try await api.endTOTP(currentPasswordKey: key, token)

            let rotation = try await api.openRotation(currentPasswordKey: key, token)
            try await api.discardRotation(rotation.id, token)

            let payload = ShareContent(
                format: "aes-256-gcm", salt: SecureRandom.bytes(16), iterations: 10_000,
                sealed: SecureRandom.bytes(100),
                maxViews: 2)
            let share = try await api.createShare(payload, token)
            #expect(try await api.lookAtShare(share.id) == 2)
            #expect(try await api.openShare(share.id).sealed == payload.sealed)
            #expect(try await api.listShares(token).shares.map(\.id) == [share.id])
            try await api.deleteShare(share.id, try #require(share.manageToken))
            await #expect { try await api.lookAtShare(share.id) } throws: { ($0 as? APIError)?.code == .notFound }
            #expect(try await api.endSession(#require(api.listSessions(token).first).id, token) == ())
        }
    }
}
