import Cryptography
import Testing

struct Base64URLTests {
    static let vectors: [(bytes: [UInt8], text: String)] = [
        ([], ""), (Array("f".utf8), "Zg"), (Array("fo".utf8), "Zm8"), (Array("foo".utf8), "Zm9v"),
        (Array("foob".utf8), "Zm9vYg"), ([0xFB, 0xFF, 0xBF], "-_-_"), ([0xFF], "_w"), ([0xFB, 0xF0], "-_A"),
    ]

    @Test(arguments: vectors)
    func `known bytes have known texts`(_ vector: (bytes: [UInt8], text: String)) throws {
        #expect(Base64URL.encode(vector.bytes) == Array(vector.text.utf8))
        #expect(Base64URL.encodeToString(vector.bytes) == vector.text)
        #expect(try Base64URL.decode(vector.text.utf8) == vector.bytes)
        #expect(try Base64URL.decodeSecure(vector.text.utf8) == SecureBytes(copying: vector.bytes))
    }

    @Test(arguments: ["Zg==", "Zm8=", "Zm9vYg==", "Zg=", "Z=", "Zm9="])
    func `padding is refused`(_ text: String) {
        #expect(throws: Base64.Failure.invalidCharacter) { try Base64URL.decode(text.utf8) }
    }

    @Test(arguments: ["Z", "Zm9vZ", "Zm9vZm9vZ"])
    func `a length that no bytes have is refused`(_ text: String) {
        #expect(throws: Base64.Failure.invalidLength) { try Base64URL.decode(text.utf8) }
    }

    @Test(arguments: ["Zh", "Zm9", "_x", "-_B"])
    func `bits beyond the last byte are refused`(_ text: String) {
        #expect(throws: Base64.Failure.nonZeroTrailingBits) { try Base64URL.decode(text.utf8) }
    }

    @Test(arguments: ["+/+/", "Zm 9", "Zm9\n", "Zm9\u{E9}"])
    func `a character outside the alphabet is refused`(_ text: String) {
        #expect(throws: (Base64.Failure).self) { try Base64URL.decode(text.utf8) }
    }
}
