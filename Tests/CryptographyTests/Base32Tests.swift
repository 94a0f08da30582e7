import Cryptography
import Testing

@Suite struct Base32Tests {
    /// RFC 4648 section 10.
    @Test(arguments: [
        ("", ""), ("f", "MY======"), ("fo", "MZXQ===="), ("foo", "MZXW6==="), ("foob", "MZXW6YQ="),
        ("fooba", "MZXW6YTB"), ("foobar", "MZXW6YTBOI======"),
    ])
    func `the vectors of RFC 4648 are encoded`(text: String, encoded: String) {
        #expect(Base32.encodeToString(text.utf8) == encoded)
        #expect(Base32.encodeToString(text.utf8, isPadded: false) == encoded.filter { $0 != "=" })
    }

    @Test func `every digit is used`() {
        #expect(Base32.encodeToString([0x00, 0x44, 0x32, 0x14, 0xC7]) == "ABCDEFGH")
        #expect(Base32.encodeToString([0xDE, 0x75, 0xFF, 0x9B, 0xDF]) == "3Z277G67")
        #expect(Set(Base32.alphabet).count == 32)
    }
}
