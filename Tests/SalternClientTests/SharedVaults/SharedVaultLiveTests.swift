import Foundation
import Testing

@testable import SalternClient

/// Shared vaults of the whole server, as `saltern serve` composes it.
@Suite struct SharedVaultLiveTests {
    private static let password = Password("correct horse battery staple")

    private func signUp(_ device: Device) async throws -> Vault {
        try await Vault.signUp(device.settings, userid: "\(device.name)@example.org", password: Self.password)
    }

    @Test func `two people share items, until one of them is removed`() async throws {
        try await LiveServer.with { server in
            let (phone, laptop) = (try Device("ada", server), try Device("bob", server))
            let (ada, bob) = (try await signUp(phone), try await signUp(laptop))
            let base = try #require(URL(string: server.base))
            let family = try await ada.shared.make(name: "Family", as: "Ada")
            try await ada.sync()
            let invitation = try await family.invite(base: base, role: .writer, label: "my brother")
            #expect(try await bob.shared.preview(invitation.link, code: invitation.code).vaultName == "Family")
            let joined = try await bob.shared.join(invitation.link, code: invitation.code, as: "Bob")
            #expect(joined.problems.isEmpty)
            #expect(try await bob.refreshed(family.id).name == "Family")

            let (ours, theirs) = (
                family.collection("notes", of: Note.self), joined.collection("notes", of: Note.self)
            )
            let id = ItemID.random()
            try await theirs.put(Note(text: "milk"), id)
            try await bob.sync()
            let seen = try await ada.refreshed(family.id)
            #expect(seen.members.map(\.name) == ["Ada", "Bob"] && seen.problems.isEmpty)
            #expect(try await ours[id] == Note(text: "milk"))
            #expect(try await bob.refreshed(family.id).isConfirmed)

            // A new key: both read and write on.
            try await family.rotate()
            try await ours.put(Note(text: "milk, bread"), id)
            try await ada.sync()
            try await bob.sync()
            #expect(try await theirs[id] == Note(text: "milk, bread"))
            try await theirs.put(Note(text: "milk, bread, salt"), id)
            try await bob.sync()

            let member = try #require(seen.members.first { !$0.isOwn })
            try await family.setRole(member.id, to: .reader)
            let reader = try await bob.refreshed(family.id)
            #expect(reader.role == .reader && !reader.canWrite)
            await #expect(throws: VaultError.self) { try await theirs.put(Note(text: "mine"), id) }
            try await ada.sync()
            #expect(try await ours[id] == Note(text: "milk, bread, salt"))

            try await family.remove([member.id])
            #expect(try await ada.refreshed(family.id).members.count == 1)
            #expect(try await bob.refreshed(family.id).role == nil)
            // The items stay readable until a person decides.
            #expect(try await theirs[id] == Note(text: "milk, bread, salt"))
            // Another device of the owner reads what counts.
            let tablet = try Device("ada", server)
            let other = try await Vault.logIn(
                tablet.settings, userid: "ada@example.org", password: Self.password)
            let found = try await other.refreshed(family.id)
            #expect(found.isOwner && found.problems.isEmpty)
            #expect(try await found.collection("notes", of: Note.self)[id] == Note(text: "milk, bread, salt"))
        }
    }

    @Test func `a vault is handed over, and deleted by its new owner`() async throws {
        try await LiveServer.with { server in
            let (phone, laptop) = (try Device("ada", server), try Device("bob", server))
            let (ada, bob) = (try await signUp(phone), try await signUp(laptop))
            let base = try #require(URL(string: server.base))
            let family = try await ada.shared.make(name: "Family", as: "Ada")
            let invitation = try await family.invite(base: base, role: .manager, code: .none)
            let joined = try await bob.shared.join(invitation.link, code: nil, as: "Bob")
            let member = try #require(try await ada.refreshed(family.id).members.first { !$0.isOwn })
            try await family.handOver(to: member.id)
            _ = try await bob.refreshed(family.id)
            try await joined.acceptHandOver()
            #expect(try await bob.shared(family.id).isOwner)
            _ = try await ada.refreshed(family.id)
            try await family.leave()
            // The key that the former owner has is replaced at the next sync.
            #expect(try await !bob.refreshed(family.id).isRotationDue)
            try await joined.delete()
            #expect(try await bob.shared.all().isEmpty)
            await #expect(throws: VaultError.self) {
                try await bob.shared.join(invitation.link, code: nil, as: "Bob")
            }
        }
    }
}
