import Cryptography
import Testing

@testable import SalternClient

struct SealedBoxTests {
    private let key = DataKey.random()
    private let place = SealedBox.Place(.body, account: .random(), item: .random(), collection: "notes")

    @Test(arguments: [0, 1, 19, 20, 21, 979, 980, 981, 5_000, 100_000])
    func `what is sealed can be opened, with its edit`(_ count: Int) throws {
        let content = SecureRandom.secureBytes(count)
        let edit = SealedBox.Edit(number: 7, previous: SecureRandom.bytes(32))
        let sealed = try SealedBox.seal(content, edit, at: place, with: key)
        let opened = try SealedBox.open(sealed, at: place, with: key)
        #expect(opened.content == content)
        #expect(opened.edit == edit)
        #expect(sealed.count == SealedBox.sealedCount(count))
        #expect(try SealedBox.keyID(of: sealed) == key.id)
    }

    @Test func `nothing opens anywhere else`() throws {
        let sealed = try SealedBox.seal(Array("hello".utf8), .first, at: place, with: key)
        var others = Array(repeating: place, count: 4)
        others[0].part = .title
        others[1].account = .random()
        others[2].item = .random()
        others[3].collection = "photos"
        for other in others {
            #expect(throws: SealedBox.Failure.notAuthentic) { try SealedBox.open(sealed, at: other, with: key) }
        }
        #expect(throws: SealedBox.Failure.unknownKey) { try SealedBox.open(sealed, at: place, with: .random()) }
    }

    @Test func `every changed bit is noticed`() throws {
        let sealed = try SealedBox.seal(Array("hello".utf8), .first, at: place, with: key)
        for index in sealed.indices {
            for bit in 0..<8 {
                var changed = sealed
                changed[index] ^= 1 << UInt8(bit)
                #expect(throws: SealedBox.Failure.self) { try SealedBox.open(changed, at: place, with: key) }
            }
        }
        for count in 0..<sealed.count {
            #expect(throws: SealedBox.Failure.self) {
                try SealedBox.open(Array(sealed[..<count]), at: place, with: key)
            }
        }
    }

    /// A box of what its author made of the plaintext, sealed as it should be.
    private func box(_ plaintext: [UInt8]) throws -> [UInt8] {
        let sealed = try AESGCM.seal(
            plaintext, using: key.itemKey(place), authenticating: SealedBox.additionalData(place))
        return [1] + key.id.bytes + sealed
    }

    @Test func `only zeros hide a length, and as few as are due`() throws {
        let prefix = UInt32(5).bigEndianBytes + UInt64(1).bigEndianBytes + [UInt8](repeating: 0, count: 32)
        let honest = prefix + Array("hello".utf8) + [UInt8](repeating: 0, count: 64 - 49)
        #expect(try SealedBox.open(box(honest), at: place, with: key).content == SecureBytes(copying: "hello".utf8))
        // What is in the padding nobody sees, and says which of two boxes it is.
        for index in 49..<64 {
            var marked = honest
            marked[index] = 1
            #expect(throws: SealedBox.Failure.malformed) { try SealedBox.open(box(marked), at: place, with: key) }
        }
        #expect(throws: SealedBox.Failure.malformed) {
            try SealedBox.open(box(honest + [UInt8](repeating: 0, count: 64)), at: place, with: key)
        }
        var long = honest
        long[3] = 21
        #expect(throws: SealedBox.Failure.malformed) { try SealedBox.open(box(long), at: place, with: key) }
    }

    @Test func `lengths tell little`() {
        let counts = Set((0...1_000).map(SealedBox.sealedCount))
        #expect(counts.count <= 17)
        for count in [0, 63, 64, 65, 1_024, 1_025, 4_096, 4_097, 1 << 20, (1 << 20) + 1, 123_456_789] {
            let padded = Padding.paddedCount(count)
            #expect(padded >= count && Padding.isPadded(padded))
            #expect(Double(padded) <= max(64, Double(count) * 1.12) + 64)
        }
        #expect(!Padding.isPadded(0) && !Padding.isPadded(65) && !Padding.isPadded(4_096 + 64))
    }

    @Test func `an edit names the one before`() throws {
        let first = try SealedBox.seal([1], .first, at: place, with: key)
        let second = SealedBox.Edit.first.next(after: first)
        #expect(second.number == 2)
        #expect(second.previous == SHA256.hash(first).bytes)
    }
}
