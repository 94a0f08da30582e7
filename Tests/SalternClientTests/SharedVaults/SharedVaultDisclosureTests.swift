import Foundation
import Testing
import VaultLog

@testable import SalternClient

private typealias Vault = SalternClient.Vault

/// The keys of an account in shared vaults, after a former data key of the account was disclosed.
@Suite struct SharedVaultDisclosureTests {
    private static let password = Password("correct horse battery staple")

    private func signUp(_ device: Device) async throws -> Vault {
        try await Vault.signUp(device.settings, userid: "\(device.name)@example.org", password: Self.password)
    }

    /// The founder of a vault with another member, and the keys that a former data key opens on the server.
    private struct Disclosed {
        let id: SharedVaultID
        let bob: Vault
        let record: MembershipRecord
        let sealer: Sealer

        /// - Parameter preparesKeys: True for a further pair of keys, which waits in the record.
        init(_ server: LiveServer, _ ada: Vault, _ bob: Vault, preparesKeys: Bool) async throws {
            let base = try #require(URL(string: server.base))
            let family = try await ada.shared.make(name: "Family", as: "Ada")
            let invitation = try await family.invite(base: base, role: .writer, code: .none)
            _ = try await bob.shared.join(invitation.link, code: nil, as: "Bob")
            for vault in [ada, bob, ada] { try await vault.sync() }
            if preparesKeys {
                try await ada.shared.withService { service throws(VaultError) in
                    try service.prepareKeys(service.known(family.id))
                }
                try await ada.sync()
            }
            (id, self.bob, sealer) = (family.id, bob, try await ada.sealer())
            let stored = try await server.api().getItem(ItemID(id.uuid), ada.secrets().token)
            let opened = try sealer.open(#require(stored.content), ItemID(id.uuid))
            record = try #require(MembershipRecord(opened.item.body))
            #expect(try await opensVault(server, ada))
        }

        /// True when the record opens the present key, or has the keys of a present member.
        func opensVault(_ server: LiveServer, _ ada: Vault) async throws -> Bool {
            let log = try #require(try await ada.vaultState(id)).log
            if log.presentMembers.contains(where: { record.privateKeys(of: $0.keys) != nil }) { return true }
            if record.generationKeys(in: log)[log.currentGeneration.number] != nil { return true }
            let boxes = try await server.api().getVaultLog(id, after: 0, ada.secrets().token).boxes
            return boxes.contains { box in
                record.keys.compactMap(\.privateKeys).contains { keys in
                    log.presentMembers.contains { member in
                        let key = try? GenerationBox.open(
                            box.box.bytes, log.currentGeneration, for: member.id, keys, of: log.vault)
                        return key != nil
                    }
                }
            }
        }

        /// Both members have new keys, and the record is under another data key.
        func check(_ server: LiveServer, _ ada: Vault) async throws {
            #expect(try await !opensVault(server, ada))
            #expect(try await !ada.shared(id).problems.contains(.keysDue))
            let stored = try await server.api().getItem(ItemID(id.uuid), ada.secrets().token)
            #expect(throws: SealedBox.Failure.self) { try sealer.open(#require(stored.content), ItemID(id.uuid)) }
            #expect(try await !bob.refreshed(id).isRotationDue)
            #expect(try await bob.key(id) == ada.key(id))
            let notes = try await bob.shared(id).collection("notes", of: Note.self)
            let item = try await notes.put(Note(text: "milk"))
            try await bob.sync()
            try await ada.sync()
            #expect(try await ada.shared(id).collection("notes", of: Note.self)[item] == Note(text: "milk"))
        }
    }

    @Test func `a rotation of the data key replaces the account's keys in vaults, too`() async throws {
        try await LiveServer.with { server in
            let (phone, laptop) = (try Device("ada", server), try Device("bob", server))
            let (ada, bob) = (try await signUp(phone), try await signUp(laptop))
            let disclosed = try await Disclosed(server, ada, bob, preparesKeys: false)
            try await ada.rotateKeys(password: Self.password)
            try await disclosed.check(server, ada)
        }
    }

    @Test func `keys in vaults that a rotation could not replace are replaced by the next syncs`() async throws {
        try await LiveServer.with { server in
            let (phone, laptop) = (try Device("ada", server), try Device("bob", server))
            let (ada, bob) = (try await signUp(phone), try await signUp(laptop))
            let disclosed = try await Disclosed(server, ada, bob, preparesKeys: true)
            phone.link.setUnreachable { $0.target.hasPrefix("/v1/vaults") }
            try await ada.rotateKeys(password: Self.password)
            #expect(try await ada.shared(disclosed.id).problems.contains(.keysDue))
            #expect(try await disclosed.opensVault(server, ada))
            phone.link.setUnreachable(false)
            for _ in 0..<2 { try await ada.sync() }
            try await disclosed.check(server, ada)
        }
    }

    @Test func `a rotation that ends with its commit leaves no keys in vaults that the old data key opens`()
        async throws
    {
        try await LiveServer.with { server in
            var phone = try Device("ada", server)
            let laptop = try Device("bob", server)
            try phone.beginLife()
            defer { phone.endLives() }
            var ada: Vault? = try await signUp(phone)
            let bob = try await signUp(laptop)
            let disclosed = try await Disclosed(server, #require(ada), bob, preparesKeys: true)
            let life = phone.life
            phone.link.setRewrite { request, reply in
                if request.target.hasSuffix("/commit") { life.end() }
                return reply
            }
            _ = try? await ada?.rotateKeys(password: Self.password)
            #expect(life.hasEnded)
            ada = nil
            phone.link.setRewrite { $1 }
            try phone.beginLife()
            let again = try #require(try await Vault.resume(phone.settings))
            _ = try? await again.sync()
            // The server wants the password key for other keys of a member.
            try await again.logInAgain(password: Self.password)
            for _ in 0..<3 { try await again.sync() }
            try await disclosed.check(server, again)
        }
    }
}

extension SalternClient.Vault {
    fileprivate func sealer() throws -> Sealer { try open.sealer }
}
