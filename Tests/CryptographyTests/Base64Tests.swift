import Cryptography
import Testing

struct Base64Tests {
    /// RFC 4648 section 10.
    static let vectors: [(bytes: String, text: String)] = [
        ("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="), ("fooba", "Zm9vYmE="),
        ("foobar", "Zm9vYmFy"),
    ]

    @Test(arguments: vectors)
    func `RFC 4648's examples encode and decode`(_ vector: (bytes: String, text: String)) throws {
        let bytes = Array(vector.bytes.utf8)
        #expect(Base64.encode(bytes) == Array(vector.text.utf8))
        #expect(Base64.encodeToString(bytes) == vector.text)
        #expect(try Base64.decode(vector.text.utf8) == bytes)
        #expect(try Base64.decodeSecure(vector.text.utf8) == SecureBytes(copying: bytes))
        #expect(try Base64.decodeLineWrapped(vector.text.utf8) == bytes)
    }

    @Test func `every byte in every position survives`() throws {
        for position in 0..<5 {
            for byte in UInt8.min...UInt8.max {
                var bytes: [UInt8] = [1, 2, 3, 4, 5]
                bytes[position] = byte
                #expect(try Base64.decode(Base64.encode(bytes)) == bytes)
            }
        }
    }

    @Test func `both characters beyond letters and digits are right`() throws {
        #expect(Base64.encodeToString([0xFB, 0xFF, 0xBF]) == "+/+/")
        #expect(try Base64.decode("+/+/".utf8) == [0xFB, 0xFF, 0xBF])
    }

    @Test func `appending keeps what is there`() {
        var text = Array("x:".utf8)
        Base64.encode(Array("foob".utf8), appendingTo: &text)
        Base64.encode([UInt8](), appendingTo: &text)
        #expect(String(decoding: text, as: UTF8.self) == "x:Zm9vYg==")
    }

    /// Every character outside the alphabet, in each position of a group that is neither first nor last.
    @Test func `a character outside the alphabet is refused in every position`() {
        let alphabet = Set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
        for byte in UInt8.min...UInt8.max where !alphabet.contains(byte) {
            for position in 4..<8 {
                var text = Array("Zm9vYmFyZm9v".utf8)
                text[position] = byte
                #expect(throws: Base64.Failure.invalidCharacter) { try Base64.decode(text) }
            }
        }
    }

    @Test(arguments: ["Z", "Zg", "Zg=", "Zm8", "Zm9vY", "Zm9vYg", "Zm9vYmE", "Zm9v=", "=", "=="])
    func `missing padding is refused`(_ text: String) {
        #expect(throws: Base64.Failure.invalidLength) { try Base64.decode(text.utf8) }
    }

    @Test(arguments: ["Zg==Zg==", "Zm8=Zm8=", "Z===", "====", "Zm9v====", "Zm=v", "Z=9v", "=m9v"])
    func `padding that is misplaced or superfluous is refused`(_ text: String) {
        #expect(throws: (Base64.Failure).self) { try Base64.decode(text.utf8) }
    }

    @Test(arguments: ["Zh==", "Zv==", "Zm9=", "Zm+=", "Zm9vYh==", "Zm9vYmF="])
    func `bits beyond the last byte are refused`(_ text: String) {
        #expect(throws: Base64.Failure.nonZeroTrailingBits) { try Base64.decode(text.utf8) }
    }

    @Test(arguments: [" Zm9v   ", "Zm9v\r\nYmFy\r\n", "Zm9v\n   ", "\tZm9v   "])
    func `white space is refused`(_ text: String) {
        #expect(throws: (Base64.Failure).self) { try Base64.decode(text.utf8) }
    }

    @Test func `the URL alphabet is refused`() {
        #expect(throws: Base64.Failure.invalidCharacter) { try Base64.decode("-_-_".utf8) }
    }

    /// Canonical means that decoding and encoding give the text back.
    @Test func `no two texts decode to the same bytes`() throws {
        var accepted = 0
        // Eight characters of the alphabet, of which `A`, `Q`, `g` and `w` end in four zero bits.
        let some = Array("AQgw=+/_Z9".utf8)
        for first in UInt8.min...UInt8.max {
            for second in some {
                for third in some {
                    for fourth in some {
                        let text = [first, second, third, fourth]
                        guard let bytes = try? Base64.decode(text) else { continue }
                        accepted += 1
                        #expect(Base64.encode(bytes) == text)
                    }
                }
            }
        }
        let withoutPadding = 64 * 8 * 8 * 8
        let withOne = 64 * 8 * 4
        let withTwo = 64 * 4
        #expect(accepted == withoutPadding + withOne + withTwo)
    }
}
