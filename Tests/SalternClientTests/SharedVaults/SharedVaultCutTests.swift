import Foundation
import SalternTesting
import Testing
import VaultLog

@testable import SalternClient

/// Edits that the server had before an entry that cuts their author off: they count, or wait, and never give way.
@Suite struct SharedVaultCutTests {
    /// Lets the readings of a vault's items fail on a device.
    private func failItems(of device: PersonDevice, _ cast: SharedVaultCast) {
        let path = "/v1/vaults/\(cast.id)/changes"
        device.link.setAnswer { request in
            guard request.target.hasPrefix(path) else { return nil }
            return try? MemoryVaults.reply(MemoryVaults.problem(503, "unavailable"))
        }
    }

    /// Syncs a manager's device until it has sealed, if it can.
    private func syncLong(_ device: PersonDevice, _ cast: SharedVaultCast) async throws {
        for _ in 0..<2 {
            try await cast.sync(device)
            cast.people.advance(120)
        }
    }

    @Test func `a writer is lowered only by a device that has fetched its edits`() async throws {
        let cast = try await SharedVaultCast()
        let item = try await cast.write("of Bob", cast.bob)
        try await cast.sync(cast.eve)
        failItems(of: cast.ada, cast)
        await #expect(throws: VaultError.self) {
            try await cast.shared(cast.ada).setRole(cast.member(cast.bob), to: .reader)
        }
        #expect(try await cast.state(cast.bob).role == .writer)
        cast.ada.link.setAnswer { _ in nil }
        try await cast.shared(cast.ada).setRole(cast.member(cast.bob), to: .reader)
        try await syncLong(cast.ada, cast)
        try await cast.sync(cast.eve, cast.bob)
        for device in [cast.ada, cast.eve, cast.bob] {
            #expect(try await device.texts(cast.id) == [item: "of Bob"])
        }
    }

    @Test func `a device that could not fetch the items of a removed writer does not seal them`() async throws {
        let cast = try await SharedVaultCast()
        let item = try await cast.write("of Bob", cast.bob)
        try await cast.sync(cast.eve)
        failItems(of: cast.ada, cast)
        try? await cast.shared(cast.ada).remove([cast.member(cast.bob)])
        #expect(cast.people.onServer(cast.id)?.log.presentMembers.count == 2)
        cast.ada.link.setAnswer { _ in nil }
        try await syncLong(cast.ada, cast)
        #expect(try await !cast.state(cast.ada).log.unsealed.isEmpty)
        try await cast.sync(cast.eve)
        #expect(try await cast.eve.texts(cast.id) == [item: "of Bob"])
    }

    /// Calls of Ada during which Bob writes. In the last one he also leaves.
    enum CuttingCall: String, CaseIterable, Sendable {
        case remove, lower, invite
    }

    @Test(arguments: CuttingCall.allCases)
    func `an edit that the server accepts during a call is not left out of a list`(call: CuttingCall) async throws {
        for exchange in PropertyTests.cases(Array(0..<40)) {
            let cast = try await SharedVaultCast()
            let item = try await cast.write("one", cast.bob)
            try await cast.sync(cast.ada, cast.eve)
            let (notes, bob, eve, family) = (
                try cast.bob.notes(cast.id), try cast.bob.vault(), try cast.eve.vault(), try await cast.shared(cast.bob)
            )
            cast.ada.link.interrupt(
                LossyTransport.Interruption(exchange: exchange, moment: .beforeRequest) {
                    _ = try? await notes.put(Note(text: "two"), item)
                    _ = try? await bob.sync()
                    _ = try? await eve.sync()
                    if call == .invite { try? await family.leave() }
                })
            let shared = try await cast.shared(cast.ada)
            switch call {
            case .remove: try await shared.remove([cast.member(cast.bob)])
            case .lower: try await shared.setRole(cast.member(cast.bob), to: .reader)
            case .invite: _ = try await shared.invite(base: SharedVaultPeople.base, role: .reader, code: .none)
            }
            if cast.ada.link.endInterruption() != nil { break }
            let before = try await cast.eve.texts(cast.id)
            try await syncLong(cast.ada, cast)
            try await cast.sync(cast.eve)
            #expect(try await cast.eve.texts(cast.id) == before, "exchange \(exchange)")
            // The device of the only manager has every edit of a writer that left before it took the entry.
            let isSealed = try await cast.state(cast.ada).log.unsealed.isEmpty
            #expect(isSealed || call != .invite, "exchange \(exchange)")
        }
    }

    @Test func `a leave before another entry of the only manager is taken behind its items`() async throws {
        let cast = try await SharedVaultCast()
        let item = try await cast.write("of Bob", cast.bob)
        try await cast.shared(cast.bob).leave()
        _ = try await cast.shared(cast.ada).invite(base: SharedVaultPeople.base, role: .reader, code: .none)
        try await syncLong(cast.ada, cast)
        #expect(try await cast.state(cast.ada).log.unsealed.isEmpty)
        let tablet = try await cast.people.person("ada")
        try await cast.sync(tablet, cast.eve)
        for device in [cast.ada, tablet, cast.eve] {
            #expect(try await device.texts(cast.id) == [item: "of Bob"])
        }
    }

    @Test func `a device without the list of its own person does not replace it`() async throws {
        let cast = try await SharedVaultCast()
        let item = try await cast.write("of Bob", cast.bob)
        try await cast.sync(cast.ada, cast.eve)
        try await cast.bob.vault().replaceVaultKeys()
        try await syncLong(cast.ada, cast)
        #expect(try await cast.state(cast.ada).log.unsealed.isEmpty)
        try await cast.sync(cast.bob, cast.eve)
        let tablet = try await cast.people.person("ada")
        tablet.link.setAnswer { request in
            guard request.method == .get, request.target.contains("/seals/") else { return nil }
            return try? MemoryVaults.reply(MemoryVaults.problem(404, "not_found"))
        }
        try await cast.sync(tablet)
        #expect(try await cast.texts(tablet).isEmpty)
        try await cast.shared(tablet).remove([cast.member(cast.bob)])
        try await syncLong(tablet, cast)
        #expect(try await !cast.state(tablet).log.unsealed.isEmpty)
        try await syncLong(cast.ada, cast)
        tablet.link.setAnswer { _ in nil }
        try await cast.sync(tablet, cast.eve)
        #expect(try await cast.state(tablet).log.unsealed.isEmpty)
        for device in [cast.ada, tablet, cast.eve] {
            #expect(try await device.texts(cast.id) == [item: "of Bob"])
        }
    }

    @Test func `a list that could not be stored again is offered again by the same process`() async throws {
        let cast = try await SharedVaultCast()
        try await cast.write("of Bob", cast.bob)
        try await cast.sync(cast.ada)
        try await cast.shared(cast.ada).remove([cast.member(cast.bob)])
        cast.people.change(cast.id) { $0.lists = [:] }
        cast.ada.link.setAnswer { request in
            guard request.method == .put, request.target.contains("/seals/") else { return nil }
            return try? MemoryVaults.reply(MemoryVaults.problem(404, "not_found"))
        }
        _ = try await cast.shared(cast.eve).leave()
        try await cast.sync(cast.ada)
        #expect(cast.people.onServer(cast.id)?.lists.isEmpty == true)
        cast.ada.link.setAnswer { _ in nil }
        cast.people.advance(4_000)
        try await cast.sync(cast.ada)
        _ = try await cast.shared(cast.ada).invite(base: SharedVaultPeople.base, role: .reader, code: .none)
        let tablet = try await cast.people.person("ada")
        try await cast.sync(tablet)
        _ = try await cast.shared(tablet).invite(base: SharedVaultPeople.base, role: .reader, code: .none)
        try await cast.sync(cast.ada)
        #expect(cast.people.onServer(cast.id)?.lists.isEmpty == false)
    }

    @Test func `the key of a removal outlasts a process that ends before the reply`() async throws {
        let cast = try await SharedVaultCast()
        try await cast.write("of Ada", cast.ada)
        let member = try cast.member(cast.bob)
        // The box of the new generation is spoilt before any device can fetch it.
        for exchange in 0..<40 {
            cast.ada.kill(inExchange: exchange, .beforeReply)
            try? await cast.shared(cast.ada).remove([member])
            guard try await cast.ada.startAgainIfEnded() else { break }
            if cast.people.onServer(cast.id)?.log.generations.count == 2 { break }
        }
        cast.spoilBox(of: cast.ada)
        try await cast.sync(cast.ada)
        #expect(cast.people.onServer(cast.id)?.log.generations.count == 2)
        #expect(try await cast.state(cast.ada).presentKey != nil)
        try await cast.sync(cast.eve)
        #expect(try await cast.texts(cast.eve) == ["of Ada"])
    }

    @Test func `unsent edits wait while a lost join can be put back`() async throws {
        let people = SharedVaultPeople()
        let ada = try await people.device("ada")
        let bob = try await people.person("bob")
        let family = try await ada.shared.make(name: "Family", as: "Ada")
        let backup = people.vaults.backUp()
        _ = try await people.join(family, bob.vault(), as: "Bob")
        _ = try await ada.refreshed(family.id)
        people.vaults.restore(backup)
        let item = ItemID.random()
        try await bob.notes(family.id).put(Note(text: "unsent"), item)
        for _ in 0..<2 { _ = try? await bob.vault().sync() }
        #expect(try await bob.vault().shared(family.id).problems.contains(.ended))
        #expect(try await bob.vault().unsentCount(of: family.id) == 1)
        _ = try await ada.refreshed(family.id)
        people.advance(3_700)
        for _ in 0..<2 { try await bob.vault().sync() }
        #expect(try await bob.vault().unsentCount(of: family.id) == 0)
        _ = try await ada.refreshed(family.id)
        #expect(try await bob.texts(family.id) == [item: "unsent"])
    }

    @Test func `unsent edits are in the trash a week after the end`() async throws {
        let cast = try await SharedVaultCast()
        try await cast.bob.notes(cast.id).put(Note(text: "unsent note"))
        try await cast.shared(cast.ada).remove([cast.member(cast.bob)])
        for _ in 0..<2 { _ = try? await cast.bob.vault().sync() }
        #expect(try await cast.bob.vault().unsentCount(of: cast.id) == 1)
        cast.people.advance(8 * 86_400)
        for _ in 0..<2 { _ = try? await cast.bob.vault().sync() }
        #expect(try await cast.bob.vault().unsentCount(of: cast.id) == 0)
        #expect(try await cast.bob.vault().keptTexts(of: cast.id) == ["unsent note"])
    }
}
