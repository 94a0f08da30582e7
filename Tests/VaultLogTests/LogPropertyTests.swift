import Cryptography
import SalternTesting
import Testing

@testable import VaultLog

/// Random logs against ``LogModel``: valid entries are accepted, all others rejected, and both agree about the result.
struct LogPropertyTests {
    @Test(arguments: PropertyTests.slow) func `log and model agree`(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        var vault = try TestVault()
        var model = LogModel()
        model.append(vault.entries[0])
        var names = ["ada"]
        var accepted = 0
        for step in 0..<60 {
            vault.now += UInt64.random(in: 0...200, using: &random)
            let person = names.randomElement(using: &random).known
            let other = names.randomElement(using: &random).known
            let entry: Entry
            var commit: (inout TestVault) throws -> Void = { _ in }
            switch Int.random(in: 0..<12, using: &random) {
            case 0, 1:
                let role = Role.allCases.randomElement(using: &random).known
                try Self.addLink("\(step)", to: &vault)
                let terms = vault.terms(
                    vault.links["\(step)"].known, role, uses: .random(in: 1...3, using: &random),
                    life: .random(in: 1...2_000, using: &random))
                entry = try vault.entry(.invite(terms), by: person)
            case 2, 3, 4:
                guard let link = vault.links.keys.sorted().randomElement(using: &random) else { continue }
                let joiner = "person \(step)"
                let keys = try MemberPrivateKeys.generate()
                entry = try vault.joining(link, keys)
                let id = entry.author
                commit = { $0.add(joiner, id, keys) }
            case 5, 6:
                entry = try vault.entry(
                    .role(vault.id(other), Role.allCases.randomElement(using: &random).known), by: person)
            case 7:
                let key = GenerationKey.random(for: vault.log)
                entry = try vault.entry(vault.removal([other], key), by: person)
                commit = { $0.add(key) }
            case 8:
                guard Bool.random(using: &random) else { continue }
                entry = try vault.entry(.leave, by: person)
            case 9:
                if let offer = vault.log.offer, Bool.random(using: &random) {
                    entry = try vault.entry(.accept(offer.number), by: person)
                } else {
                    entry = try vault.entry(.offer(Bool.random(using: &random) ? vault.id(other) : nil), by: person)
                }
            case 10:
                entry = try vault.entry(.seal(Seal(of: vault.id(other), SealList([:]))), by: person)
            default:
                if let link = vault.links.keys.sorted().randomElement(using: &random).flatMap({ vault.links[$0] }),
                    Bool.random(using: &random)
                {
                    entry = try vault.entry(.revoke(link.id), by: person)
                } else {
                    let keys = try MemberPrivateKeys.generate()
                    entry = try EntryWriter.rekey(
                        to: keys, by: vault.signer(person), after: vault.log, at: time(vault.now))
                    commit = { $0.replace(person, keys) }
                }
            }
            let isValid = model.accepts(entry)
            let reason = vault.rejection(entry)
            #expect((reason == nil) == isValid, "step \(step): \(entry.payload.kind), \(String(describing: reason))")
            guard isValid, reason == nil else { continue }
            accepted += 1
            try vault.append(entry)
            try commit(&vault)
            model.append(entry)
            names = vault.people.keys.sorted()
            #expect(Set(vault.log.unsealed) == model.unsealed)
            #expect(vault.log.owner == model.owner)
            #expect(vault.log.offer?.number.value == model.offer?.0)
            for member in vault.people.values {
                #expect(vault.log.members[member.id]?.role == model.role(member.id))
            }
        }
        #expect(accepted > 0)
        let again = try MembershipLog(try vault.entries.map { try Entry($0.bytes) })
        #expect(again.head == vault.log.head && again.generations == vault.log.generations)
    }

    private static func addLink(_ link: String, to vault: inout TestVault) throws {
        vault.add(link, try InvitationSecrets(.random(), secret: SecureRandom.secureBytes(16), code: nil))
    }
}
