import Cryptography
import Testing

@testable import VaultLog

struct MembershipLogTests {
    @Test func `a founder owns and manages`() throws {
        let vault = try TestVault()
        #expect(vault.log.owner == vault.id("ada"))
        #expect(vault.log.members[vault.id("ada")]?.role == .manager)
        #expect(vault.log.currentGeneration.describes(vault.key))
        #expect(!vault.log.isRotationDue && vault.log.offer == nil)
    }

    @Test func `the id of a vault stands for its founding entry`() throws {
        let vault = try TestVault()
        let ada = vault.people["ada"].known
        var header = vault.entries[0].header
        header.vault = .random()
        let moved = try EntryWriter.sign(header, vault.entries[0].payload, with: ES256.SigningKey(ada.keys.signing))
        #expect(throws: EntryRejection.wrongVault) { try MembershipLog(founding: moved) }
        header = vault.entries[0].header
        let stranger = try ES256.SigningKey(.generate())
        let forged = try EntryWriter.sign(header, vault.entries[0].payload, with: stranger)
        #expect(throws: EntryRejection.wrongSignature) { try MembershipLog(founding: forged) }
        #expect(throws: EntryRejection.wrongNumber) { try MembershipLog([]) }
        var other = try TestVault.withPeople()
        #expect(throws: EntryRejection.wrongNumber) { try MembershipLog(founding: other.entries[1]) }
        #expect(other.rejection(vault.entries[0]) == .wrongVault)
        #expect(other.rejection(other.entries[0]) == .wrongNumber)
        try other.rotate(by: "ada")
        #expect(other.rejection(other.entries[2]) == .wrongNumber)
    }

    @Test func `an entry continues one head`() throws {
        var vault = try TestVault.withPeople()
        let entry = try vault.entry(.leave, by: "dan")
        try vault.rotate(by: "ada")
        #expect(vault.rejection(entry) == .wrongNumber)
        var header = entry.header
        header.number = try #require(vault.log.head.number.next)
        let key = try ES256.SigningKey(vault.people["dan"].known.keys.signing)
        #expect(vault.rejection(try EntryWriter.sign(header, .leave, with: key)) == .wrongPrevious)
        header.previous = vault.log.head.hash
        #expect(vault.rejection(try EntryWriter.sign(header, .leave, with: key)) == nil)
    }

    @Test func `only members append, only managers manage, each with its own key`() throws {
        var vault = try TestVault.withPeople()
        let role = EntryPayload.role(vault.id("dan"), .writer)
        #expect(try vault.rejection(role, by: "cid") == .notPermitted)
        #expect(try vault.rejection(role, by: "dan") == .notPermitted)
        #expect(try vault.rejection(role, by: "ben") == nil)
        let forger = try MemberSigner(vault.id("ben"), of: vault.log.vault, vault.people["cid"].known.keys)
        let forged = try EntryWriter.entry(role, by: forger, after: vault.log, at: time(vault.now))
        #expect(vault.rejection(forged) == .wrongSignature)
        let stranger = try MemberSigner(.random(), of: vault.log.vault, .generate())
        let strange = try EntryWriter.entry(role, by: stranger, after: vault.log, at: time(vault.now))
        #expect(vault.rejection(strange) == .unknownAuthor)
        try vault.remove(["ben"], by: "ada")
        #expect(try vault.rejection(role, by: "ben") == .unknownAuthor)
        #expect(try vault.rejection(.leave, by: "ben") == .unknownAuthor)
    }

    // MARK: Invitations

    @Test func `an invitation is used, closed and expires`() throws {
        var vault = try TestVault()
        try vault.invite("twice", .writer, uses: 2)
        try vault.join("ben", by: "twice")
        #expect(vault.log.members[vault.id("ben")]?.role == .writer)
        #expect(vault.log.members[vault.id("ben")]?.invitation == vault.links["twice"].known.id)
        try vault.join("cid", by: "twice")
        #expect(vault.rejection(try vault.joining("twice", .generate())) == .closedInvitation)
        #expect(try vault.rejection(.revoke(vault.links["twice"].known.id), by: "ada") == .closedInvitation)
        try vault.invite("revoked", .reader)
        try vault.append(.revoke(vault.links["revoked"].known.id), by: "ada")
        #expect(vault.rejection(try vault.joining("revoked", .generate())) == .closedInvitation)
        #expect(try vault.rejection(.revoke(vault.links["revoked"].known.id), by: "ada") == .closedInvitation)
        try vault.invite("late", .reader, life: 100)
        vault.now += 100
        #expect(vault.rejection(try vault.joining("late", .generate())) == nil)
        vault.now += 1
        #expect(vault.rejection(try vault.joining("late", .generate())) == .expiredInvitation)
        #expect(try vault.rejection(.revoke(InvitationID.random()), by: "ada") == .closedInvitation)
    }

