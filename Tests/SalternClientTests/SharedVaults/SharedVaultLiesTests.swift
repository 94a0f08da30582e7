import Cryptography
import Foundation
import Testing
import VaultLog

@testable import SalternClient

/// A server that lies about a vault's log and its members. Each lie is refused or reported.
@Suite struct SharedVaultLiesTests {
    @Test func `a member that the server adds is refused`() async throws {
        let cast = try await SharedVaultCast()
        let log = try await cast.state(cast.ada).log
        let secrets = try InvitationSecrets(.random(), secret: SecureRandom.secureBytes(16), code: nil)
        let name = try #require(ClaimedName("Mallory"))
        let join = try EntryWriter.join(
            secrets, as: .random(), named: name, .generate(), NameKey(GenerationKey.random()), after: log,
            at: EntryTime(Date()))
        cast.show(cast.entries + [join], to: cast.bob)
        _ = try? await cast.bob.vault().sync()
        let shared = try await cast.shared(cast.bob)
        #expect(shared.members.count == 3 && shared.problems.contains(.invalidLog))
    }

    @Test func `a member whose keys the server exchanges is refused`() async throws {
        let cast = try await SharedVaultCast()
        let entries = cast.entries
        let index = try #require(entries.lastIndex { $0.payload.kind == .join })
        let log = try MembershipLog(entries.prefix(index))
        let keys = try MemberPrivateKeys.generate()
        // The server has no secret of the invitation.
        let secrets = try InvitationSecrets(.random(), secret: SecureRandom.secureBytes(16), code: nil)
        let name = try #require(ClaimedName("Eve"))
        let join = try EntryWriter.join(
            secrets, as: entries[index].author, named: name, keys, NameKey(GenerationKey.random()), after: log,
            at: EntryTime(Date()))
        let tablet = try await cast.people.person("bob")
        cast.show(Array(entries.prefix(index)) + [join], to: tablet)
        _ = try? await tablet.vault().sync()
        let known = try await tablet.vault().vaultState(cast.id)?.log.presentMembers.map(\.keys) ?? []
        #expect(!known.contains(keys.publicKeys))
        let problems = try await tablet.vault().shared.vault(cast.id)?.problems
        #expect(problems.map { !$0.isEmpty } ?? true)
    }

    @Test func `a vault whose first entry a new device cannot read is reported`() async throws {
        let cast = try await SharedVaultCast()
        let tablet = try await cast.people.person("bob")
        cast.rewrite(tablet) { target, reply in
            guard target.contains("/log"), var entries = reply["entries"] as? [Any], !entries.isEmpty else { return }
            entries[0] = Base64.encodeToString([UInt8]([0]))
            reply["entries"] = entries
        }
        let report = try await tablet.vault().sync()
        #expect(Array(report.vaultFailures.keys) == [cast.id])
        guard case .shared(.updateNeeded) = report.vaultFailures[cast.id] else {
            Issue.record("\(report.vaultFailures)")
            return
        }
        cast.beHonest(to: tablet)
        try await cast.sync(tablet)
        #expect(try await cast.shared(tablet).members.count == 3)
    }

    @Test func `a lowering that is hidden from a member is noticed at the next item`() async throws {
        let cast = try await SharedVaultCast()
        let before = cast.entries
        try await cast.shared(cast.ada).setRole(cast.member(cast.eve), to: .reader)
        cast.show(before, to: cast.bob)
        try await cast.write("later", cast.ada)
        _ = try? await cast.bob.vault().sync()
        #expect(try await cast.shared(cast.bob).problems.contains(.anotherHistory(cast.member(cast.ada))))
        #expect(try await !cast.texts(cast.bob).contains("later"))
        cast.beHonest(to: cast.bob)
        try await cast.sync(cast.bob, cast.bob)
        #expect(try await cast.texts(cast.bob).contains("later"))
    }

    @Test func `a removal that is hidden from a member is noticed at the next item`() async throws {
        let cast = try await SharedVaultCast()
        let before = cast.entries
        try await cast.shared(cast.ada).remove([cast.member(cast.eve)])
        cast.show(before, to: cast.bob)
        let item = try await cast.write("later", cast.ada)
        _ = try? await cast.bob.vault().sync()
        let notices = try await OwnedItems(cast.bob.vault(), of: .vault(cast.id)).notices()
        let isReported = try await !cast.shared(cast.bob).problems.isEmpty
        #expect(isReported || notices.contains { $0.item == item })
        #expect(try await !cast.texts(cast.bob).contains("later"))
    }

