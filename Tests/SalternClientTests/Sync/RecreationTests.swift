import SalternClient
import Testing

/// Items that are created again after their deletion, and what arrives late or never: each case once, step by step.
@Suite struct RecreationTests {
    /// Three devices of one person, which have all seen the one note that there is.
    private func withTrio(
        _ body: (_ phone: Vault, _ laptop: Vault, _ tablet: Vault, _ links: [LossyTransport], ItemID) async throws ->
            Void
    ) async throws {
        try await LiveServer.with { server in
            let person = try await Person("ada@example.org", server)
            let (phone, laptop, tablet) = (try person.vault(0), try person.vault(1), try person.vault(2))
            let id = try await notes(phone).put(Note(text: "first"))
            for vault in [phone, laptop, tablet] { try await vault.sync() }
            try await body(phone, laptop, tablet, person.devices.map(\.link), id)
        }
    }

    private func notes(_ vault: Vault) -> VaultCollection<Note> { vault.collection("notes") }

    private func texts(_ vault: Vault) async throws -> [String] {
        try await notes(vault).all().values.map(\.text).sorted()
    }

    /// The laptop makes two edits that the phone does not see, shows them to the tablet, and deletes the note.
    private func editAndDelete(_ laptop: Vault, _ tablet: Vault, _ id: ItemID) async throws {
        for text in ["second", "third"] {
            try await notes(laptop).put(Note(text: text), id)
            try await laptop.sync()
        }
        try await tablet.sync()
        try await notes(laptop).delete(id)
        try await laptop.sync()
    }

    @Test func `an edit that outlives a deletion is no old version to who knew later edits`() async throws {
        try await withTrio { phone, laptop, tablet, _, id in
            try await notes(phone).put(Note(text: "mine"), id)
            try await editAndDelete(laptop, tablet, id)
            for vault in [phone, tablet, laptop, phone] { try await vault.sync() }
            for vault in [phone, laptop, tablet] { #expect(try await notes(vault).all() == [id: Note(text: "mine")]) }
            #expect(try await phone.notices().map(\.kind) == [.keptAfterDeletion])
            #expect(try await tablet.notices().isEmpty)
            // And it goes on from there.
            try await notes(tablet).put(Note(text: "later"), id)
            try await tablet.sync()
            try await phone.sync()
            #expect(try await texts(phone) == ["later"])
            #expect(try await phone.notices().count == 1)
        }
    }

    @Test func `what comes back from the trash is no old version to who knew later edits`() async throws {
        try await withTrio { phone, laptop, tablet, _, id in
            try await editAndDelete(laptop, tablet, id)
            // The phone has seen the first edit only, and the deletion.
            try await phone.sync()
            try await notes(phone).restore(id)
            for vault in [phone, tablet, laptop] { try await vault.sync() }
            for vault in [phone, laptop, tablet] { #expect(try await notes(vault).all() == [id: Note(text: "first")]) }
            for vault in [phone, laptop, tablet] { #expect(try await vault.notices().isEmpty) }
        }
    }

    @Test func `what was restored before the second of two deletions is seen comes after both`() async throws {
        try await withTrio { phone, laptop, tablet, _, id in
            try await notes(phone).delete(id)
            try await phone.sync()
            // Not sent while the laptop brings it back too, goes on and deletes it.
            try await notes(phone).restore(id)
            try await laptop.sync()
            try await notes(laptop).restore(id)
            try await editAndDelete(laptop, tablet, id)
            for vault in [phone, tablet, laptop] { try await vault.sync() }
            for vault in [phone, laptop, tablet] { #expect(try await notes(vault).all() == [id: Note(text: "first")]) }
            for vault in [phone, laptop, tablet] { #expect(try await vault.notices().isEmpty) }
        }
    }

    @Test func `what was deleted before its creation was confirmed holds nothing up`() async throws {
        try await withTrio { phone, laptop, _, links, id in
            for fate in [LossyTransport.Fate.losesRequest, .losesReply] {
                let other = try await notes(phone).put(Note(text: "short-lived"))
                // The page is fetched; what is sent is lost.
                links[0].setFateFromSecond(fate)
                await #expect { try await phone.sync() } throws: {
                    if case VaultError.unavailable = $0 { true } else { false }
                }
                links[0].setFate { .passes }
                try await notes(phone).delete(other)
                try await notes(phone).put(Note(text: "\(fate)"), id)
                try await phone.sync()
                try await laptop.sync()
                #expect(try await phone.unsentCount() == 0)
                #expect(try await phone.notices().isEmpty)
                #expect(try await texts(laptop) == ["\(fate)"])
            }
        }
    }

    @Test func `a creation that arrives after everything else loses nothing`() async throws {
        try await withTrio { phone, laptop, tablet, links, _ in
            let other = try await notes(phone).put(Note(text: "late"))
            links[0].setFateFromSecond(.arrivesLate)
            await #expect { try await phone.sync() } throws: {
                if case VaultError.unavailable = $0 { true } else { false }
            }
            links[0].setFate { .passes }
            for vault in [phone, laptop] { try await vault.sync() }
            try await editAndDelete(laptop, tablet, other)
            // What was created, edited and deleted is created again.
            #expect(await links[0].deliverLate() > 0)
            for _ in 0..<3 { for vault in [tablet, phone, laptop] { try await vault.sync() } }
            // The tablet cannot know which of them is meant: both are there, and it says so.
            for vault in [phone, laptop, tablet] { #expect(try await texts(vault) == ["first", "late", "third"]) }
            let notice = try #require(try await tablet.notices().first)
            #expect(notice.kind == .rolledBack && notice.item == other)
            #expect(try await notes(tablet)[#require(notice.other)] == Note(text: "late"))
        }
    }

    @Test func `an own edit that arrives late is no conflict with what was made of it`() async throws {
        try await withTrio { phone, laptop, _, links, id in
            try await notes(phone).put(Note(text: "second"), id)
            links[0].setFateFromSecond(.arrivesLate)
            await #expect { try await phone.sync() } throws: {
                if case VaultError.unavailable = $0 { true } else { false }
            }
            links[0].setFate { .passes }
            try await notes(phone).put(Note(text: "third"), id)
            // It arrives between the page that is fetched and the batch that is sent.
            links[0].interrupt(
                LossyTransport.Interruption(exchange: 1, moment: .beforeRequest) {
                    await links[0].deliverLate()
                })
            try await phone.sync()
            try await laptop.sync()
            #expect(try await texts(laptop) == ["third"])
            #expect(try await phone.notices().isEmpty)
        }
    }

    @Test func `what others made of an edit whose reply was lost is no conflict with it`() async throws {
        try await withTrio { phone, laptop, _, links, id in
            try await notes(phone).put(Note(text: "second"), id)
            links[0].setFateFromSecond(.losesReply)
            await #expect { try await phone.sync() } throws: {
                if case VaultError.unavailable = $0 { true } else { false }
            }
            links[0].setFate { .passes }
            try await laptop.sync()
            try await notes(laptop).put(Note(text: "third"), id)
            try await laptop.sync()
            try await phone.sync()
            #expect(try await texts(phone) == ["third"])
            #expect(try await phone.notices().isEmpty)
        }
    }
}
