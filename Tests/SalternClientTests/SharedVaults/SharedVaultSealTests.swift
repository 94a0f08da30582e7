import Cryptography
import Foundation
import Synchronization
import Testing
import VaultLog

@testable import SalternClient

/// The lists of edits of writers that were cut off: those that a person decides about, and unsent edits in them.
@Suite struct SharedVaultSealTests {
    /// Bob writes an item and leaves, and Ada has a new device that gets both together.
    private func leave(_ cast: SharedVaultCast) async throws -> (item: ItemID, tablet: PersonDevice) {
        let item = try await cast.write("of Bob", cast.bob)
        try await cast.sync(cast.eve)
        try await cast.shared(cast.bob).leave()
        let tablet = try await cast.people.person("ada")
        try await cast.sync(tablet)
        return (item, tablet)
    }

    @Test func `a person lets edits count that no device of a manager had`() async throws {
        let cast = try await SharedVaultCast()
        let bob = try cast.member(cast.bob)
        let (item, tablet) = try await leave(cast)
        #expect(try await cast.texts(tablet).isEmpty)
        let shared = try await cast.shared(tablet)
        #expect(shared.unsealed == [UnsealedWriter(id: bob, name: "Bob")])
        #expect(shared.problems.contains(.waitsForSeal(count: 1)))
        let proposal = try await shared.proposeSeal(of: bob)
        #expect(proposal.member == bob && proposal.count == 1 && proposal.unseenCount == 1 && proposal.isComplete)
        // Nothing is sealed before the decision.
        #expect(cast.people.onServer(cast.id)?.log.unsealed == [VaultLog.MemberID(bob)])
        try await shared.seal(proposal)
        #expect(cast.people.onServer(cast.id)?.log.unsealed.isEmpty == true)
        try await cast.sync(tablet, cast.ada, cast.eve)
        for device in [tablet, cast.ada, cast.eve] {
            #expect(try await device.texts(cast.id) == [item: "of Bob"])
            #expect(try await cast.shared(device).unsealed.isEmpty)
        }
    }

