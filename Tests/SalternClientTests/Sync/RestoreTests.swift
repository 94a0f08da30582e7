import Foundation
import SalternTesting
import Testing

@testable import SalternClient

/// What several devices hold when the server's database is restored: each version is kept, and none of them twice.
///
/// A scenario is its seed: see ``PropertyTests``.
@Suite struct RestoreTests {
    /// At once.
    private static let lanes: UInt64 = 2

    @Test(arguments: 0..<lanes)
    func `whenever time goes back every version is kept, and none twice`(lane: UInt64) async throws {
        let seeds = PropertyTests.seeds(ofLane: lane, of: Self.lanes)
        print("restores: seeds \(seeds)")
        var restores = 0
        for seed in seeds {
            do {
                let scenario = try await RestoreScenario(seed)
                try await scenario.run()
                restores += scenario.restores
            } catch {
                Issue.record("seed \(seed): \(error)")
            }
        }
        print("restores: seeds \(seeds): \(restores)")
        #expect(restores >= seeds.count / 2)
    }

    // MARK: Step by step

    private func notes(_ vault: Vault) -> VaultCollection<Note> { vault.collection("notes") }

    private func texts(_ vault: Vault) async throws -> [String] {
        try await notes(vault).all().values.map(\.text).sorted()
    }

    /// All three devices hold an edit, "lost", of a note that the server has as "kept".
    private func withLostEdit(_ body: (RestoredPerson, [Vault], ItemID) async throws -> Void) async throws {
        let person = try await RestoredPerson()
        let vaults = try (0..<3).map { try person.vault($0) }
        let id = try await notes(vaults[0]).put(Note(text: "kept"))
        try await vaults[0].sync()
        let backup = person.server.backUp()
        try await notes(vaults[0]).put(Note(text: "lost"), id)
        for vault in vaults { try await vault.sync() }
        person.server.restore(backup)
        try await body(person, vaults, id)
    }