    @Test func `an earlier write of a removed member does not replace its last one`() async throws {
        let cast = try await SharedVaultCast()
        let item = try await cast.write("first", cast.eve)
        let first = try await #require(cast.eve.vault().storedContent(item, cast.id))
        try await cast.write("second", cast.eve, item)
        try await cast.sync(cast.bob)
        try await cast.shared(cast.ada).remove([cast.member(cast.eve)])
        try await cast.people.put(first, item, cast.id)
        let tablet = try await cast.people.person("bob")
        for device in [cast.bob, tablet, cast.ada] {
            try await cast.sync(device, device)
            #expect(try await !cast.texts(device).contains("first"))
        }
        #expect(try await cast.texts(cast.bob) == ["second"])
        #expect(try await cast.texts(cast.ada) == ["second"])
    }

    @Test func `an item under an earlier key than that of its head does not count`() async throws {
        let cast = try await SharedVaultCast()
        let old = try await cast.state(cast.bob)
        try await cast.shared(cast.ada).rotate()
        try await cast.sync(cast.bob)
        let state = try await cast.state(cast.bob)
        let (item, body) = (ItemID.random(), SharedVaultCast.item("old key").body)
        let statement = try #require(
            EditStatement(
                item: VaultItemID(item), collection: "notes", number: .first, previous: .none, title: nil, body: body))
        let signed = try SignedBody(body, statement, by: state.signer, state.log.head)
        let key = try #require(old.presentKey.flatMap { DataKey($0.bytes) })
        let place = SealedBox.Place(
            .vaultBody, account: AccountID(cast.id.uuid), item: item, collection: "notes")
        let sealed = try SealedBox.seal(signed.bytes, .first, at: place, with: key)
        try await cast.people.put(
            ItemContent(collection: "notes", format: SealedBox.format, body: sealed), item, cast.id)
        try await cast.sync(cast.ada, cast.ada)
        #expect(try await cast.texts(cast.ada).isEmpty)
    }

    // MARK: Histories

    /// Two entries of one number: Ada's device has the first, the server the second.
    private func fork(_ cast: SharedVaultCast) async throws -> (first: [Entry], second: [Entry]) {
        let former = cast.people.vaults.withState { $0 }
        _ = try await cast.shared(cast.ada).invite(base: SharedVaultPeople.base)
        let first = cast.entries
        cast.people.vaults.withState { $0 = former }
        _ = try await cast.shared(cast.eve).invite(base: SharedVaultPeople.base)
        return (first, cast.entries)
    }

    @Test func `two histories are noticed when one item crosses`() async throws {
        let cast = try await SharedVaultCast(eve: .manager)
        let (first, _) = try await fork(cast)
        try await cast.sync(cast.bob)
        cast.show(first, to: cast.ada)
        try await cast.write("of the other history", cast.ada)
        _ = try? await cast.bob.vault().sync()
        #expect(try await cast.shared(cast.bob).problems.contains(.anotherHistory(cast.member(cast.ada))))
        #expect(try await cast.texts(cast.bob).isEmpty)
    }

    @Test func `two histories are noticed by another device of the same person`() async throws {
        let cast = try await SharedVaultCast(eve: .manager)
        let laptop = try await cast.people.person("ada")
        try await cast.sync(laptop)
        let former = cast.people.vaults.withState { $0 }
        _ = try await cast.shared(cast.ada).invite(base: SharedVaultPeople.base)
        try await cast.sync(cast.ada)
        let count = cast.entries.count
        cast.people.vaults.withState { $0 = former }
        _ = try await cast.shared(cast.eve).invite(base: SharedVaultPeople.base)
        _ = try? await laptop.vault().sync()
        let shared = try await cast.shared(laptop)
        #expect(shared.problems.contains(.fork(at: count)) && !shared.canWrite)
    }

    @Test func `an invalid entry behind another history does not hide it`() async throws {
        let cast = try await SharedVaultCast(eve: .manager)
        let (first, second) = try await fork(cast)
        // It names the other history, and its signature is of strange keys.
        let log = try MembershipLog(second)
        let author = try VaultLog.MemberID(cast.member(cast.eve))
        let signer = try MemberSigner(author, of: log.vault, .generate())
        let invalid = try EntryWriter.entry(.offer(nil), by: signer, after: log, at: EntryTime(Date()))
        cast.show(second + [invalid], to: cast.ada)
        _ = try? await cast.ada.vault().sync()
        let shared = try await cast.shared(cast.ada)
        #expect(shared.problems.contains(.fork(at: first.count)) && !shared.canWrite)
    }

    @Test func `a new device notices that the log ends before an entry of its person`() async throws {
        let cast = try await SharedVaultCast()
        let before = cast.entries
        try await cast.shared(cast.ada).setRole(cast.member(cast.eve), to: .reader)
        let tablet = try await cast.people.person("ada")
        cast.show(before, to: tablet)
        _ = try? await tablet.vault().sync()
        #expect(try await cast.shared(tablet).problems.contains(.rolledBack))
    }

    @Test func `an invitation that shows another vault is refused`() async throws {
        let cast = try await SharedVaultCast()
        let other = try await cast.eve.vault().shared.make(name: "Family", as: "Ada")
        let entries = try #require(cast.people.onServer(other.id)).entries
        let invitation = try await cast.shared(cast.ada).invite(base: SharedVaultPeople.base, code: .none)
        let carol = try await cast.people.person("carol")
        let (name, texts) = (other.id.description, entries.map { Base64.encodeToString($0.bytes) })
        cast.rewrite(carol) { target, reply in
            guard target.hasPrefix("/v1/invitations/") else { return }
            reply["vault"] = name
            reply["entries"] = texts
        }
        await #expect { try await carol.vault().shared.join(invitation.link, code: nil, as: "Carol") } throws: {
            $0.isShared(.wrongVault)
        }
        #expect(try await carol.vault().shared.all().isEmpty)
    }

    @Test func `an invitation that shows an earlier end of the log lets nobody join beside later entries`() async throws
    {
        let cast = try await SharedVaultCast()
        let invitation = try await cast.shared(cast.ada).invite(base: SharedVaultPeople.base, code: .none)
        let entries = cast.entries
        _ = try await cast.shared(cast.ada).invite(base: SharedVaultPeople.base)
        let carol = try await cast.people.person("carol")
        let texts = entries.map { Base64.encodeToString($0.bytes) }
        cast.rewrite(carol) { target, reply in
            if target.hasPrefix("/v1/invitations/") { reply["entries"] = texts }
        }
        await #expect { try await carol.vault().shared.join(invitation.link, code: nil, as: "Carol") } throws: {
            $0.isShared(.busy)
        }
        cast.beHonest(to: carol)
        _ = try await carol.vault().shared.join(invitation.link, code: nil, as: "Carol")
        try await cast.sync(carol, cast.ada)
        #expect(try await cast.shared(carol).verificationWords == cast.shared(cast.ada).verificationWords)
        #expect(cast.people.onServer(cast.id)?.log.presentMembers.count == 4)
    }

    @Test func `two vaults that the server exchanges are told apart`() async throws {
        let cast = try await SharedVaultCast()
        let club = try await cast.ada.vault().shared.make(name: "Club", as: "Ada")
        try await cast.people.join(club, cast.bob.vault(), as: "Bob")
        let item = try await cast.write("of the family", cast.ada)
        let content = try await #require(cast.ada.vault().storedContent(item, cast.id))
        try await cast.people.put(content, item, club.id)
        let entries = try #require(cast.people.onServer(club.id)).entries
        let tablet = try await cast.people.person("bob")
        cast.show(entries, to: tablet)
        for device in [cast.bob, tablet] { _ = try? await device.vault().sync() }
        #expect(try await cast.bob.texts(club.id).isEmpty)
        let family = try await tablet.vault().shared.vault(cast.id)
        #expect(family == nil || family?.problems.isEmpty == false)
        // The other vault is not blocked.
        #expect(try await tablet.vault().shared(club.id).name == "Club")
        cast.beHonest(to: tablet)
        try await cast.sync(tablet, tablet)
        #expect(try await cast.texts(tablet) == ["of the family"])
    }

    @Test func `an entry of the year 2099 neither closes invitations nor stops joins`() async throws {
        let cast = try await SharedVaultCast(eve: .manager)
        let date = Date(timeIntervalSince1970: 4_080_000_000)
        let entry = try await cast.entry(
            .role(VaultLog.MemberID(cast.member(cast.bob)), .reader), by: cast.eve, at: date)
        cast.people.change(cast.id) { vault in
            try? vault.log.append(entry)
            vault.entries.append(entry)
        }
        #expect(cast.entries.last == entry)
        _ = try? await cast.ada.vault().sync()
        let carol = try await cast.people.person("carol")
        let joined = try await cast.people.join(cast.shared(cast.ada), carol.vault(), as: "Carol")
        #expect(joined.role == .writer)
    }
}

extension SalternClient.Vault {
    /// The sealed content of an item of a shared vault on this device.
    func storedContent(_ item: ItemID, _ id: SharedVaultID) async throws -> ItemContent? {
        try await OwnedItems(self, of: .vault(id)).perform { store, _ in try store.item(item)?.content }
    }
}
