import Cryptography
import Testing

struct HMACTests {
    struct Vector: CustomTestStringConvertible {
        let name: String
        let key: [UInt8]
        let message: [UInt8]
        let code: String
        var testDescription: String { name }
    }

    /// RFC 4231 section 4; case 5 is the truncated one, given there as 128 bits.
    static let vectors = [
        Vector(
            name: "case 1", key: [UInt8](repeating: 0x0B, count: 20), message: Array("Hi There".utf8),
            code: "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"),
        Vector(
            name: "case 2", key: Array("Jefe".utf8), message: Array("what do ya want for nothing?".utf8),
            code: "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"),
        Vector(
            name: "case 3", key: [UInt8](repeating: 0xAA, count: 20), message: [UInt8](repeating: 0xDD, count: 50),
            code: "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe"),
        Vector(
            name: "case 4", key: [UInt8](1...25), message: [UInt8](repeating: 0xCD, count: 50),
            code: "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b"),
        Vector(
            name: "case 5", key: [UInt8](repeating: 0x0C, count: 20), message: Array("Test With Truncation".utf8),
            code: "a3b6167473100ee06e0c796c2955552b"),
        Vector(
            name: "case 6", key: [UInt8](repeating: 0xAA, count: 131),
            message: Array("Test Using Larger Than Block-Size Key - Hash Key First".utf8),
            code: "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"),
        Vector(
            name: "case 7", key: [UInt8](repeating: 0xAA, count: 131),
            message: Array(
                ("This is a test using a larger than block-size key and a larger than block-size data. "
                    + "The key needs to be hashed before being used by the HMAC algorithm.").utf8),
            code: "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2"),
    ]

    @Test(arguments: vectors)
    func `RFC 4231 has the same codes`(_ vector: Vector) {
        let code = HMACSHA256.authenticationCode(for: vector.message, using: vector.key)
        #expect(Hex.encode(code.bytes.prefix(vector.code.count / 2)) == vector.code)
    }

    @Test func `one key authenticates many messages, also at the same time`() async {
        let key = HMACSHA256.Key(Self.vectors[1].key)
        let codes = await withTaskGroup(of: String.self) { group in
            for _ in 0..<200 {
                group.addTask { Hex.encode(key.authenticationCode(for: Self.vectors[1].message)) }
            }
            return await group.reduce(into: []) { $0.append($1) }
        }
        #expect(codes == [String](repeating: Self.vectors[1].code, count: 200))
    }

    @Test func `an empty key and an empty message have a code`() {
        #expect(
            Hex.encode(HMACSHA256.authenticationCode(for: [], using: []))
                == "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad")
    }

    /// RFC 2202 section 3.
    @Test func `RFC 2202 has the same SHA-1 codes`() {
        let first = HMACSHA1.authenticationCode(
            for: Array("Hi There".utf8), using: [UInt8](repeating: 0x0B, count: 20))
        #expect(Hex.encode(first) == "b617318655057264e28bc0b6fb378c8ef146be00")
        let second = HMACSHA1.authenticationCode(
            for: Array("what do ya want for nothing?".utf8), using: Array("Jefe".utf8))
        #expect(Hex.encode(second) == "effcdf6ae5eb2fa2d27416d5f184df9c259a7c79")
    }
}
