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

    private static func seal(_ vault: TestVault, _ author: MemberID) -> EntryPayload {
        .seal(Seal(of: author, SealList([:])))
    }

    @Test func `a late log only winds down, and a removal always has a number`() throws {
        var vault = try Self.full()
        let secrets = try InvitationSecrets(.random(), secret: SecureRandom.secureBytes(16), code: nil)
        #expect(try vault.rejection(.role(vault.id("0 1"), .manager), by: "0 0") == .windingDown)
        #expect(try vault.rejection(.invite(vault.terms(secrets, .reader)), by: "0 0") == .windingDown)
        #expect(try vault.rejection(.rotate(vault.next(.random(for: vault.log))), by: "0 0") == .windingDown)
        #expect(try vault.rejection(.offer(vault.id("0 0")), by: "ada") == .windingDown)
        // An author that no entry has cut off since its seal is not sealed again.
        #expect(try vault.rejection(Self.seal(vault, vault.id("0 2")), by: "0 0") == .windingDown)
        let early = vault.log.unsealed
        for author in early {
            try vault.append(Self.seal(vault, author), by: "0 0")
            #expect(try vault.rejection(Self.seal(vault, author), by: "ada") == .windingDown)
        }
        // Members use as many numbers as they can.
        for person in vault.people.keys.sorted() {
            guard vault.log.members[vault.id(person)]?.role != nil else { continue }
            try vault.rekey(person)
            let again = try EntryWriter.rekey(
                to: .generate(), by: vault.signer(person), after: vault.log, at: time(vault.now))
            #expect(vault.rejection(again) == .windingDown)
            try vault.rotate(by: "0 0")
            if vault.log.unsealed == [vault.id(person)] {
                try vault.append(Self.seal(vault, vault.id(person)), by: "0 0")
            }
            guard person != "ada", person != "0 0" else { continue }
            try vault.append(.leave, by: person)
            try vault.rotate(by: "0 0")
            for author in vault.log.unsealed { try vault.append(Self.seal(vault, author), by: "0 0") }
        }
        try vault.remove(["0 0"], by: "ada")
        try vault.append(Self.seal(vault, vault.id("0 0")), by: "ada")
        #expect(vault.log.presentMembers.map(\.id) == [vault.id("ada")] && vault.log.unsealed.isEmpty)
        #expect(vault.entries.count < Int(EntryNumber.limit))
    }

    @Test func `seals of earlier cuts have a bound, those of late ones have none`() throws {
        var vault = try TestVault()
        var count = 0
        while count <= LogBounds.sealsWindingDown {
            try vault.invite("\(count)", .writer, uses: 32)
            let link = "\(count)"
            for _ in 0..<32 {
                try vault.join("p \(count)", by: link)
                count += 1
            }
            for index in count - 32..<count { try vault.append(.role(vault.id("p \(index)"), .reader), by: "ada") }
            for index in count - 32..<count where index > 0 { try vault.append(.leave, by: "p \(index)") }
        }
        try vault.append(.role(vault.id("p 0"), .writer), by: "ada")
        while vault.entries.count < LogBounds.windingDown - 1 {
            let isWriter = vault.log.members[vault.id("p 0")]?.role == .writer
            try vault.append(.role(vault.id("p 0"), isWriter ? .manager : .writer), by: "ada")
        }
        #expect(vault.log.unsealed.count > LogBounds.sealsWindingDown)
        for author in vault.log.unsealed.prefix(LogBounds.sealsWindingDown) {
            try vault.append(Self.seal(vault, author), by: "ada")
        }
        let last = try #require(vault.log.unsealed.last)
        #expect(try vault.rejection(Self.seal(vault, last), by: "ada") == .windingDown)
        try vault.append(.leave, by: "p 0")
        #expect(vault.log.unsealed.last == vault.id("p 0"))
        try vault.append(Self.seal(vault, vault.id("p 0")), by: "ada")
    }

    @Test func `the bounds add up`() {
        let members = UInt64(LogBounds.members)
        let ends = members - 1
        let rekeys = members
        // Each end and each change of keys is followed by a rotation and a seal, and the vault is handed over once.
        let changes = 3 * (ends + rekeys) + 1
        let numbers = EntryNumber.limit - LogBounds.windingDown + 1
        #expect(changes + UInt64(LogBounds.sealsWindingDown) <= numbers)
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
