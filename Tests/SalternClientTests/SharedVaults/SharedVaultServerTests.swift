import Foundation
import Testing
import VaultLog

@testable import SalternClient

/// A server that was restored, that lies, or whose replies are lost.
@Suite struct SharedVaultServerTests {
    private func pair(
        _ people: SharedVaultPeople
    ) async throws -> (ada: SalternClient.Vault, bob: SalternClient.Vault, family: SharedVault) {
        let ada = try await people.device("ada")
        let bob = try await people.device("bob")
        let family = try await ada.shared.make(name: "Family", as: "Ada")
        _ = try await people.join(family, bob, as: "Bob")
        return (ada, bob, try await ada.refreshed(family.id))
    }

    @Test func `entries that a restored database lacks are put back`() async throws {
        let people = SharedVaultPeople()
        let (ada, bob, family) = try await pair(people)
        let backup = people.vaults.backUp()
        try await family.rotate()
        _ = try await bob.refreshed(family.id)
        let words = try await ada.shared(family.id).verificationWords
        people.vaults.restore(backup)
        // A member puts back; the owner's device ends the recovery.
        #expect(try await bob.refreshed(family.id).problems.contains(.rolledBack))
        #expect(try await ada.refreshed(family.id).verificationWords == words)
        #expect(people.vaults.withState { $0.vaults.values.allSatisfy { !$0.isRecovering } })
        try await family.rotate()
        _ = try await ada.refreshed(family.id)
        #expect(try await bob.refreshed(family.id).problems.allSatisfy { !$0.stopsWriting })
        #expect(try await bob.key(family.id) == ada.key(family.id))
    }

    @Test func `who joined after the backup claims the seat`() async throws {
        let people = SharedVaultPeople()
        let ada = try await people.device("ada")
        let bob = try await people.device("bob")
        let family = try await ada.shared.make(name: "Family", as: "Ada")
        let backup = people.vaults.backUp()
        _ = try await people.join(family, bob, as: "Bob")
        _ = try await ada.refreshed(family.id)
        people.vaults.restore(backup)
        _ = try await ada.refreshed(family.id)
        try await bob.sync()
        let back = try await bob.refreshed(family.id)
        #expect(back.role == .writer && !back.problems.contains(.ended))
    }

    @Test func `a claim is repeated until another member has put the join back`() async throws {
        let people = SharedVaultPeople()
        let ada = try await people.device("ada")
        let bob = try await people.device("bob")
        let family = try await ada.shared.make(name: "Family", as: "Ada")
        let backup = people.vaults.backUp()
        _ = try await people.join(family, bob, as: "Bob")
        _ = try await ada.refreshed(family.id)
        people.vaults.restore(backup)
        try await bob.sync()
        #expect(try await bob.shared(family.id).problems.contains(.ended))
        #expect(people.onServer(family.id)?.entries.count == 1)
        _ = try await ada.refreshed(family.id)
        people.advance(3_700)
        try await bob.sync()
        let back = try await bob.refreshed(family.id)
        #expect(back.role == .writer && !back.problems.contains(.ended))
    }

    @Test func `after a restore that has lost a hand-over the former owner ends the recovery`() async throws {
        let people = SharedVaultPeople()
        let ada = try await people.device("ada")
        let bob = try await people.device("bob")
        let family = try await ada.shared.make(name: "Family", as: "Ada")
        _ = try await people.join(family, bob, as: "Bob", role: .manager)
        let member = try #require(try await ada.refreshed(family.id).members.first { $0.name == "Bob" })
        try await family.handOver(to: member.id)
        _ = try await bob.refreshed(family.id)
        let backup = people.vaults.backUp()
        try await bob.shared(family.id).acceptHandOver()
        _ = try await ada.refreshed(family.id)
        people.vaults.restore(backup)
        for _ in 0..<2 { for device in [bob, ada] { try await device.sync() } }
        #expect(people.onServer(family.id)?.isRecovering == false)
        for device in [ada, bob] {
            let shared = try await device.refreshed(family.id)
            #expect(shared.isOwner == (device === bob) && shared.problems.allSatisfy { !$0.stopsWriting })
        }
    }

