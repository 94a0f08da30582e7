import Cryptography
import Testing

/// FIPS 180-4 example values, as NIST publishes them.
struct SHA256Tests {
    static let vectors: [(message: [UInt8], digest: String)] = [
        ([], "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
        (Array("abc".utf8), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
        (
            Array("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq".utf8),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
        ),
        (
            [UInt8](repeating: UInt8(ascii: "a"), count: 1_000_000),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"
        ),
    ]

    @Test(arguments: vectors)
    func `NIST's messages have NIST's digests`(_ vector: (message: [UInt8], digest: String)) {
        #expect(Hex.encode(SHA256.hash(vector.message)) == vector.digest)
    }

    @Test(arguments: vectors)
    func `a message in parts has the digest of the whole`(_ vector: (message: [UInt8], digest: String)) {
        var hasher = SHA256.Incremental()
        for start in stride(from: 0, to: vector.message.count, by: 4099) {
            hasher.update(vector.message[start..<min(start + 4099, vector.message.count)])
        }
        #expect(Hex.encode(hasher.finalize()) == vector.digest)
    }

    @Test func `hashing on many threads at once gives each its own digest`() async {
        let digests = await withTaskGroup(of: [SHA256Digest].self) { group in
            for _ in 0..<8 {
                group.addTask { (0..<2_000).map { SHA256.hash([UInt8(truncatingIfNeeded: $0)]) } }
            }
            return await group.reduce(into: []) { $0.append($1) }
        }
        let expected = (0..<2_000).map { value in
            var hasher = SHA256.Incremental()
            hasher.update([UInt8(truncatingIfNeeded: value)])
            return hasher.finalize()
        }
        #expect(digests.count == 8)
        #expect(digests.allSatisfy { $0 == expected })
    }

    @Test func `a digest keeps its bytes`() throws {
        let bytes = [UInt8](1...32)
        let digest = try #require(SHA256Digest(bytes))
        #expect(digest.bytes == bytes)
        #expect(digest.withUnsafeBytes { [UInt8]($0) } == bytes)
    }

    @Test(arguments: [0, 31, 33])
    func `a digest of another length is refused`(_ count: Int) {
        #expect(SHA256Digest([UInt8](repeating: 0, count: count)) == nil)
    }

    @Test(arguments: 0..<32)
    func `digests that differ in one byte are different`(_ position: Int) throws {
        let bytes = [UInt8](1...32)
        var other = bytes
        other[position] ^= 0x80
        #expect(try #require(SHA256Digest(bytes)) != #require(SHA256Digest(other)))
    }

    @Test func `a digest is not printed`() {
        let digest = SHA256.hash(Array("abc".utf8))
        for text in ["\(digest)", String(reflecting: digest), dumped(digest), dumped([digest])] {
            #expect(text.contains("redacted"))
            #expect(!text.contains("ba78"))
            #expect(!text.contains("\(digest.hashValue)"))
        }
        #expect(Mirror(reflecting: digest).children.isEmpty)
    }
}

/// What `dump` prints.
func dumped(_ value: some Any) -> String {
    var text = ""
    dump(value, to: &text)
    return text
}
