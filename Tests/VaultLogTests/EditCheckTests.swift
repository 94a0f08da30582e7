import Cryptography
import Testing

@testable import VaultLog

struct EditCheckTests {
    private static let item: VaultItemID = id(9)

    private static func reason(_ check: () throws -> Void) -> EditRejection? {
        do {
            try check()
            return nil
        } catch {
            return error as? EditRejection
        }
    }

    /// Checks the body "salt", signed by a person at a head.
    private static func reason(
        _ vault: TestVault, _ body: SignedBody, generation: GenerationNumber? = nil, replacing: Head? = nil,
        isHeld: Bool = false, lists: [SealList] = []
    ) -> EditRejection? {
        reason {
            try vault.log.check(
                body, vault.statement("salt", item: item), generation ?? vault.log.currentGeneration.number,
                replacing: replacing, EditEvidence(isHeld: isHeld, lists: lists))
        }
    }

    private static func edit(_ vault: TestVault, by person: String, at head: Head? = nil) throws -> SignedBody {
        try vault.edit("salt", vault.statement("salt", item: item), by: person, at: head)
    }

    @Test func `writers and managers write, readers do not`() throws {
        let vault = try TestVault.withPeople()
        for writer in ["ada", "ben", "cid"] { #expect(Self.reason(vault, try Self.edit(vault, by: writer)) == nil) }
        #expect(Self.reason(vault, try Self.edit(vault, by: "dan")) == .notPermitted)
        var other = try TestVault.withPeople()
        try other.invite("eve", .writer)
        try other.join("eve", by: "eve")
        let signer = try MemberSigner(other.id("eve"), of: vault.log.vault, other.people["eve"].known.keys)
        let strange = try SignedBody(
            secret("salt"), vault.statement("salt", item: Self.item), by: signer, vault.log.head)
        #expect(Self.reason(vault, strange) == .unknownAuthor)
    }

    @Test func `an edit comes back from its bytes`() throws {
        let vault = try TestVault.withPeople()
        let edit = try Self.edit(vault, by: "cid")
        #expect(edit.bytes.count == 120 + 4 && SignedBody.prefixByteCount == 120)
        let read = try #require(SignedBody(edit.bytes))
        #expect(read.author == edit.author && read.head == edit.head && read.signature == edit.signature)
        #expect(read.content == secret("salt"))
        #expect(Self.reason(vault, read) == nil)
        #expect(SignedBody(edit.bytes.slice(0..<119)) == nil)
        #expect(SignedBody(edit.bytes.slice(0..<120)) != nil)
    }

    @Test func `a signature covers content, title and place`() throws {
        let vault = try TestVault.withPeople()
        let title = vault.statement(
            "salt", title: "list", item: Self.item, number: 2, previous: EditHash(Array(0..<32)).known)
        let edit = try vault.edit("salt", title, by: "cid")
        func reason(_ statement: EditStatement) -> EditRejection? {
            Self.reason { try vault.log.check(edit, statement, .first) }
        }
        #expect(reason(title) == nil)
        let previous = title.previous
        for wrong in [
            vault.statement("sand", title: "list", item: Self.item, number: 2, previous: previous),
            vault.statement("salt", title: "lost", item: Self.item, number: 2, previous: previous),
            vault.statement("salt", item: Self.item, number: 2, previous: previous),
            vault.statement("salt", title: "list", item: id(8), number: 2, previous: previous),
            vault.statement("salt", title: "list", item: Self.item, collection: "n", number: 2, previous: previous),
            vault.statement("salt", title: "list", item: Self.item, number: 3, previous: previous),
            vault.statement("salt", title: "list", item: Self.item, number: 2),
        ] {
            #expect(reason(wrong) == .wrongSignature)
            #expect(
                wrong.hash(vault.log.vault, edit.author, edit.head)
                    != title.hash(vault.log.vault, edit.author, edit.head))
        }
        // An absent title is no empty one.
        let empty = vault.statement("salt", title: "", item: Self.item)
        let absent = vault.statement("salt", item: Self.item)
        let signed = try vault.edit("salt", empty, by: "cid")
        #expect(Self.reason { try vault.log.check(signed, absent, .first) } == .wrongSignature)
        #expect(
            EditStatement(
                item: Self.item, collection: String(repeating: "x", count: 65_536), number: .first, previous: .none,
                title: nil, body: secret("")) == nil)
    }

    @Test func `an edit of another vault does not count`() throws {
        let vault = try TestVault.withPeople()
        let other = try MemberSigner(vault.id("cid"), of: .random(), vault.people["cid"].known.keys)
        let moved = try SignedBody(secret("salt"), vault.statement("salt", item: Self.item), by: other, vault.log.head)
        #expect(Self.reason(vault, moved) == .wrongSignature)
    }

    @Test func `a head is in the log, and not below that of the replaced version`() throws {
        var vault = try TestVault.withPeople()
        let early = vault.log.head
        var fork = vault
        try vault.rotate(by: "ada")
        try fork.rotate(by: "ben")
        #expect(Self.reason(vault, try Self.edit(vault, by: "cid", at: early)) == nil)
        let crossing = try Self.edit(fork, by: "cid")
        #expect(Self.reason(vault, crossing) == .fork)
        // It is signed, so it is the evidence of another history.
        #expect(vault.log.hasSigned(crossing, vault.statement("salt", item: Self.item)))
        #expect(!vault.log.hasSigned(crossing, vault.statement("sand", item: Self.item)))
        let later = Head(number: EntryNumber(4_096).known, hash: early.hash)
        #expect(Self.reason(vault, try Self.edit(vault, by: "cid", at: later)) == .unknownHead)
        let old = try Self.edit(vault, by: "cid", at: early)
        #expect(Self.reason(vault, old, replacing: vault.log.head) == .headWentBack)
        #expect(Self.reason(vault, old, replacing: early) == nil)
        #expect(Self.reason(vault, try Self.edit(vault, by: "cid"), generation: .first) == .oldGeneration)
        #expect(Self.reason(vault, old, generation: .first) == nil)
    }

    @Test func `a role counts at the head`() throws {
        var vault = try TestVault.withPeople()
        let before = vault.log.head
        try vault.append(.role(vault.id("dan"), .writer), by: "ada")
        #expect(Self.reason(vault, try Self.edit(vault, by: "dan", at: before)) == .notPermitted)
        #expect(Self.reason(vault, try Self.edit(vault, by: "dan")) == nil)
        #expect(Self.reason(vault, try Self.edit(vault, by: "dan", at: vault.entries[0].head)) == .unknownAuthor)
        try vault.append(.role(vault.id("dan"), .reader), by: "ada")
        #expect(Self.reason(vault, try Self.edit(vault, by: "dan")) == .notPermitted)
        try vault.append(.role(vault.id("dan"), .manager), by: "ada")
        // A writer again: its earlier edits count again, and those between do not.
        #expect(
            Self.reason(vault, try Self.edit(vault, by: "dan", at: vault.entries[vault.entries.count - 3].head)) == nil)
        #expect(
            Self.reason(vault, try Self.edit(vault, by: "dan", at: vault.entries[vault.entries.count - 2].head))
                == .notPermitted)
    }

    // MARK: Cut off authors

    private static func list(_ vault: TestVault, _ edit: SignedBody) -> SealList {
        let mark = vault.statement("salt", item: item).mark(vault.log.vault, edit)
        return SealList([item: mark, id(1): EditMark(Array(0..<32)).known])
    }

    @Test(arguments: ["remove", "lower", "leave", "rekey"])
    func `edits of a cut off author count when held, and then when listed`(_ way: String) throws {
        var vault = try TestVault.withPeople()
        let edit = try Self.edit(vault, by: "cid")
        #expect(vault.log.cut(of: edit.author, at: edit.head.number) == nil)
        switch way {
        case "remove": try vault.remove(["cid"], by: "ben")
        case "lower": try vault.append(.role(vault.id("cid"), .reader), by: "ben")
        case "leave": try vault.append(.leave, by: "cid")
        default: try vault.rekey("cid")
        }
        let cut = vault.log.head.number
        #expect(vault.log.cut(of: edit.author, at: edit.head.number) == cut && vault.log.unsealed == [edit.author])
        #expect(Self.reason(vault, edit) == .awaitsSeal)
        #expect(Self.reason(vault, edit, isHeld: true) == nil)
        let empty = SealList([:])
        try vault.append(.seal(Seal(of: edit.author, empty)), by: "ada")
        #expect(vault.log.unsealed.isEmpty)
        #expect(Self.reason(vault, edit, isHeld: true) == .listMissing)
        #expect(Self.reason(vault, edit, isHeld: true, lists: [empty]) == .notListed)
        // Another manager has accepted it.
        let list = Self.list(vault, edit)
        try vault.append(.seal(Seal(of: edit.author, list)), by: "ben")
        #expect(Self.reason(vault, edit, lists: [empty]) == .listMissing)
        #expect(Self.reason(vault, edit, lists: [empty, list]) == nil)
        #expect(Self.reason(vault, edit, lists: [list]) == nil)
        // At the new head, only the member with new keys writes.
        let late = try Self.edit(vault, by: "cid")
        let expected: EditRejection? =
            switch way {
            case "rekey": nil
            case "lower": .notPermitted
            default: .unknownAuthor
            }
        #expect(Self.reason(vault, late) == expected)
    }

    /// A manager's lists of one author are cumulative, so the server keeps one of them.
    @Test func `the latest list of a manager decides about all earlier cuts of an author`() throws {
        var vault = try TestVault.withPeople()
        let first = try Self.edit(vault, by: "cid")
        try vault.rekey("cid")
        let list = Self.list(vault, first)
        try vault.append(.seal(Seal(of: first.author, list)), by: "ada")
        let second = try Self.edit(vault, by: "cid")
        try vault.append(.role(vault.id("cid"), .reader), by: "ada")
        #expect(vault.log.unsealed == [first.author])
        // The seal is before the second cut: it does not decide about that.
        #expect(Self.reason(vault, first, lists: [list]) == nil)
        #expect(Self.reason(vault, second, lists: [list]) == .awaitsSeal)
        let later = Self.list(vault, second)
        try vault.append(.seal(Seal(of: first.author, later)), by: "ada")
        #expect(vault.log.latestSeals.map(\.seal.digest) == [later.digest] && vault.log.unsealed.isEmpty)
        #expect(Self.reason(vault, first, lists: [list, later]) == .notListed)
        #expect(Self.reason(vault, second, lists: [later]) == nil)
        // A list of another manager takes nothing away, and a further one replaces it.
        try vault.append(.seal(Seal(of: first.author, SealList([:]))), by: "ben")
        #expect(Self.reason(vault, second, lists: [later]) == nil)
        #expect(Self.reason(vault, first, lists: [later]) == .listMissing)
        try vault.append(.seal(Seal(of: first.author, list)), by: "ben")
        #expect(Self.reason(vault, first, lists: [list, later]) == nil)
        #expect(vault.log.seals(of: first.author).map(\.manager) == [vault.id("ada"), vault.id("ben")])
        // A list of another author has no effect.
        try vault.append(.leave, by: "dan")
        #expect(try vault.rejection(.seal(Seal(of: vault.id("dan"), list)), by: "ada") == .nothingToSeal)
    }

    @Test func `the replaced key stays cut off, and each edit has one deciding entry`() throws {
        var vault = try TestVault.withPeople()
        let thief = vault
        let old = try Self.edit(vault, by: "cid")
        try vault.rekey("cid")
        let rekeyed = vault.log.head.number
        let new = try Self.edit(vault, by: "cid")
        // The old key at a later head.
        let stolen = try Self.edit(thief, by: "cid", at: vault.log.head)
        #expect(Self.reason(vault, stolen) == .wrongSignature)
        try vault.append(.role(vault.id("cid"), .reader), by: "ada")
        let lowered = vault.log.head.number
        try vault.rekey("cid")
        #expect(vault.log.cut(of: old.author, at: old.head.number) == rekeyed)
        #expect(vault.log.cut(of: new.author, at: new.head.number) == lowered)
        try vault.append(.role(vault.id("cid"), .writer), by: "ada")
        #expect(vault.log.cut(of: old.author, at: old.head.number) == rekeyed)
        #expect(vault.log.cut(of: new.author, at: new.head.number) == lowered)
        #expect(Self.reason(vault, try Self.edit(vault, by: "cid")) == nil)
    }

    /// The server reads lists, and can guess contents. Their hashes are in no list.
    @Test func `a mark follows from the signature too`() throws {
        let vault = try TestVault.withPeople()
        let statement = vault.statement("salt", item: Self.item)
        let first = try Self.edit(vault, by: "cid")
        let second = try Self.edit(vault, by: "cid")
        #expect(statement.mark(vault.log.vault, first) != statement.mark(vault.log.vault, second))
        #expect(
            statement.hash(vault.log.vault, first.author, first.head)
                == statement.hash(vault.log.vault, second.author, second.head))
    }

    @Test func `a list has one form`() throws {
        let list = SealList([id(2): EditMark(Array(32..<64)).known, id(1): EditMark(Array(0..<32)).known])
        #expect(list.bytes.count == 96 && list.bytes.prefix(16).allSatisfy { $0 == 1 })
        #expect(SealList(list.bytes) == list)
        #expect(SealList([]) == SealList([:]))
        #expect(SealList(Array(list.bytes.dropLast())) == nil)
        #expect(SealList(Array(list.bytes[48...] + list.bytes[..<48])) == nil)
        #expect(SealList(Array(list.bytes[..<48] + list.bytes[..<48])) == nil)
        #expect(list.isList(of: Seal(of: id(1), list)) && !list.isList(of: Seal(of: id(1), SealList([:]))))
    }
}