    @Test func `an edit that the server shows after the decision does not count`() async throws {
        let cast = try await SharedVaultCast()
        let bob = try cast.member(cast.bob)
        let sealing = try await cast.sealing(cast.bob)
        let (item, tablet) = try await leave(cast)
        let shared = try await cast.shared(tablet)
        let proposal = try await shared.proposeSeal(of: bob)
        try await cast.forge("late", sealing)
        try await cast.sync(tablet)
        try await shared.seal(proposal)
        try await cast.sync(tablet, cast.eve)
        for device in [tablet, cast.eve] { #expect(try await device.texts(cast.id) == [item: "of Bob"]) }
    }

    @Test func `an earlier edit that the server shows again does not take the place of the known one`() async throws {
        let cast = try await SharedVaultCast()
        let bob = try cast.member(cast.bob)
        let item = try await cast.write("one", cast.bob)
        try await cast.sync(cast.ada)
        let earlier = try await #require(cast.ada.vault().storedContent(item, cast.id))
        try await cast.write("two", cast.bob, item)
        try await cast.sync(cast.ada, cast.eve)
        try await cast.shared(cast.bob).leave()
        try await cast.sync(cast.ada)
        try await cast.people.put(earlier, item, cast.id)
        let shared = try await cast.shared(cast.ada)
        let proposal = try await shared.proposeSeal(of: bob)
        #expect(proposal.count == 1 && proposal.unseenCount == 0)
        try await shared.seal(proposal)
        try await cast.sync(cast.ada, cast.eve)
        for device in [cast.ada, cast.eve] { #expect(try await device.texts(cast.id) == [item: "two"]) }
    }

    @Test func `a person's seal replaces no own list that the device lacks`() async throws {
        let cast = try await SharedVaultCast()
        let bob = try cast.member(cast.bob)
        try await cast.write("one", cast.bob)
        try await cast.sync(cast.ada)
        try await cast.shared(cast.ada).setRole(bob, to: .reader)
        try await cast.shared(cast.ada).setRole(bob, to: .writer)
        try await cast.sync(cast.bob)
        try await cast.write("two", cast.bob)
        try await cast.shared(cast.bob).leave()
        let lists = cast.people.onServer(cast.id)?.lists
        #expect(lists?.count == 1)
        cast.people.change(cast.id) { $0.lists = [:] }
        let tablet = try await cast.people.person("ada")
        try await cast.sync(tablet)
        await #expect {
            _ = try await cast.shared(tablet).proposeSeal(of: bob)
        } throws: {
            $0.isShared(.listMissing)
        }
        // With the list, the seal has its edit, too.
        cast.people.change(cast.id) { $0.lists = lists ?? [:] }
        let shared = try await cast.shared(tablet)
        let proposal = try await shared.proposeSeal(of: bob)
        #expect(proposal.count == 2 && proposal.unseenCount == 1)
        try await shared.seal(proposal)
        try await cast.sync(tablet)
        #expect(try await cast.texts(tablet) == ["one", "two"])
    }

    @Test func `only a manager proposes a seal, of a writer whose edits wait`() async throws {
        let cast = try await SharedVaultCast()
        let (bob, eve) = (try cast.member(cast.bob), try cast.member(cast.eve))
        let (_, tablet) = try await leave(cast)
        await #expect {
            _ = try await cast.shared(cast.eve).proposeSeal(of: bob)
        } throws: {
            $0.isShared(.notPermitted)
        }
        await #expect {
            _ = try await cast.shared(tablet).proposeSeal(of: eve)
        } throws: {
            $0.isShared(.nothingToSeal)
        }
        // The device that had the edit is faster than the person.
        let proposal = try await cast.shared(tablet).proposeSeal(of: bob)
        for _ in 0..<2 {
            try await cast.sync(cast.ada)
            cast.people.advance(70)
        }
        try await cast.sync(tablet)
        await #expect { try await cast.shared(tablet).seal(proposal) } throws: { $0.isShared(.nothingToSeal) }
        #expect(try await cast.texts(tablet) == ["of Bob"])
    }

    // MARK: Unsent edits

    /// The server rejects the next cursor of the vault's items that a device shows.
    private func expireCursor(of device: PersonDevice, _ cast: SharedVaultCast) {
        let path = "/v1/vaults/\(cast.id)/changes"
        let hasExpired = Mutex(false)
        device.link.setRewrite { request, reply in
            guard request.target.hasPrefix(path), request.target.contains("since="),
                hasExpired.withLock({ hasExpired in
                    defer { hasExpired = true }
                    return !hasExpired
                })
            else { return reply }
            return (try? MemoryVaults.reply(MemoryVaults.problem(410, "cursor_expired"))) ?? reply
        }
    }

    @Test func `a list has accepted edits that the server has lost and that are not sent again yet`() async throws {
        let cast = try await SharedVaultCast()
        let lost = try await cast.write("of Bob", cast.bob)
        let kept = try await cast.write("of Ada", cast.ada)
        // A listing has confirmed the edit to Bob's device, which does not send it again.
        try await cast.sync(cast.bob)
        cast.people.onServer(cast.id)?.items.purge(lost)
        let path = "/v1/vaults/\(cast.id)/items/batch"
        cast.ada.link.setAnswer { request in
            guard request.target == path else { return nil }
            return try? MemoryVaults.reply(MemoryVaults.problem(403, "quota_exceeded", ["limit": "items"]))
        }
        expireCursor(of: cast.ada, cast)
        try await cast.sync(cast.ada)
        cast.beHonest(to: cast.ada)
        #expect(try await cast.ada.vault().unsentCount(of: cast.id) == 1)
        try await cast.shared(cast.bob).leave()
        for _ in 0..<2 {
            try await cast.sync(cast.ada)
            cast.people.advance(70)
        }
        #expect(try await cast.state(cast.ada).log.unsealed.isEmpty)
        cast.ada.link.setAnswer { _ in nil }
        try await cast.sync(cast.ada)
        #expect(try await cast.ada.vault().unsentCount(of: cast.id) == 0)
        let tablet = try await cast.people.person("eve")
        try await cast.sync(tablet)
        for device in [cast.ada, tablet] {
            #expect(try await device.texts(cast.id) == [lost: "of Bob", kept: "of Ada"])
        }
    }
}