    @Test func `a backdated join is expired after later entries of two managers`() throws {
        var vault = try TestVault.withPeople()
        try vault.invite("late", .reader, life: 100)
        vault.now += 200
        try vault.append(.role(vault.id("dan"), .writer), by: "ada")
        try vault.append(.role(vault.id("dan"), .manager), by: "ben")
        vault.now -= 200
        #expect(vault.rejection(try vault.joining("late", .generate())) == .expiredInvitation)
    }

    @Test func `the wrong clock of a leaving or joining member expires nothing`() throws {
        var vault = try TestVault.withPeople()
        try vault.invite("open", .reader, uses: 2, life: 100)
        vault.now += 40_000_000_000
        try vault.append(.leave, by: "dan")
        vault.now -= 40_000_000_000
        #expect(vault.rejection(try vault.joining("open", .generate())) == nil)
    }

    @Test func `a joiner has the link`() throws {
        var vault = try TestVault()
        try vault.invite("one", .writer)
        let right = vault.links["one"].known
        let wrong = try InvitationSecrets(right.id, secret: SecureRandom.secureBytes(16), code: nil)
        let keys = try MemberPrivateKeys.generate()
        let entry = try EntryWriter.join(
            wrong, as: .random(), named: name("eve"), keys, NameKey(vault.key), after: vault.log, at: time(vault.now))
        #expect(vault.rejection(entry) == .wrongAdmission)
        // Exchanged keys under another's admission.
        guard case .join(let join) = try vault.joining("one", keys).payload else { return }
        let other = try MemberPrivateKeys.generate()
        let stolen = Join(
            keys: other.publicKeys, invitation: join.invitation, name: join.name, admission: join.admission)
        let swapped = try EntryWriter.sign(entry.header, .join(stolen), with: ES256.SigningKey(other.signing))
        #expect(vault.rejection(swapped) == .wrongAdmission)
        let unsigned = try EntryWriter.sign(entry.header, .join(join), with: ES256.SigningKey(other.signing))
        #expect(vault.rejection(unsigned) == .wrongSignature)
    }

    @Test func `ids and keys never repeat`() throws {
        var vault = try TestVault.withPeople()
        try vault.invite("more", .writer, uses: 9)
        let cid = vault.people["cid"].known
        #expect(vault.rejection(try vault.joining("more", .generate(), as: cid.id)) == .repeatedID)
        let halves = try MemberPrivateKeys(signing: .generate(), agreement: cid.keys.signing)
        #expect(vault.rejection(try vault.joining("more", halves)) == .repeatedKey)
        let admission = try MemberPrivateKeys(
            signing: vault.links["more"].known.admissionKey, agreement: .generate())
        #expect(vault.rejection(try vault.joining("more", admission)) == .repeatedKey)
        let again = vault.terms(vault.links["more"].known, .reader)
        #expect(try vault.rejection(.invite(again), by: "ada") == .repeatedID)
        let renamed = InvitationTerms(
            id: .random(), admissionKey: again.admissionKey, role: .reader, expiry: again.expiry, uses: 1,
            hasCode: false
        ).known
        #expect(try vault.rejection(.invite(renamed), by: "ada") == .repeatedKey)
        try vault.append(.leave, by: "cid")
        #expect(vault.rejection(try vault.joining("more", .generate(), as: cid.id)) == .repeatedID)
        #expect(vault.rejection(try vault.joining("more", cid.keys)) == .repeatedKey)
        #expect(MemberPublicKeys(signing: cid.keys.signing.publicKey, agreement: cid.keys.signing.publicKey) == nil)
    }

