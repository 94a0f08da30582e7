import Cryptography
import Testing

struct HKDFTests {
    struct Vector: CustomTestStringConvertible {
        let name: String
        let key: String
        let salt: String
        let info: String
        let output: String
        var testDescription: String { name }
    }

    // RFC 5869, appendix A.
    static let vectors = [
        Vector(
            name: "test case 1", key: String(repeating: "0b", count: 22), salt: "000102030405060708090a0b0c",
            info: "f0f1f2f3f4f5f6f7f8f9",
            output: "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865"),
        Vector(
            name: "test case 3, without salt and info", key: String(repeating: "0b", count: 22), salt: "", info: "",
            output: "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d9d201395faa4b61a96c8"),
    ]

    @Test(arguments: vectors) func `derives what RFC 5869 says`(_ vector: Vector) throws {
        let key = HKDF.deriveKey(
            from: try #require(Hex.decode(vector.key)), salt: try #require(Hex.decode(vector.salt)),
            info: try #require(Hex.decode(vector.info)), byteCount: vector.output.count / 2)
        #expect(Hex.encode(key) == vector.output)
    }

    @Test func `another purpose is another key`() {
        let key = SecureRandom.secureBytes(32)
        #expect(HKDF.deriveKey(from: key, info: Array("a".utf8)) != HKDF.deriveKey(from: key, info: Array("b".utf8)))
    }
}
