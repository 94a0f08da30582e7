import Testing

@testable import SalternClient

/// A device meets an older version than it knows: it sends the known one again and keeps the older one beside it, each once,
/// whatever becomes of requests and replies.
@Suite struct OlderVersionTests {
    private func notes(_ vault: Vault) -> VaultCollection<Note> { vault.collection("notes") }

    private func texts(_ vault: Vault) async throws -> [String] {
        try await notes(vault).all().values.map(\.text).sorted()
    }

    private func expectUnavailable(_ vault: Vault) async {
        await #expect { try await vault.sync() } throws: { if case VaultError.unavailable = $0 { true } else { false } }
    }

    private func withOlder(_ body: (RestoredPerson, ItemID) async throws -> Void) async throws {
        let person = try await RestoredPerson()
        try await body(person, begin(person))
    }

    /// The server has "late", whose creation came after everything else; laptop and tablet know "third".
    private func begin(_ person: RestoredPerson) async throws -> ItemID {
        let (phone, laptop, tablet) = (try person.vault(0), try person.vault(1), try person.vault(2))
        let id = try await notes(phone).put(Note(text: "late"))
        person.links[0].setFateFromSecond(.arrivesLate)
        await expectUnavailable(phone)
        person.links[0].setFate { .passes }
        for vault in [phone, laptop] { try await vault.sync() }
        for text in ["second", "third"] {
            try await notes(laptop).put(Note(text: text), id)
            try await laptop.sync()
        }
        for vault in [tablet, phone] { try await vault.sync() }
        try await notes(phone).delete(id)
        try await phone.sync()
        #expect(await person.links[0].deliverLate() > 0)
        return id
    }

    private func expect(_ expected: [String], _ person: RestoredPerson) async throws {
        for vault in person.vaults.compactMap(\.self) {
            let found = try await texts(vault)
            #expect(found == expected)
            #expect(try await vault.unsentCount() == 0)
        }
    }

    @Test(arguments: [LossyTransport.Fate.losesReply, .losesRequest, .arrivesLate], [false, true])
    func `what is sent again is there once`(fate: LossyTransport.Fate, startsAgain: Bool) async throws {
        try await withOlder { person, _ in
            person.links[2].setFateFromSecond(fate)
            await expectUnavailable(try person.vault(2))
            person.links[2].setFate { .passes }
            if startsAgain { try await person.startAgain(2) }
            await person.links[2].deliverLate()
            try await person.converge()
            try await expect(["late", "third"], person)
        }
    }

    @Test func `so it is when others have gone on from it before its reply comes`() async throws {
        try await withOlder { person, id in
            person.links[2].setFateFromSecond(.losesReply)
            await expectUnavailable(try person.vault(2))
            person.links[2].setFate { .passes }
            let phone = try person.vault(0)
            try await phone.sync()
            let copy = try #require(try await notes(phone).all().first { $0.value.text == "late" }?.key)
            try await notes(phone).put(Note(text: "late, edited"), copy)
            try await notes(phone).put(Note(text: "fourth"), id)
            try await phone.sync()
            try await person.converge()
            try await expect(["fourth", "late, edited"], person)
        }
    }

    @Test(arguments: [false, true])
    func `so it is when the older one is edited before it arrives`(startsAgain: Bool) async throws {
        try await withOlder { person, id in
            person.links[2].setFateFromSecond(.losesRequest)
            await expectUnavailable(try person.vault(2))
            person.links[2].setFate { .passes }
            let phone = try person.vault(0)
            try await phone.sync()
            try await notes(phone).put(Note(text: "late, edited"), id)
            try await phone.sync()
            if startsAgain { try await person.startAgain(2) }
            try await person.vault(2).sync()
            try await person.converge()
            try await expect(["late, edited", "third"], person)
        }
    }

    @Test(arguments: [false, true])
    func `and when two devices meet it`(loses: Bool) async throws {
        try await withOlder { person, _ in
            for index in [1, 2] {
                if loses { person.links[index].setFateFromSecond(.losesReply) }
                _ = try? await person.vault(index).sync()
                person.links[index].setFate { .passes }
            }
            try await person.converge()
            try await expect(["late", "third"], person)
        }
    }
}