    @Test func `invitations have bounds`() throws {
        var vault = try TestVault()
        let secrets = try InvitationSecrets(.random(), secret: SecureRandom.secureBytes(16), code: nil)
        #expect(try vault.rejection(.invite(vault.terms(secrets, .reader, life: 0)), by: "ada") == .wrongExpiry)
        let month = LogBounds.invitationLife
        #expect(try vault.rejection(.invite(vault.terms(secrets, .reader, life: month)), by: "ada") == nil)
        #expect(try vault.rejection(.invite(vault.terms(secrets, .reader, life: month + 1)), by: "ada") == .wrongExpiry)
        for uses in [0, 33] as [UInt16] {
            #expect(
                InvitationTerms(
                    id: .random(), admissionKey: secrets.admissionKey.publicKey, role: .reader, expiry: time(0),
                    uses: uses, hasCode: false) == nil)
        }
        for index in 0..<64 { try vault.invite("\(index)", .reader, life: index == 0 ? 10 : 1_000) }
        #expect(try vault.rejection(.invite(vault.terms(secrets, .reader)), by: "ada") == .tooManyInvitations)
        // An expired one counts until it is closed, because one manager's time bears nothing out.
        vault.now += 11
        #expect(try vault.rejection(.invite(vault.terms(secrets, .reader)), by: "ada") == .tooManyInvitations)
        try vault.append(.revoke(vault.links["0"].known.id), by: "ada")
        #expect(try vault.rejection(.invite(vault.terms(secrets, .reader)), by: "ada") == nil)
    }

    @Test func `changes close invitations`() throws {
        func open(_ change: (inout TestVault) throws -> Void) throws -> Set<String> {
            var vault = try TestVault.withPeople()
            try vault.append(.role(vault.id("cid"), .manager), by: "ada")
            try vault.invite("family", .manager, uses: 5)
            try vault.join("eve", by: "family")
            try vault.invite("ada's", .reader)
            try vault.invite("cid's", .reader, by: "cid")
            try vault.invite("eve's", .reader, by: "eve")
            try change(&vault)
            let ids = Set(vault.log.openInvitations.map(\.terms.id))
            return Set(vault.links.filter { ids.contains($0.value.id) }.keys)
        }
        #expect(try open { _ in } == ["family", "ada's", "cid's", "eve's"])
        #expect(try open { try $0.rotate(by: "ben") } == [])
        #expect(try open { try $0.remove(["dan"], by: "ben") } == [])
        #expect(try open { try $0.append(.role($0.id("eve"), .writer), by: "ben") } == [])
        #expect(try open { try $0.append(.role($0.id("dan"), .writer), by: "ben") }.count == 4)
        #expect(try open { try $0.append(.leave, by: "dan") }.count == 4)
        #expect(try open { try $0.append(.leave, by: "cid") } == ["family", "ada's", "eve's"])
        #expect(try open { try $0.append(.leave, by: "eve") } == ["ada's", "cid's"])
        #expect(try open { try $0.rekey("eve") } == ["ada's", "cid's"])
    }

    // MARK: Roles, removals and generations

    @Test func `roles change, and not to themselves`() throws {
        var vault = try TestVault.withPeople()
        #expect(try vault.rejection(.role(vault.id("dan"), .reader), by: "ada") == .unchangedRole)
        #expect(try vault.rejection(.role(.random(), .reader), by: "ada") == .unknownMember)
        try vault.append(.role(vault.id("dan"), .manager), by: "ben")
        try vault.append(.role(vault.id("ben"), .reader), by: "ben")
        #expect(try vault.rejection(.role(vault.id("dan"), .reader), by: "ben") == .notPermitted)
        try vault.remove(["ben"], by: "dan")
        #expect(try vault.rejection(.role(vault.id("ben"), .writer), by: "dan") == .unknownMember)
    }

    @Test func `removals name others, and a new generation`() throws {
        var vault = try TestVault.withPeople()
        let key = GenerationKey.random()
        #expect(try vault.rejection(vault.removal(["ben"], key), by: "ben") == .ownRemoval)
        #expect(try vault.rejection(.remove(vault.next(key), [.random()]), by: "ben") == .unknownMember)
        #expect(
            try vault.rejection(.remove(Generation(key, number: .first), [vault.id("dan")]), by: "ben")
                == .wrongGeneration)
        #expect(try vault.rejection(.rotate(vault.next(vault.key)), by: "ben") == .wrongGeneration)
        let skipped = Generation(key, number: GenerationNumber(3).known)
        #expect(try vault.rejection(.rotate(skipped), by: "ben") == .wrongGeneration)
        try vault.remove(["cid", "dan"], by: "ben")
        #expect(Set(vault.log.presentMembers.map(\.id)) == [vault.id("ada"), vault.id("ben")])
        #expect(vault.log.generations.map(\.number.value) == [1, 2])
        let removal = vault.log.head.number
        #expect(vault.log.generation(at: removal).number.value == 2)
        #expect(vault.log.generation(at: EntryNumber(removal.value - 1).known).number.value == 1)
        #expect(try vault.rejection(.rotate(vault.next(vault.keys[0])), by: "ben") == .wrongGeneration)
    }

    @Test func `a list of removed members is ascending and not empty`() throws {
        let vault = try TestVault.withPeople()
        let key = GenerationKey.random()
        let ids = [vault.id("cid"), vault.id("dan")].sorted { $0.bytes.lexicographicallyPrecedes($1.bytes) }
        for wrong in [[], ids.reversed(), [ids[0], ids[0]]] {
            let entry = try vault.entry(.remove(vault.next(key), wrong), by: "ada")
            #expect(throws: Entry.Malformation.malformed) { try Entry(entry.bytes) }
        }
    }

    @Test func `a leave and a change of keys ask for a rotation`() throws {
        var vault = try TestVault.withPeople()
        try vault.append(.leave, by: "dan")
        #expect(vault.log.isRotationDue)
        try vault.rotate(by: "ben")
        #expect(!vault.log.isRotationDue)
        try vault.rekey("cid")
        #expect(vault.log.isRotationDue)
        try vault.remove(["cid"], by: "ben")
        #expect(!vault.log.isRotationDue)
    }

    // MARK: Owner

    @Test func `the owner is protected until the vault is handed over`() throws {
        var vault = try TestVault.withPeople()
        let ada = vault.id("ada")
        let key = GenerationKey.random()
        #expect(try vault.rejection(.leave, by: "ada") == .ownerProtected)
        #expect(try vault.rejection(.role(ada, .writer), by: "ada") == .ownerProtected)
        #expect(try vault.rejection(.role(ada, .writer), by: "ben") == .ownerProtected)
        #expect(try vault.rejection(vault.removal(["ada"], key), by: "ben") == .ownerProtected)
        #expect(try vault.rejection(.offer(vault.id("cid")), by: "ada") == .unknownMember)
        #expect(try vault.rejection(.offer(ada), by: "ada") == .unknownMember)
        #expect(try vault.rejection(.offer(vault.id("ben")), by: "ben") == .notPermitted)
        #expect(try vault.rejection(.offer(nil), by: "ada") == .noOffer)
        try vault.append(.offer(vault.id("ben")), by: "ada")
        let offer = vault.log.head.number
        #expect(try vault.rejection(.accept(offer), by: "ada") == .noOffer)
        #expect(try vault.rejection(.accept(.first), by: "ben") == .noOffer)
        try vault.append(.accept(offer), by: "ben")
        #expect(vault.log.owner == vault.id("ben") && vault.log.offer == nil)
        #expect(try vault.rejection(.accept(offer), by: "ben") == .noOffer)
        #expect(try vault.rejection(.leave, by: "ben") == .ownerProtected)
        try vault.remove(["ada"], by: "ben")
        #expect(vault.log.presentMembers.count == 3)
    }

    @Test func `an offer ends with its withdrawal and with the rights of its receiver`() throws {
        func accepts(_ change: (inout TestVault) throws -> Void) throws -> EntryRejection? {
            var vault = try TestVault.withPeople()
            try vault.append(.role(vault.id("cid"), .manager), by: "ada")
            try vault.append(.offer(vault.id("ben")), by: "ada")
            let offer = vault.log.head.number
            try change(&vault)
            return try vault.rejection(.accept(offer), by: "ben")
        }
        #expect(try accepts { _ in } == nil)
        #expect(try accepts { try $0.append(.offer(nil), by: "ada") } == .noOffer)
        #expect(try accepts { try $0.append(.offer($0.id("cid")), by: "ada") } == .noOffer)
        #expect(try accepts { try $0.remove(["ben"], by: "cid") } == .unknownAuthor)
        #expect(try accepts { try $0.append(.role($0.id("ben"), .writer), by: "cid") } == .notPermitted)
        #expect(
            try accepts {
                try $0.append(.role($0.id("ben"), .writer), by: "cid")
                try $0.append(.role($0.id("ben"), .manager), by: "cid")
            } == .noOffer)
    }

    // MARK: Keys and seals

    @Test func `a member changes its keys`() throws {
        var vault = try TestVault.withPeople()
        let old = vault.people["ben"].known.keys
        let other = try MemberPrivateKeys.generate()
        let entry = try EntryWriter.rekey(
            to: other, by: vault.signer("ben"), after: vault.log, at: time(vault.now))
        guard case .rekey(let rekey) = entry.payload else { return }
        // The possession of another key.
        let stolen = Rekey(keys: try MemberPrivateKeys.generate().publicKeys, possession: rekey.possession)
        #expect(try vault.rejection(.rekey(stolen), by: "ben") == .wrongPossession)
        let repeated = try EntryWriter.rekey(
            to: vault.people["cid"].known.keys, by: vault.signer("ben"), after: vault.log, at: time(vault.now))
        #expect(vault.rejection(repeated) == .repeatedKey)
        try vault.rekey("ben")
        #expect(vault.log.members[vault.id("ben")]?.keys == vault.people["ben"].known.keys.publicKeys)
        #expect(vault.log.isUsed(old.publicKeys) && !vault.log.isUsed(other.publicKeys))
        #expect(try vault.rejection(.role(vault.id("dan"), .writer), by: "ben") == nil)
        let thief = try MemberSigner(vault.id("ben"), of: vault.log.vault, old)
        let theft = try EntryWriter.entry(
            .role(vault.id("dan"), .writer), by: thief, after: vault.log, at: time(vault.now))
        #expect(vault.rejection(theft) == .wrongSignature)
        for _ in 1..<LogBounds.rekeys { try vault.rekey("ben") }
        let last = try EntryWriter.rekey(
            to: .generate(), by: vault.signer("ben"), after: vault.log, at: time(vault.now))
        #expect(vault.rejection(last) == .tooManyKeys)
    }

    @Test func `writers that were cut off are sealed`() throws {
        var vault = try TestVault.withPeople()
        func seal(_ author: MemberID) -> EntryPayload { .seal(Seal(of: author, SealList([:]))) }
        let (ben, cid, dan) = (vault.id("ben"), vault.id("cid"), vault.id("dan"))
        #expect(try vault.rejection(seal(cid), by: "ada") == .nothingToSeal)
        try vault.append(.leave, by: "dan")
        #expect(vault.log.unsealed == [])
        #expect(try vault.rejection(seal(dan), by: "ada") == .nothingToSeal)
        try vault.append(.role(cid, .reader), by: "ada")
        try vault.append(.role(ben, .writer), by: "ada")
        #expect(vault.log.unsealed == [cid])
        try vault.append(.role(ben, .manager), by: "ada")
        try vault.append(seal(cid), by: "ada")
        #expect(vault.log.unsealed == [])
        // A manager can complete its list, and others have their own.
        try vault.append(seal(cid), by: "ada")
        try vault.append(seal(cid), by: "ben")
        #expect(vault.log.latestSeals.map(\.manager) == [vault.id("ada"), ben])
        try vault.rekey("ben")
        #expect(vault.log.unsealed == [ben])
        // A reader has nothing to seal.
        try vault.rekey("cid")
        #expect(vault.log.unsealed == [ben])
    }

    // MARK: Clock

    @Test func `the time of one manager alone ends no invitation`() throws {
        var vault = try TestVault.withPeople()
        try vault.invite("eve", .reader, life: 600)
        let start = vault.now
        // A date after the year 2099.
        vault.now = start + 2_300_000_000
        try vault.append(.offer(vault.id("ben")), by: "ada")
        vault.now = start + 500
        try vault.append(.role(vault.id("dan"), .writer), by: "ben")
        vault.now = start
        #expect(vault.rejection(try vault.joining("eve", .generate())) == nil)
        #expect(vault.log.openInvitations.count == 1)
        vault.now = start + 601
        try vault.append(.role(vault.id("dan"), .manager), by: "ben")
        #expect(vault.log.openInvitations.isEmpty)
        vault.now = start
        #expect(vault.rejection(try vault.joining("eve", .generate())) == .expiredInvitation)
    }
}
