import Cryptography
import Foundation
import Testing
import VaultLog

@testable import SalternClient

/// The account's record of its keys in one shared vault.
@Suite struct MembershipRecordTests {
    /// A vault with one member, whose key is replaced.
    private struct Scene {
        let member = VaultLog.MemberID.random()
        let keys: MemberPrivateKeys
        var log: MembershipLog
        var generations: [GenerationKey]
        /// The right sealed previous keys.
        var previous: [GenerationNumber: [UInt8]] = [:]

        init() throws {
            keys = try .generate()
            generations = [.random()]
            let name = try #require(ClaimedName("Ada"))
            log = try MembershipLog(
                founding: EntryWriter.found(
                    by: member, named: name, keys, generations[0], at: EntryTime(.now)))
        }

        var record: MembershipRecord { MembershipRecord(memberId: MemberID(member), keys, name: nil) }

        mutating func append(_ payload: EntryPayload) throws {
            let signer = try MemberSigner(member, of: log.vault, keys)
            try log.append(try EntryWriter.entry(payload, by: signer, after: log, at: EntryTime(.now)))
        }

        mutating func rotate() throws {
            let key = GenerationKey.random(for: log)
            let number = try #require(log.currentGeneration.number.next)
            try append(.rotate(Generation(key, number: number)))
            previous[number] = try key.sealPrevious(generations[generations.count - 1], of: log.vault, number: number)
            generations.append(key)
        }

        func number(_ value: Int) throws -> GenerationNumber { try #require(GenerationNumber(UInt64(value))) }

        func take(_ value: Int, into record: inout MembershipRecord) throws {
            record.take(generations[value - 1], try number(value))
        }
    }

    private static func numbers(_ record: MembershipRecord) -> [UInt64] { record.generations.map(\.number) }

    @Test func `a record keeps a leave through a merge`() throws {
        let scene = try Scene()
        var record = scene.record
        record.left = record.memberId
        #expect(MembershipRecord(try record.body)?.left == record.memberId)
        #expect(record.merged(with: scene.record).left == record.memberId)
        #expect(scene.record.merged(with: record).left == record.memberId)
    }

    @Test func `a key stays until sealed previous keys lead to it from a later one`() throws {
        var scene = try Scene()
        for _ in 0..<3 { try scene.rotate() }
        var record = scene.record
        for value in [3, 1, 2, 2] { try scene.take(value, into: &record) }
        #expect(Self.numbers(record) == [1, 2, 3])
        // Nothing leads to them: no sealed key, bytes of no meaning, or a random key in place of the previous one.
        let third = try scene.number(3)
        let random = try scene.generations[2].sealPrevious(.random(), of: scene.log.vault, number: third)
        let garbage = [UInt8](repeating: 7, count: GenerationKey.sealedPreviousByteCount)
        for wrong in [nil, garbage, random] {
            var previous = scene.previous
            previous[third] = wrong
            var kept = record
            kept.dropReachable(previous, in: scene.log)
            // The second key leads to the first one.
            #expect(Self.numbers(kept) == [2, 3])
        }
        record.dropReachable(scene.previous, in: scene.log)
        #expect(Self.numbers(record) == [3])
        var keys = record.generationKeys(in: scene.log)
        let missing = keys.openPrevious(scene.previous, scene.log)
        let second = try scene.number(2)
        #expect(missing.isEmpty)
        #expect(keys[.first] == scene.generations[0] && keys[second] == scene.generations[1])
    }

    @Test func `keys that the log does not describe stay, and open nothing`() throws {
        var scene = try Scene()
        let before = scene.log
        try scene.rotate()
        var record = scene.record
        try scene.take(1, into: &record)
        try scene.take(2, into: &record)
        let strange = GenerationKey.random(for: scene.log)
        record.take(strange, try scene.number(2))
        // The record has arrived before the log.
        record.dropReachable(scene.previous, in: before)
        #expect(Self.numbers(record) == [1, 2, 2])
        #expect(record.generationKeys(in: before).numbers == [.first])
        record.dropReachable(scene.previous, in: scene.log)
        #expect(Self.numbers(record) == [2, 2])
        let number = try scene.number(2)
        #expect(record.generationKeys(in: scene.log)[number] == scene.generations[1])
    }

    @Test func `versions of two devices merge to all keys and heads`() throws {
        var scene = try Scene()
        var other = scene
        try scene.rotate()
        try other.rotate()
        var mine = scene.record
        var theirs = scene.record
        try scene.take(2, into: &mine)
        try other.take(2, into: &theirs)
        mine.takeHead(of: scene.log)
        theirs.takeHead(of: other.log)
        let merged = mine.merged(with: theirs)
        #expect(Self.numbers(merged) == [2, 2] && merged.heads.count == 2 && merged.keys.count == 1)
        // Equal bytes on both devices, so merging ends.
        #expect(try merged.merged(with: merged).body == merged.body)
        let read = try #require(MembershipRecord(try merged.body))
        #expect(try read.body == merged.body)
        // Each device finds the other's history.
        #expect(merged.difference(from: scene.log) == 2 && merged.difference(from: other.log) == 2)
        #expect(mine.difference(from: scene.log) == nil)
    }

    @Test func `a head replaces those that the log contains, and stays when the log is rolled back`() throws {
        var scene = try Scene()
        let before = scene.log
        var record = scene.record
        record.takeHead(of: scene.log)
        try scene.rotate()
        record.takeHead(of: scene.log)
        #expect(record.heads.map(\.number) == [2] && record.highestNumber == 2)
        record.takeHead(of: before)
        #expect(record.heads.map(\.number) == [2] && record.difference(from: before) == nil)
    }

    @Test func `a forgotten vault stays forgotten until another membership`() throws {
        let scene = try Scene()
        let record = scene.record
        let forgotten = MembershipRecord(forgotten: record.memberId)
        #expect(MembershipRecord(try forgotten.body)?.isForgotten == true)
        #expect(record.merged(with: forgotten).isForgotten && forgotten.merged(with: record).isForgotten)
        let again = MembershipRecord(memberId: .random(), try .generate(), name: nil)
        #expect(!again.merged(with: forgotten).isForgotten && !forgotten.merged(with: again).isForgotten)
    }
}