    @Test func `a shorter log without a restore is reported`() async throws {
        let people = SharedVaultPeople()
        let (ada, _, family) = try await pair(people)
        let earlier = people.vaults.withState { $0 }
        try await family.rotate()
        people.vaults.withState { $0 = earlier }
        let shared = try await ada.refreshed(family.id)
        #expect(shared.problems == [.rolledBack] && shared.entryCount == Int(family.entryCount) + 1)
    }

    @Test func `two histories stop the writing`() async throws {
        let people = SharedVaultPeople()
        let (ada, bob, family) = try await pair(people)
        let earlier = people.vaults.withState { $0 }
        try await family.rotate()
        let count = try await ada.shared(family.id).entryCount
        people.vaults.withState { $0 = earlier }
        // Bob sees nothing of it, and leaves.
        try await bob.shared(family.id).leave()
        let shared = try await ada.refreshed(family.id)
        #expect(shared.problems.contains(.fork(at: count)) && !shared.canWrite)
        await #expect { try await shared.rotate() } throws: { $0.isShared(.stopped) }
    }

    @Test func `an invitation that shows another vault is refused`() async throws {
        let people = SharedVaultPeople()
        let (_, _, family) = try await pair(people)
        let eve = try await people.device("eve")
        let other = try await eve.shared.make(name: "Family", as: "Ada")
        let invitation = try await family.invite(base: SharedVaultPeople.base, code: .none)
        people.vaults.withState { state in
            guard let known = state.invitations[VaultLog.InvitationID(invitation.id).text] else { return }
            state.vaults[known.vault] = state.vaults[other.id.description]
        }
        let carol = try await people.device("carol")
        await #expect { try await carol.shared.join(invitation.link, code: nil, as: "Carol") } throws: {
            $0.isShared(.invitationGone) || $0.isShared(.wrongVault)
        }
        #expect(try await carol.shared.all().isEmpty)
    }

    @Test func `a garbage box is reported and made again`() async throws {
        let people = SharedVaultPeople()
        let (ada, bob, family) = try await pair(people)
        let member = try #require(family.members.first { $0.name == "Bob" })
        try await family.rotate()
        people.vaults.withState { state in
            for id in state.vaults.keys {
                state.vaults[id]?.boxes[VaultLog.MemberID(member.id)] = String(repeating: "A", count: 152)
            }
        }
        #expect(try await bob.refreshed(family.id).problems.contains(.missingKey))
        _ = try await ada.refreshed(family.id)
        #expect(try await bob.refreshed(family.id).problems.allSatisfy { !$0.stopsWriting })
        #expect(try await bob.key(family.id) == ada.key(family.id))
    }

    @Test func `an invented tombstone of the keys is answered by writing them again`() async throws {
        let people = SharedVaultPeople()
        let (ada, _, family) = try await pair(people)
        try await ada.deleteRecord(family.id)
        #expect(try await ada.shared.vault(family.id) == nil)
        try await ada.sync()
        #expect(try await ada.refreshed(family.id).isOwner)
    }

    @Test(arguments: [LossyTransport.Fate.losesReply, .losesRequest, .repeats])
    func `lost replies and repeated requests change nothing twice`(fate: LossyTransport.Fate) async throws {
        let people = SharedVaultPeople()
        let (ada, bob, family) = try await pair(people)
        for link in people.links {
            let count = LossCounter()
            link.setFate { count.next() % 3 == 0 ? fate : .passes }
        }
        for _ in 0..<3 {
            try? await family.rotate()
            _ = try? await bob.refreshed(family.id)
        }
        for link in people.links { link.setFate { .passes } }
        _ = try await ada.refreshed(family.id)
        let last = try await ada.refreshed(family.id)
        #expect(try await bob.refreshed(family.id).verificationWords == last.verificationWords)
        #expect(try await bob.key(family.id) == ada.key(family.id))
    }
}

private final class LossCounter: Sendable {
    private let count = Locked(0)

    func next() -> Int {
        count.withLock { count in
            count += 1
            return count
        }
    }
}

extension SalternClient.Vault {
    /// The item of the keys is deleted here, as by a tombstone of the server.
    fileprivate func deleteRecord(_ id: SharedVaultID) throws { try items.deleteHidden(ItemID(id.uuid)) }
}