    private func expectEqual(_ vaults: [Vault], _ expected: [String]) async throws {
        for vault in vaults {
            #expect(try await texts(vault) == expected)
            #expect(try await vault.unsentCount() == 0)
        }
        let all = try await notes(vaults[0]).all()
        for vault in vaults { #expect(try await notes(vault).all() == all) }
    }

    @Test func `three devices that hold the same lost edit make one copy of it`() async throws {
        try await withLostEdit { person, vaults, id in
            try await person.converge()
            try await expectEqual(vaults, ["kept", "lost"])
            var copies: Set<ItemID?> = []
            for vault in vaults {
                let notices = try await vault.notices()
                #expect(notices.map(\.kind) == [.timeWentBack, .conflict])
                #expect(notices.last?.item == id)
                copies.insert(notices.last?.other)
            }
            #expect(copies.count == 1 && copies != [nil])
        }
    }

    @Test func `what was created again after a deletion, and lost, is sent again`() async throws {
        let person = try await RestoredPerson()
        let vaults = try (0..<3).map { try person.vault($0) }
        let id = try await notes(vaults[0]).put(Note(text: "first"))
        for vault in vaults { try await vault.sync() }
        try await notes(vaults[0]).delete(id)
        try await vaults[0].sync()
        let backup = person.server.backUp()
        try await notes(vaults[1]).put(Note(text: "kept"), id)
        for vault in [vaults[1], vaults[0], vaults[2]] { try await vault.sync() }
        for vault in vaults { #expect(try await texts(vault) == ["kept"]) }
        person.server.restore(backup)
        try await person.converge()
        try await expectEqual(vaults, ["kept"])
        #expect(try await vaults[0].notices().map(\.kind) == [.timeWentBack, .keptUnlisted])
    }

    @Test func `what a person has put back is not copied beside it`() async throws {
        try await withLostEdit { person, vaults, id in
            try await vaults[0].sync()
            let copy = try #require(try await notes(vaults[0]).all().first { $0.value.text == "lost" }?.key)
            try await notes(vaults[0]).put(Note(text: "lost"), id)
            try await notes(vaults[0]).delete(copy)
            try await person.converge()
            try await expectEqual(vaults, ["lost"])
        }
    }

    @Test(arguments: [1, 2]) func `who has edited the copy has seen what is in it`(edits: Int) async throws {
        try await withLostEdit { person, vaults, id in
            try await vaults[0].sync()
            let copy = try #require(try await notes(vaults[0]).all().first { $0.value.text == "lost" }?.key)
            for number in 1...edits {
                try await notes(vaults[0]).put(Note(text: "lost, edit \(number)"), copy)
                try await vaults[0].sync()
            }
            try await person.converge()
            try await expectEqual(vaults, ["kept", "lost, edit \(edits)"])
        }
    }

    @Test func `a copy that was deleted on one device is in the trash of the others`() async throws {
        try await withLostEdit { person, vaults, _ in
            try await vaults[0].sync()
            let copy = try #require(try await notes(vaults[0]).all().first { $0.value.text == "lost" }?.key)
            try await notes(vaults[0]).delete(copy)
            try await person.converge()
            try await expectEqual(vaults, ["kept"])
            for vault in vaults { #expect(try await vault.deletedItems().map(\.id) == [copy]) }
            try await vaults[2].restore(copy)
            try await person.converge()
            try await expectEqual(vaults, ["kept", "lost"])
        }
    }

    @Test func `an edit of the copy that is made before it is sent is an edit`() async throws {
        try await withLostEdit { person, vaults, _ in
            let copy = try await unsentCopy(person)
            try await notes(vaults[0]).put(Note(text: "lost, edited"), copy)
            try await vaults[1].sync()
            try await notes(vaults[1]).put(Note(text: "lost, edited elsewhere"), copy)
            try await vaults[1].sync()
            try await person.converge()
            try await expectEqual(vaults, ["kept", "lost, edited", "lost, edited elsewhere"])
        }
    }

    /// - Parameter isRecreated: Whether what was edited is at another revision in the backup, with the same bytes.
    @Test(arguments: [false, true])
    func `an edit whose reply was lost is not sent beside the copy that others have made of it`(
        isRecreated: Bool
    ) async throws {
        let person = try await RestoredPerson()
        let vaults = try (0..<3).map { try person.vault($0) }
        let empty = person.server.backUp()
        let id = try await notes(vaults[0]).put(Note(text: "kept"))
        for vault in vaults { try await vault.sync() }
        let backup = person.server.backUp()
        if isRecreated {
            person.server.restore(empty)
            try await person.converge()
        }
        try await loseReply(to: Note(text: "lost"), id, person)
        try await vaults[1].sync()
        #expect(try await texts(vaults[1]) == ["lost"])
        person.server.restore(backup)
        try await vaults[1].sync()
        try await person.converge()
        try await expectEqual(vaults, ["kept", "lost"])
    }

    @Test func `nor is it when the copy comes after everything was compared`() async throws {
        let person = try await RestoredPerson()
        let vaults = try (0..<3).map { try person.vault($0) }
        let id = try await notes(vaults[0]).put(Note(text: "kept"))
        for vault in vaults { try await vault.sync() }
        let backup = person.server.backUp()
        try await loseReply(to: Note(text: "lost"), id, person)
        try await vaults[1].sync()
        person.server.restore(backup)
        person.links[0].setAnswer { Self.isBatch($0) ? Self.away : nil }
        await #expect(throws: VaultError.self) { try await vaults[0].sync() }
        person.links[0].setAnswer { _ in nil }
        try await vaults[1].sync()
        try await person.converge()
        try await expectEqual(vaults, ["kept", "lost"])
    }

    @Test func `what was kept is in its place again when a later backup is restored`() async throws {
        let person = try await RestoredPerson()
        let vaults = try (0..<3).map { try person.vault($0) }
        let id = try await notes(vaults[0]).put(Note(text: "early"))
        for vault in vaults { try await vault.sync() }
        let early = person.server.backUp()
        try await notes(vaults[0]).put(Note(text: "late"), id)
        for vault in vaults { try await vault.sync() }
        let late = person.server.backUp()
        person.server.restore(early)
        try await person.converge()
        try await expectEqual(vaults, ["early", "late"])
        person.server.restore(late)
        try await person.converge()
        try await expectEqual(vaults, ["late"])
    }

    @Test func `a copy that was not confirmed is not sent when its version is back`() async throws {
        let person = try await RestoredPerson()
        let vaults = try (0..<3).map { try person.vault($0) }
        let id = try await notes(vaults[0]).put(Note(text: "early"))
        try await vaults[0].sync()
        let early = person.server.backUp()
        try await notes(vaults[0]).put(Note(text: "late"), id)
        for vault in vaults { try await vault.sync() }
        let late = person.server.backUp()
        person.server.restore(early)
        person.links[0].setAnswer { Self.isBatch($0) ? Self.away : nil }
        await #expect(throws: VaultError.self) { try await vaults[0].sync() }
        person.links[0].setAnswer { _ in nil }
        person.server.restore(late)
        try await person.converge()
        try await expectEqual(vaults, ["late"])
    }

    @Test func `where a copy was deleted before time went back once more, it goes elsewhere`() async throws {
        try await withLostEdit { person, vaults, _ in
            let copy = try await unsentCopy(person)
            try await vaults[1].buryUnseen(copy)
            try await vaults[1].sync()
            #expect(try await notes(vaults[1]).all().first { $0.value.text == "lost" }?.key != copy)
            #expect(try await texts(vaults[1]) == ["kept", "lost"])
        }
    }

    private static func isBatch(_ request: HTTPRequest) -> Bool { request.target == "/v1/items/batch" }

    private static let away = HTTPReply(
        head: HTTPReplyHead(status: 503, fields: []),
        body: Array(#"{"type":"about:blank","title":"Away","status":503,"code":"unavailable"}"#.utf8))

    /// The first device's edit arrives, and its reply does not.
    private func loseReply(to note: Note, _ id: ItemID, _ person: RestoredPerson) async throws {
        let vault = try person.vault(0)
        try await notes(vault).put(note, id)
        person.links[0].setRewrite { Self.isBatch($0) ? Self.away : $1 }
        await #expect(throws: VaultError.self) { try await vault.sync() }
        person.links[0].setRewrite { $1 }
    }

    /// Has the first device make its copy of the lost edit without sending it.
    private func unsentCopy(_ person: RestoredPerson) async throws -> ItemID {
        let vault = try person.vault(0)
        person.links[0].setAnswer { Self.isBatch($0) ? Self.away : nil }
        await #expect(throws: VaultError.self) { try await vault.sync() }
        person.links[0].setAnswer { _ in nil }
        return try #require(try await notes(vault).all().first { $0.value.text == "lost" }?.key)
    }
}

extension Vault {
    fileprivate func buryUnseen(_ id: ItemID) throws { try store.storeTombstone(id, Revision(1), at: Date()) }
}
