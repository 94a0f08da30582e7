import Cryptography
import SalternTesting
import Testing

@testable import VaultLog

struct LogComparisonTests {
    @Test func `prefixes and forks are found at their entry`() throws {
        var own = try TestVault.withPeople()
        for _ in 0..<5 { try own.rotate(by: "ada") }
        let hashes = own.log.hashes
        #expect(LogComparison(own: hashes, other: hashes) == .same)
        for count in 1..<hashes.count {
            let shorter = Array(hashes.prefix(count))
            let next = EntryNumber(UInt64(count) + 1).known
            #expect(LogComparison(own: hashes, other: shorter) == .isAhead(missingFrom: next))
            #expect(LogComparison(own: shorter, other: hashes) == .isBehind)
            for length in [0, 1, 4] {
                let fork = shorter + Array(repeating: EntryHash.none, count: length)
                if length > 0 { #expect(LogComparison(own: hashes, other: fork) == .diverged(at: next)) }
            }
        }
        let other = try TestVault()
        #expect(LogComparison(own: hashes, other: other.log.hashes) == .diverged(at: .first))
    }

    @Test func `missing entries are put back, whoever does it`() throws {
        var vault = try TestVault.withPeople()
        let backup = vault.entries.count
        try vault.append(.leave, by: "dan")
        try vault.remove(["cid"], by: "ben")
        var restored = try MembershipLog(vault.entries.prefix(backup))
        guard case .isAhead(let first) = LogComparison(own: vault.log.hashes, other: restored.hashes) else {
            Issue.record("the log is no prefix")
            return
        }
        for entry in vault.entries[(Int(first.value) - 1)...] { try restored.append(entry) }
        #expect(restored.head == vault.log.head)
    }

    @Test func `a head has a place`() throws {
        var vault = try TestVault()
        let first = vault.log.head
        try vault.rotate(by: "ada")
        #expect(vault.log.place(of: first) == .known && vault.log.place(of: vault.log.head) == .known)
        #expect(vault.log.place(of: Head(number: first.number, hash: .none)) == .diverged)
        #expect(vault.log.place(of: Head(number: EntryNumber(3).known, hash: .none)) == .unknown)
        #expect(vault.log.hash(at: EntryNumber(3).known) == nil)
    }

    @Test func `words of heads differ by vault, number and hash`() throws {
        let head = Head(number: .first, hash: .none)
        let words = head.words(of: id(1))
        #expect(words.count == 12 && words != head.words(of: id(2)))
        #expect(words != Head(number: EntryNumber(2).known, hash: .none).words(of: id(1)))
    }

    @Test func `members sign the heads that they have seen, and their accounts`() throws {
        var vault = try TestVault.withPeople()
        let account: MemberAccountID = id(7)
        let seen = try MemberStatement(.seen, by: vault.signer("dan"), vault.log.head)
        let claim = try MemberStatement(.claim(account), by: vault.signer("dan"), vault.log.head)
        #expect(seen.isValid(in: vault.log) && claim.isValid(in: vault.log))
        for wrong in [
            MemberStatement(.seen, seen.member, seen.head, claim.signature),
            MemberStatement(
                .claim(id(8)), claim.member, claim.head, claim.signature),
            MemberStatement(.seen, vault.id("cid"), seen.head, seen.signature),
            MemberStatement(.seen, .random(), seen.head, seen.signature),
            MemberStatement(.seen, seen.member, Head(number: .first, hash: seen.head.hash), seen.signature),
        ] {
            #expect(!wrong.isValid(in: vault.log))
        }
        try vault.rekey("dan")
        #expect(!claim.isValid(in: vault.log))
        let again = try MemberStatement(.seen, by: vault.signer("dan"), vault.log.head)
        try vault.append(.leave, by: "dan")
        #expect(!again.isValid(in: vault.log))
    }
}
