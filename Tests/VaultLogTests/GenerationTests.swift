import Cryptography
import Testing

@testable import VaultLog

struct GenerationTests {
    private let vault: VaultID = id(1)
    private let member: MemberID = id(2)
    private let key = GenerationKey.random()
    private let second = GenerationNumber(2).known

    @Test func `a generation describes one key`() {
        let generation = Generation(key, number: second)
        #expect(generation.describes(key))
        #expect(!generation.describes(.random()))
        // The commitment of another number.
        #expect(Generation(key, number: .first).commitment != generation.commitment)
        #expect(Generation(key, number: .first).keyID == generation.keyID)
        #expect(GenerationKey(SecureRandom.secureBytes(31)) == nil)
        #expect(NameKey(key) != NameKey(.random()) && key.chunkIDKey != key.bytes)
    }

    @Test func `a box opens for its member, generation and vault`() throws {
        let keys = try MemberPrivateKeys.generate()
        let generation = Generation(key, number: second)
        let agreement = keys.publicKeys.agreement
        let box = try GenerationBox.seal(key, second, for: member, agreement, of: vault)
        #expect(box.count == GenerationBox.byteCount && GenerationBox.byteCount == 113)
        #expect(try GenerationBox.open(box, generation, for: member, keys, of: vault) == key)
        #expect(throws: GenerationBox.Failure.notAuthentic) {
            try GenerationBox.open(box, generation, for: id(3), keys, of: vault)
        }
        #expect(throws: GenerationBox.Failure.notAuthentic) {
            try GenerationBox.open(box, generation, for: member, keys, of: id(3))
        }
        #expect(throws: GenerationBox.Failure.notAuthentic) {
            try GenerationBox.open(box, Generation(key, number: .first), for: member, keys, of: vault)
        }
        #expect(throws: GenerationBox.Failure.notAuthentic) {
            try GenerationBox.open(box, generation, for: member, .generate(), of: vault)
        }
        #expect(throws: GenerationBox.Failure.wrongKey) {
            try GenerationBox.open(box, Generation(.random(), number: second), for: member, keys, of: vault)
        }
        for index in stride(from: 0, to: box.count, by: 7) {
            var changed = box
            changed[index] ^= 1
            #expect(throws: GenerationBox.Failure.notAuthentic) {
                try GenerationBox.open(changed, generation, for: member, keys, of: vault)
            }
        }
        #expect(throws: GenerationBox.Failure.notAuthentic) {
            try GenerationBox.open(box + [0], generation, for: member, keys, of: vault)
        }
    }

    @Test func `the current key opens all earlier ones`() throws {
        var vault = try TestVault.withPeople()
        var sealed: [GenerationNumber: [UInt8]] = [:]
        for _ in 0..<4 {
            let previous = vault.key
            try vault.rotate(by: "ben")
            let number = vault.log.currentGeneration.number
            sealed[number] = try vault.key.sealPrevious(previous, of: vault.log.vault, number: number)
            #expect(sealed[number]?.count == GenerationKey.sealedPreviousByteCount)
        }
        var keys = GenerationKeys()
        let current = vault.log.currentGeneration.number
        #expect(throws: GenerationKeys.Failure.wrongKey(current)) { try keys.insert(.random(), current, vault.log) }
        let unknown = GenerationNumber(9).known
        #expect(throws: GenerationKeys.Failure.unknownGeneration(unknown)) {
            try keys.insert(vault.key, unknown, vault.log)
        }
        try keys.insert(vault.key, current, vault.log)
        var whole = keys
        #expect(whole.openPrevious(sealed, vault.log) == [])
        #expect(whole.numbers.map(\.value) == [1, 2, 3, 4, 5])
        for (number, key) in zip(whole.numbers, vault.keys) { #expect(whole[number] == key) }
        #expect(whole.key(vault.keys[2].id) == vault.keys[2])
        // A wrong or missing one is reported, and those before it are out of reach.
        let third = GenerationNumber(3).known
        sealed[third] = try vault.keys[2].sealPrevious(.random(), of: vault.log.vault, number: third)
        #expect(keys.openPrevious(sealed, vault.log).map(\.value) == [2, 3])
        #expect(keys.numbers.map(\.value) == [3, 4, 5])
        sealed[third] = try vault.keys[2].sealPrevious(vault.keys[1], of: id(7), number: third)
        #expect(keys.openPrevious(sealed, vault.log).map(\.value) == [2, 3])
    }

    @Test func `a drawn key has an id of its own`() throws {
        let vault = try TestVault()
        #expect(GenerationKey.random(for: vault.log).id != vault.key.id)
        #expect(vault.log.generation(withKey: vault.key.id)?.number == .first)
    }

    @Test func `names are sealed for members`() throws {
        let nameKey = NameKey(key)
        for text in ["A", "Ada Łovelace", String(repeating: "é", count: 32)] {
            let sealed = try SealedName(name(text), of: member, nameKey)
            #expect(sealed.bytes.count == 93)
            #expect(sealed.open(of: member, nameKey) == name(text))
            #expect(sealed.open(of: id(3), nameKey) == nil)
            #expect(sealed.open(of: member, NameKey(.random())) == nil)
        }
    }

    @Test(arguments: [
        "", String(repeating: "x", count: 65), "a\nb", "a\u{0}", "\u{202E}evil", "a\u{200B}b", "a\u{2028}b", "\u{E000}",
    ])
    func `names do not hide characters`(_ text: String) { #expect(MemberName(text) == nil) }

    /// U+0378 is unassigned: a stand-in for a character of a later version of Unicode.
    @Test func `a name with unknown characters is shown, and not made`() throws {
        #expect(MemberName("a\u{378}") == nil)
        let bytes = Array("a\u{378}".utf8)
        let padded = [UInt8(bytes.count)] + bytes + [UInt8](repeating: 0, count: 64 - bytes.count)
        #expect(MemberName(padded: padded[...])?.text == "a?")
        let hidden = Array("a\u{202E}".utf8)
        let wrong = [UInt8(hidden.count)] + hidden + [UInt8](repeating: 0, count: 64 - hidden.count)
        #expect(MemberName(padded: wrong[...]) == nil)
    }

    @Test func `a padded name has one form`() {
        let padded = name("ab").padded
        #expect(padded.count == 65 && MemberName(padded: padded[...]) == name("ab"))
        for (index, byte) in [(0, 66), (0, 3), (1, 0xFF), (64, 1)] as [(Int, UInt8)] {
            var changed = padded
            changed[index] = byte
            #expect(MemberName(padded: changed[...]) == nil)
        }
        #expect(MemberName(padded: padded.dropLast()) == nil)
        // Canonically equivalent, and not equal.
        #expect(name("é") != name("e\u{301}"))
    }
}
