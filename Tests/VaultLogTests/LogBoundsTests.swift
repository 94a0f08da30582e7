import Cryptography
import Testing

@testable import VaultLog

struct LogBoundsTests {
    /// A vault with 128 members and as many entries as accept every kind. Half of them cut an author off.
    private static func full() throws -> TestVault {
        var vault = try TestVault()
        for link in 0..<4 {
            try vault.invite("link \(link)", .writer, uses: 32)
            for index in 0..<(link == 3 ? 31 : 32) { try vault.join("\(link) \(index)", by: "link \(link)") }
        }
        try vault.append(.role(vault.id("0 0"), .manager), by: "ada")
        while vault.entries.count < LogBounds.windingDown - 1 {
            let isWriter = vault.log.members[vault.id("0 1")]?.role == .writer
            try vault.append(.role(vault.id("0 1"), isWriter ? .reader : .writer), by: "0 0")
        }
        return vault
    }

    @Test func `a late log only winds down, and a removal always has a number`() throws {
        var vault = try Self.full()
        let secrets = try InvitationSecrets(.random(), secret: SecureRandom.secureBytes(16), code: nil)
        #expect(try vault.rejection(.role(vault.id("0 1"), .manager), by: "0 0") == .windingDown)
        #expect(try vault.rejection(.invite(vault.terms(secrets, .reader)), by: "0 0") == .windingDown)
        #expect(try vault.rejection(.rotate(vault.next(.random(for: vault.log))), by: "0 0") == .windingDown)
        #expect(try vault.rejection(.offer(vault.id("0 0")), by: "ada") == .windingDown)
        // A manager and leaving members use as many numbers as they can.
        var seals = 0
        for number in vault.log.unsealed {
            let seal = EntryPayload.seal(Seal(entry: number, SealList([:])))
            if try vault.rejection(seal, by: "0 0") == nil {
                try vault.append(seal, by: "0 0")
                seals += 1
            }
        }
        #expect(seals == LogBounds.sealsWindingDown)
        for (person, each) in vault.people where person != "ada" && person != "0 0" {
            guard vault.log.members[each.id]?.role != nil else { continue }
            try vault.append(.leave, by: person)
            try vault.rotate(by: "0 0")
        }
        #expect(
            try vault.rejection(.seal(Seal(entry: vault.log.unsealed[0], SealList([:]))), by: "0 0") == .windingDown)
        try vault.remove(["0 0"], by: "ada")
        #expect(vault.log.presentMembers.map(\.id) == [vault.id("ada")])
        #expect(vault.entries.count < Int(EntryNumber.limit))
    }

    @Test func `the bounds add up`() {
        let leaving = UInt64(LogBounds.members) - 1
        let rotations = leaving + 1
        let numbers = EntryNumber.limit - LogBounds.windingDown + 1
        #expect(leaving + rotations + 1 + UInt64(LogBounds.sealsWindingDown) <= numbers)
    }

    @Test func `only so many members are present`() throws {
        var vault = try TestVault()
        for link in 0..<5 { try vault.invite("link \(link)", .reader, uses: 32) }
        for index in 0..<127 { try vault.join("\(index)", by: "link \(index / 32)") }
        #expect(vault.rejection(try vault.joining("link 4", .generate())) == .tooManyMembers)
        try vault.append(.leave, by: "0")
        #expect(vault.rejection(try vault.joining("link 4", .generate())) == nil)
    }
}
