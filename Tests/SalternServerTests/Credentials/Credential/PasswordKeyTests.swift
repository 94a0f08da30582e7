import Cryptography
import HTTPCore
import Testing

@testable import SalternServer

@Suite struct PasswordKeyTests {
    @Test(arguments: [
        (
            "f68a328661383beb161e7fc403de2d1507ee84d670d5064d508991a240853ded",
            "8b782e244226b07867b3f794c07b5686d613dfde498f125b777ff1e0c13b0021"
        ),
        (
            "de9e20b2f0243e88b94ba524b68c65b284fd1820259867ffe62d7c2429a17853",
            "7ddb5ccada4b07c5511497f2813c93adb026aa58c58d98800ce2fe29f1022c8c"
        ),
    ])
    func `the verifier is SHA-256 of the key`(_ key: String, _ verifier: String) throws {
        let bytes = try #require(Hex.decode(key))
        let passwordKey = try PasswordKey(json: .string(Base64.encodeToString(bytes)))
        #expect(Hex.encode(passwordKey.verifier.digest) == verifier)
    }

    @Test(
        arguments: [
            [], [UInt8](repeating: 1, count: 31), Array(1...33), [UInt8](repeating: 0, count: 32),
            [UInt8](repeating: 0xA7, count: 32), Array("correct horse battery staple 123".utf8),
            Array("hunter2".utf8) + [UInt8](repeating: 0, count: 25),
            [UInt8](repeating: 0, count: 24) + Array("Tr0ub4d&".utf8),
            Array("0123456789abcdef0123456789abcdef".utf8),
        ] as [[UInt8]])
    func `what no key derivation returns is refused`(_ bytes: [UInt8]) {
        #expect(throws: NotAStretchedKey.self) { try PasswordKey(SecureBytes(copying: bytes)) }
    }

    @Test(arguments: [
        "", "hunter2", "3q2+7w==", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
        "9oooZhOCO+sWHn/EA94tFQfuhNZw1QZNUImRokCFPe0", "9oooZhOCO+sWHn/EA94tFQfuhNZw1QZNUImRokCFPe1=",
        "9oooZhOCO-sWHn_EA94tFQfuhNZw1QZNUImRokCFPe0=", "9oooZhOCO+sWHn/EA94tFQ\nfuhNZw1QZNUImRokCFPe0=",
        "\u{A0}9oooZhOCO+sWHn/EA94tFQfuhNZw1QZNUImRokCFPe0=",
    ])
    func `a key arrives as canonical base64 only`(_ text: String) {
        #expect(throws: NotAStretchedKey.self) { try PasswordKey(json: .string(text)) }
    }

    @Test(arguments: ["\n", "\r\n", " ", "\t", "\n\n"])
    func `white space around a key does not count, as around all base64`(_ space: String) throws {
        let text = "9oooZhOCO+sWHn/EA94tFQfuhNZw1QZNUImRokCFPe0="
        let key = try PasswordKey(json: .string(text))
        for padded in [text + space, space + text, space + text + space] {
            #expect(try PasswordKey(json: .string(JSONString(padded))).verifier == key.verifier)
        }
    }

    @Test func `random keys are taken`() {
        for _ in 0..<10_000 {
            #expect(throws: Never.self) { try PasswordKey(SecureRandom.secureBytes(32)) }
        }
    }

    @Test func `a key prints nothing of itself`() throws {
        let key = try PasswordKey(SecureRandom.secureBytes(32))
        #expect("\(key)".contains("redacted"))
        #expect("\(key.verifier)".contains("redacted"))
    }
}
