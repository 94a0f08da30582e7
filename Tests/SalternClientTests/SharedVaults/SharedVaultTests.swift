import Foundation
import Testing
import VaultLog

@testable import SalternClient

/// Founding, inviting, joining, and the changes of members, against a server that checks every entry.
@Suite struct SharedVaultTests {
    @Test func `a vault is founded, joined and shown alike to both`() async throws {
        let people = SharedVaultPeople()
        let ada = try await people.device("ada")
        let bob = try await people.device("bob")
        let family = try await ada.shared.make(name: "Family", as: "Ada")
        #expect(family.isOwner && family.role == .manager && family.problems.isEmpty && family.isConfirmed)
        let invitation = try await family.invite(base: SharedVaultPeople.base, role: .writer, label: "my brother")
        let code = try #require(invitation.code)
        #expect(try InvitationAddress(invitation.link).needsCode)

        await #expect { try await bob.shared.preview(invitation.link, code: nil) } throws: {
            $0.isShared(.codeRequired)
        }
        await #expect {
            try await bob.shared.preview(invitation.link, code: "abandon ability able about above absent")
        } throws: {
            $0.isShared(.invitationGoneOrWrongCode)
        }
        let preview = try await bob.shared.preview(invitation.link, code: code)
        #expect(preview.vaultName == "Family" && preview.inviterName == "Ada" && preview.role == .writer)
        let joined = try await bob.shared.join(invitation.link, code: code, as: "Bob")
        #expect(joined.id == family.id && joined.role == .writer && !joined.isOwner && joined.problems.isEmpty)
        #expect(!joined.isConfirmed)

        let seen = try await ada.refreshed(family.id)
        #expect(seen.members.map(\.name) == ["Ada", "Bob"])
        #expect(seen.members.map(\.label) == [nil, "my brother"])
        #expect(seen.invitations.isEmpty)
        let later = try await bob.refreshed(family.id)
        #expect(later.isConfirmed && later.verificationWords == seen.verificationWords)
        #expect(later.members.map(\.label) == [nil, nil])
        // The link was used up.
        let eve = try await people.device("eve")
        await #expect { try await eve.shared.join(invitation.link, code: code, as: "Eve") } throws: {
            $0.isShared(.invitationGoneOrWrongCode)
        }
    }

    @Test func `another device of a member gets the vault by a sync`() async throws {
        let people = SharedVaultPeople()
        let phone = try await people.device("ada")
        let family = try await phone.shared.make(name: "Family", as: "Ada")
        let laptop = try await people.device("ada")
        let found = try await laptop.refreshed(family.id)
        #expect(found.name == "Family" && found.isOwner && found.problems.isEmpty)
        // The keys are not an item of the person.
        #expect(try await laptop.items().isEmpty)
        #expect(try await laptop.collectionCounts().isEmpty)
        await #expect(throws: VaultError.self) {
            try await laptop.put(PlainItem(body: .init(copying: [1])), .random(), in: "saltern-vaults")
        }
        try await laptop.delete(ItemID(family.id.uuid))
        #expect(try await laptop.refreshed(family.id).isOwner)
    }

    @Test func `a vault whose keys a sync has sent is founded, though the round of the call fails`() async throws {
        let people = SharedVaultPeople()
        let ada = try await people.device("ada")
        let link = try #require(people.links.first)
        let founding = try await ada.shared.withService { service throws(VaultError) in
            await service.session.serverLock.lock()
            defer { service.session.serverLock.unlock() }
            let founding = Task { try await ada.shared.make(name: "Family", as: "Ada") }
            while try !service.hasUnsentRecords(), !Task.isCancelled { await Task.yield() }
            // The steps of a sync. Then the call has its turn.
            _ = try await service.syncing.round()
            _ = try await service.holding { () async throws(VaultError) in try await service.founding.finishAll() }
            link.setUnreachable { $0.target.hasPrefix("/v1/changes") }
            return founding
        }
        let family = try await founding.value
        link.setUnreachable(false)
        try await ada.sync()
        #expect(try await ada.shared.all().map(\.id) == [family.id])
        #expect(people.vaults.withState { Array($0.vaults.keys) } == [family.id.description])
    }

    @Test func `a removal gives the others a key that the removed member does not have`() async throws {
        let people = SharedVaultPeople()
        let ada = try await people.device("ada")
        let bob = try await people.device("bob")
        let eve = try await people.device("eve")
        let family = try await ada.shared.make(name: "Family", as: "Ada")
        _ = try await people.join(family, bob, as: "Bob")
        _ = try await people.join(family, eve, as: "Eve")
        let member = try #require(try await ada.refreshed(family.id).members.first { $0.name == "Eve" })
        try await family.remove([member.id])
        let after = try await ada.shared(family.id)
        #expect(after.members.map(\.name) == ["Ada", "Bob"] && after.problems.isEmpty && !after.isRotationDue)
        #expect(try await bob.refreshed(family.id).members.map(\.name) == ["Ada", "Bob"])
        #expect(try await bob.key(family.id) == ada.key(family.id))
        let removed = try await eve.refreshed(family.id)
        #expect(removed.role == nil && removed.problems.contains(.ended))
        #expect(try await eve.key(family.id) != ada.key(family.id))
        try await removed.forget()
        #expect(try await eve.shared.all().isEmpty)
        // Whoever was removed can come back, by an invitation.
        let back = try await people.join(family, eve, as: "Eve", role: .reader)
        #expect(back.role == .reader && back.problems.isEmpty)
    }

    @Test func `a link that has been used up by this account is that of a member`() async throws {
        let people = SharedVaultPeople()
        let ada = try await people.device("ada")
        let bob = try await people.device("bob")
        let eve = try await people.device("eve")
        let family = try await ada.shared.make(name: "Family", as: "Ada")
        let invitation = try await family.invite(base: SharedVaultPeople.base, code: .none)
        _ = try await bob.shared.join(invitation.link, code: nil, as: "Bob")
        await #expect { try await bob.shared.join(invitation.link, code: nil, as: "Bob") } throws: {
            $0.isShared(.alreadyMember)
        }
        await #expect { try await eve.shared.join(invitation.link, code: nil, as: "Eve") } throws: {
            $0.isShared(.invitationGone)
        }
    }

    @Test func `roles are those of the log`() async throws {
        let people = SharedVaultPeople()
        let ada = try await people.device("ada")
        let bob = try await people.device("bob")
        let family = try await ada.shared.make(name: "Family", as: "Ada")
        let joined = try await people.join(family, bob, as: "Bob", role: .reader)
        await #expect { try await joined.rotate() } throws: { $0.isShared(.notPermitted) }
        let member = try #require(try await ada.refreshed(family.id).members.first { $0.name == "Bob" })
        try await family.setRole(member.id, to: .manager)
        let owner = try #require(family.ownMember)
        #expect(try await bob.refreshed(family.id).role == .manager)
        await #expect { try await joined.remove([owner.id]) } throws: { $0.isShared(.ownerProtected) }
        await #expect { try await family.leave() } throws: { $0.isShared(.ownerProtected) }

        await #expect { try await joined.acceptHandOver() } throws: { $0.isShared(.noOffer) }
        try await family.handOver(to: member.id)
        #expect(try await bob.refreshed(family.id).offeredTo == member.id)
        try await joined.acceptHandOver()
        #expect(try await bob.shared(family.id).isOwner)
        #expect(try await !ada.refreshed(family.id).isOwner)
        try await family.leave()
        #expect(try await ada.shared(family.id).role == nil)
        // The key is another one at the next sync of a manager.
        let before = try await bob.key(family.id)
        #expect(try await !bob.refreshed(family.id).isRotationDue)
        #expect(try await bob.key(family.id) != before)
    }

    @Test func `all devices of an account distinguish a leave from a removal`() async throws {
        let people = SharedVaultPeople()
        let ada = try await people.device("ada")
        let bob = try await people.device("bob")
        let tablet = try await people.device("bob")
        let family = try await ada.shared.make(name: "Family", as: "Ada")
        try await people.join(family, bob, as: "Bob")
        #expect(try await !tablet.refreshed(family.id).hasLeft)
        try await bob.shared(family.id).leave()
        for device in [bob, tablet] {
            let left = try await device.refreshed(family.id)
            #expect(left.hasLeft && left.problems.contains(.ended))
        }

        try await people.join(try await ada.refreshed(family.id), bob, as: "Bob")
        #expect(try await !tablet.refreshed(family.id).hasLeft)
        let member = try #require(try await ada.refreshed(family.id).members.first { $0.name == "Bob" })
        try await family.remove([member.id])
        for device in [bob, tablet] {
            let removed = try await device.refreshed(family.id)
            #expect(!removed.hasLeft && removed.problems.contains(.ended))
        }
    }

    @Test func `after a lost device the keys of the member are other ones`() async throws {
        let people = SharedVaultPeople()
        let ada = try await people.device("ada")
        let bob = try await people.device("bob")
        let family = try await ada.shared.make(name: "Family", as: "Ada")
        _ = try await people.join(family, bob, as: "Bob")
        let stolen = try #require(try await bob.vaultRecord(family.id)?.latestKeys)
        try await bob.replaceVaultKeys()
        let log = try #require(try await bob.vaultState(family.id)).log
        #expect(!log.presentMembers.contains { $0.keys == stolen.publicKeys })
        #expect(log.isRotationDue)
        #expect(try await !ada.refreshed(family.id).isRotationDue)
        let shared = try await bob.refreshed(family.id)
        #expect(shared.problems.allSatisfy { !$0.stopsWriting })
        #expect(try await bob.key(family.id) == ada.key(family.id))
    }

    @Test func `a pair of keys that a second lost device can have is not used`() async throws {
        let people = SharedVaultPeople()
        let ada = try await people.device("ada")
        let bob = try await people.device("bob")
        let family = try await ada.shared.make(name: "Family", as: "Ada")
        _ = try await people.join(family, bob, as: "Bob")
        try await bob.shared.withService { service throws(VaultError) in
            try service.prepareKeys(service.known(family.id))
        }
        try await bob.sync()
        let prepared = try #require(try await bob.vaultRecord(family.id)?.latestKeys)
        try await bob.replaceVaultKeys()
        let log = try #require(people.onServer(family.id)).log
        #expect(!log.isUsed(prepared.publicKeys))
        #expect(try await bob.shared(family.id).problems.allSatisfy { !$0.stopsWriting })
    }

    @Test func `a change of keys that was interrupted uses no pair that the lost device can have`() async throws {
        let people = SharedVaultPeople()
        let ada = try await people.device("ada")
        let bob = try await people.device("bob")
        let family = try await ada.shared.make(name: "Family", as: "Ada")
        _ = try await people.join(family, bob, as: "Bob")
        try await bob.shared.withService { service throws(VaultError) in
            try service.prepareKeys(service.known(family.id))
        }
        try await bob.sync()
        let known = try #require(try await bob.vaultRecord(family.id)).keys.compactMap(\.privateKeys?.publicKeys)
        #expect(known.count == 2)
        // The process ends before it replaces the keys.
        try await bob.shared.withService { service throws(VaultError) in try service.noteDisclosedKeys() }
        for _ in 0..<3 { try await bob.sync() }
        let log = try #require(people.onServer(family.id)).log
        #expect(!log.presentMembers.contains { known.contains($0.keys) })
        let latest = try #require(try await bob.vaultRecord(family.id)?.latestKeys)
        #expect(log.presentMembers.contains { $0.keys == latest.publicKeys })
        #expect(try await !bob.shared(family.id).problems.contains(.keysDue))
        #expect(try await bob.vaultState(family.id)?.findings.needsFreshKeys == nil)
    }

    @Test func `a join that goes on after a lost device ends with another pair of keys`() async throws {
        let people = SharedVaultPeople()
        let ada = try await people.device("ada")
        let bob = try await people.person("bob")
        let family = try await ada.shared.make(name: "Family", as: "Ada")
        let invitation = try await family.invite(base: SharedVaultPeople.base, role: .writer, code: .none)
        bob.link.setUnreachable { $0.method == .post && $0.target.hasPrefix("/v1/invitations/") }
        _ = try? await bob.vault().shared.join(invitation.link, code: nil, as: "Bob")
        let known = try #require(try await bob.vault().vaultRecord(family.id)?.latestKeys)
        try await bob.vault().shared.withService { service throws(VaultError) in try service.noteDisclosedKeys() }
        bob.link.setUnreachable(false)
        _ = try await bob.vault().shared.join(invitation.link, code: nil, as: "Bob")
        for _ in 0..<3 { try await bob.vault().sync() }
        let log = try #require(people.onServer(family.id)).log
        #expect(log.presentMembers.count == 2 && !log.presentMembers.contains { $0.keys == known.publicKeys })
        #expect(try await !bob.vault().shared(family.id).problems.contains(.keysDue))
    }

    @Test func `the keys in many vaults are replaced without a refresh of all vaults for each`() async throws {
        let people = SharedVaultPeople()
        let ada = try await people.device("ada")
        let bob = try await people.person("bob")
        var known: [SharedVaultID: MemberPublicKeys] = [:]
        for number in 1...3 {
            let made = try await ada.shared.make(name: "Family \(number)", as: "Ada")
            _ = try await people.join(made, bob.vault(), as: "Bob")
            known[made.id] = try #require(try await bob.vault().vaultRecord(made.id)?.latestKeys).publicKeys
        }
        let count = Locked(0)
        bob.link.setAnswer { request in
            if request.target == "/v1/vaults" { count.withLock { $0 += 1 } }
            return nil
        }
        try await bob.vault().sync()
        #expect(count.withLock(\.self) == 1)
        try await bob.vault().replaceVaultKeys()
        #expect(count.withLock(\.self) == 1)
        for (id, keys) in known {
            let log = try #require(people.onServer(id)).log
            #expect(!log.presentMembers.contains { $0.keys == keys } && log.presentMembers.count == 2)
            #expect(try await !bob.vault().shared(id).problems.contains(.keysDue))
        }
    }

    @Test func `after a lost device the keys of a vault whose log has not arrived are other ones, too`() async throws {
        let people = SharedVaultPeople()
        let ada = try await people.device("ada")
        let phone = try await people.device("bob")
        let laptop = try await people.device("bob")
        let family = try await ada.shared.make(name: "Family", as: "Ada")
        _ = try await people.join(family, phone, as: "Bob")
        try await phone.sync()
        let stolen = try #require(try await phone.vaultRecord(family.id)?.latestKeys)
        try await laptop.shared.withService { service throws(VaultError) in try await service.sendAccountItems() }
        #expect(try await laptop.vaultState(family.id) == nil)
        try await laptop.replaceVaultKeys()
        for _ in 0..<3 { try await laptop.sync() }
        let log = try #require(people.onServer(family.id)).log
        #expect(!log.presentMembers.contains { $0.keys == stolen.publicKeys })
        #expect(try await !laptop.shared(family.id).problems.contains(.keysDue))
    }

    @Test func `a server without vaults is named as such`() async throws {
        let vault = try await Vault.signUp(
            .forTests(
                folder: FileManager.default.temporaryDirectory.appending(path: UUID().uuidString).path, MemoryServer(),
                name: "phone"),
            userid: "ada@example.org", password: SharedVaultPeople.password)
        await #expect { try await vault.shared.make(name: "Family", as: "Ada") } throws: { $0.isShared(.notSupported) }
        #expect(try await vault.shared.all().isEmpty)
    }
}

extension Error {
    func isShared(_ expected: SharedVaultError) -> Bool {
        if case .shared(let error) = self as? VaultError { error == expected } else { false }
    }
}

extension SalternClient.Vault {
    /// The key under which this device writes; nil for none.
    func key(_ id: SharedVaultID) async throws -> GenerationKey? { try await vaultState(id)?.presentKey }

    func vaultState(_ id: SharedVaultID) async throws(VaultError) -> SharedVaultState? {
        try await shared.withService { service throws(VaultError) in try service.state(id) }
    }

    func vaultRecord(_ id: SharedVaultID) async throws(VaultError) -> MembershipRecord? {
        try await shared.withService { service throws(VaultError) in try service.record(id) }
    }

    func vaultSealing(_ id: SharedVaultID) async throws(VaultError) -> VaultSealing? {
        try await shared.withService { service throws(VaultError) in try service.sealing(of: id) as? VaultSealing }
    }

    func replaceVaultKeys() async throws(VaultError) {
        try await shared.withService { service throws(VaultError) in try await service.replaceAllKeys() }
    }
}
