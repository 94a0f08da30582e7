import Foundation
import Testing
import VaultLog

@testable import SalternClient

/// A server that lies about keys, or shows items before the entries and keys that they need.
@Suite struct SharedVaultKeyLiesTests {
    /// A vault with three generations, and a note in each.
    private func generations() async throws -> SharedVaultCast {
        let cast = try await SharedVaultCast()
        for number in 1...3 {
            try await cast.write("generation \(number)", cast.ada)
            if number < 3 { try await cast.shared(cast.ada).rotate() }
        }
        return cast
    }

    private static let texts: Set = ["generation 1", "generation 2", "generation 3"]

    @Test func `invented previous keys replace none that open`() async throws {
        let cast = try await generations()
        try await cast.sync(cast.bob)
        #expect(try await cast.texts(cast.bob) == Self.texts)
        let tablet = try await cast.people.person("bob")
        for device in [cast.bob, tablet] {
            cast.rewrite(device) { target, reply in
                guard target.contains("/log") else { return }
                reply["previousKeys"] = (2...3).map { ["generation": $0, "key": String(repeating: "A", count: 80)] }
            }
        }
        try await cast.shared(cast.ada).rotate()
        try await cast.write("generation 4", cast.ada)
        for device in [cast.bob, tablet] {
            _ = try? await device.vault().sync()
            cast.beHonest(to: device)
            _ = try? await cast.shared(cast.ada).invite(base: SharedVaultPeople.base)
            try await cast.sync(device, device)
            #expect(try await cast.texts(device) == Self.texts.union(["generation 4"]))
        }
    }

    @Test func `previous keys that the server has lost with the boxes are sent again`() async throws {
        let cast = try await generations()
        try await cast.sync(cast.ada)
        #expect(try await cast.ada.vault().vaultRecord(cast.id)?.generations.count == 1)
        cast.people.change(cast.id) { ($0.previousKeys, $0.boxes) = ([:], [:]) }
        try await cast.sync(cast.ada)
        #expect(cast.people.onServer(cast.id)?.previousKeys.count == 2)
        for name in ["ada", "bob"] {
            let tablet = try await cast.people.person(name)
            try await cast.sync(tablet, tablet)
            #expect(try await cast.texts(tablet) == Self.texts)
        }
    }

    @Test func `previous keys that a manager has replaced by others are sent again by the next manager`() async throws {
        let cast = try await SharedVaultCast(eve: .manager)
        try await cast.write("generation 1", cast.ada)
        try await cast.shared(cast.ada).rotate()
        try await cast.sync(cast.eve)
        let other = String(repeating: "A", count: 80)
        cast.people.change(cast.id) { $0.previousKeys[2] = other }
        _ = try await cast.shared(cast.ada).invite(base: SharedVaultPeople.base)
        try await cast.sync(cast.eve)
        #expect(cast.people.onServer(cast.id)?.previousKeys[2] != other)
        let tablet = try await cast.people.person("bob")
        try await cast.sync(tablet, tablet)
        #expect(try await cast.texts(tablet) == ["generation 1"])
    }

    @Test func `numbers that no generation has are refused`() async throws {
        let cast = try await generations()
        let key = String(repeating: "A", count: 80)
        for number in [0, 1, 5_000, 1 << 63, UInt64.max] {
            cast.rewrite(cast.bob) { target, reply in
                guard target.contains("/log") else { return }
                reply["previousKeys"] = [["generation": number, "key": key]]
                reply["boxes"] = [["generation": number, "box": key]]
                reply["seals"] = [number]
            }
            _ = try await cast.shared(cast.ada).invite(base: SharedVaultPeople.base)
            _ = try? await cast.bob.vault().sync()
        }
        cast.beHonest(to: cast.bob)
        try await cast.sync(cast.bob, cast.bob)
        #expect(try await cast.texts(cast.bob) == Self.texts)
    }

    @Test func `an item of a reader that comes before its key's entry is never shown`() async throws {
        let cast = try await SharedVaultCast(eve: .reader)
        let before = cast.entries
        try await cast.shared(cast.ada).rotate()
        try await cast.sync(cast.eve)
        try await cast.forge("forged", cast.sealing(cast.eve))
        try await cast.write("of Ada", cast.ada)
        cast.show(before, to: cast.bob)
        _ = try? await cast.bob.vault().sync()
        #expect(try await cast.texts(cast.bob).isEmpty)
        cast.beHonest(to: cast.bob)
        try await cast.sync(cast.bob, cast.bob)
        try await checkUnshown(cast)
    }

    @Test func `a key that comes later without an entry lets the items be judged`() async throws {
        let cast = try await SharedVaultCast(eve: .reader)
        try await cast.shared(cast.ada).rotate()
        cast.spoilBox(of: cast.bob)
        try await cast.sync(cast.eve)
        try await cast.forge("forged", cast.sealing(cast.eve))
        try await cast.write("of Ada", cast.ada)
        try await cast.sync(cast.bob)
        #expect(try await cast.shared(cast.bob).problems.contains(.missingKey))
        #expect(try await cast.texts(cast.bob).isEmpty)
        try await cast.sync(cast.ada, cast.bob, cast.bob)
        try await checkUnshown(cast)
    }

    private func checkUnshown(_ cast: SharedVaultCast) async throws {
        #expect(try await cast.texts(cast.bob) == ["of Ada"])
        // A rotation and a restart do not make it an edit of the device.
        try await cast.shared(cast.ada).rotate()
        try await cast.sync(cast.bob, cast.ada, cast.bob)
        for device in [cast.ada, cast.bob] {
            #expect(try await cast.texts(device) == ["of Ada"])
            #expect(try await device.vault().unsentCount(of: cast.id) == 0)
            #expect(try await !device.vault().keptTexts(of: cast.id).contains("forged"))
        }
    }

    @Test func `a manager without the present key does not rotate by itself`() async throws {
        let cast = try await SharedVaultCast(bob: .manager)
        try await cast.write("before", cast.ada)
        try await cast.sync(cast.bob)
        try await cast.shared(cast.ada).rotate()
        cast.spoilBox(of: cast.bob)
        try await cast.write("under the second key", cast.ada)
        try await cast.sync(cast.eve)
        try await cast.shared(cast.eve).leave()
        let count = cast.people.onServer(cast.id)?.log.generations.count
        try await cast.sync(cast.bob)
        cast.people.advance(3_700)
        try await cast.sync(cast.bob)
        #expect(cast.people.onServer(cast.id)?.log.generations.count == count)
        try await cast.sync(cast.ada, cast.bob)
        let tablet = try await cast.people.person("bob")
        try await cast.sync(tablet)
        for device in [cast.ada, cast.bob, tablet] {
            #expect(try await cast.texts(device) == ["before", "under the second key"])
        }
    }

    @Test func `no key and no name is in memory after a lock`() async throws {
        let cast = try await SharedVaultCast()
        let vault = try cast.bob.vault()
        _ = try await vault.shared.all()
        try await vault.lock()
        await #expect { try await vault.shared.all() } throws: {
            if case .locked = $0 as? VaultError { true } else { false }
        }
        await #expect { try await vault.shared(cast.id) } throws: {
            if case .locked = $0 as? VaultError { true } else { false }
        }
    }
}
