import Cryptography
import SalternTesting
import Testing

@testable import VaultLog

struct EntryTests {
    /// A log with an entry of each kind.
    private static func whole() throws -> TestVault {
        var vault = try TestVault.withPeople()
        try vault.append(.role(vault.id("cid"), .reader), by: "ben")
        try vault.append(.seal(Seal(of: vault.id("cid"), SealList([:]))), by: "ben")
        try vault.invite("more", .writer, uses: 3, by: "ben")
        try vault.append(.revoke(vault.links["more"].known.id), by: "ada")
        try vault.append(.offer(vault.id("ben")), by: "ada")
        try vault.append(.accept(vault.log.head.number), by: "ben")
        try vault.append(.leave, by: "dan")
        try vault.rotate(by: "ada")
        try vault.rekey("cid")
        try vault.remove(["cid", "ada"], by: "ben")
        #expect(Set(vault.entries.map(\.payload.kind)) == Set(EntryKind.allCases))
        return vault
    }

    @Test func `an entry of each kind has one encoding`() throws {
        let vault = try Self.whole()
        for entry in vault.entries {
            let read = try Entry(entry.bytes)
            #expect(read == entry)
            #expect(read.header.bytes(read.payload.kind) + read.payload.bytes + read.signature.bytes == entry.bytes)
            #expect(entry.bytes.count <= Entry.byteLimit)
        }
        #expect(try MembershipLog(vault.entries).head == vault.log.head)
        #expect(try MembershipLog(vault.entries, areVerified: true).head == vault.log.head)
    }

    @Test func `an entry with a byte more or less is malformed`() throws {
        for entry in try Self.whole().entries {
            #expect(throws: Entry.Malformation.malformed) { try Entry(entry.bytes + [0]) }
            #expect(throws: Entry.Malformation.malformed) { try Entry(Array(entry.bytes.dropLast())) }
        }
        #expect(throws: Entry.Malformation.malformed) { try Entry([]) }
        #expect(throws: Entry.Malformation.malformed) { try Entry([1]) }
    }

    @Test func `later versions and kinds are distinguished from damage`() throws {
        var bytes = try TestVault().entries[0].bytes
        bytes[1] = 13
        #expect(throws: Entry.Malformation.unknownKind) { try Entry(bytes) }
        bytes[0] = 2
        #expect(throws: Entry.Malformation.unknownVersion) { try Entry(bytes) }
    }

    /// Nothing in an entry is free: each changed bit is rejected by the layout or by the log.
    @Test(arguments: PropertyTests.slow) func `a changed bit is always rejected`(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let vault = try Self.whole()
        for (index, entry) in vault.entries.enumerated() {
            var log: MembershipLog?
            if index > 0 { log = try MembershipLog(vault.entries[..<index]) }
            for _ in 0..<20 {
                var bytes = entry.bytes
                bytes[Int.random(in: bytes.indices, using: &random)] ^= 1 << UInt8.random(in: 0..<8, using: &random)
                guard let changed = try? Entry(bytes) else { continue }
                #expect(throws: EntryRejection.self) {
                    if var log { try log.append(changed) } else { _ = try MembershipLog(founding: changed) }
                }
            }
        }
    }

    @Test func `numbers out of bounds do not exist`() {
        #expect(EntryNumber(0) == nil && EntryNumber(4_097) == nil && EntryNumber(4_096)?.next == nil)
        #expect(GenerationNumber(0) == nil && GenerationNumber(4_097) == nil)
        #expect(EditNumber(0) == nil && EditNumber(UInt64.max) == nil && EditNumber((1 << 63) - 2) != nil)
        #expect(EntryTime(seconds: 253_402_300_800) == nil)
        #expect(time(1_000).isPlausible(at: time(1_300)) && !time(1_000).isPlausible(at: time(1_301)))
        #expect(time(1_300).isPlausible(at: time(1_000)) && !time(1_301).isPlausible(at: time(1_000)))
        #expect(time(0).isPossible(at: time(1_000)) && !time(1_301).isPossible(at: time(1_000)))
    }

    @Test func `an id has one text`() {
        let id = VaultID(Array(0..<16)).known
        #expect(id.text == "00010203-0405-0607-0809-0a0b0c0d0e0f")
        #expect(VaultID(text: id.text) == id)
        for text in ["", "00010203-0405-0607-0809-0a0b0c0d0e0F", "000102030405060708090a0b0c0d0e0f", id.text + "-"] {
            #expect(VaultID(text: text) == nil)
        }
        #expect(VaultID(Array(0..<15)) == nil && VaultID(Array(0..<17)) == nil)
    }

    @Test func `labels are not the beginning of one another, and differ from those of accounts`() {
        for label in VaultLabel.allCases {
            #expect(label.text([1, 2]) == Array(label.rawValue.utf8) + [0, 1, 2])
            #expect(!label.rawValue.utf8.contains(0))
            #expect(label.rawValue.hasPrefix("saltern-1 vault ") || label.rawValue.hasPrefix("saltern-1 invitation "))
        }
    }
}
