import Cryptography
import Testing

/// The forms of Foundation's `NSData.Base64EncodingOptions` and PEM, of MIME, and of the commands `openssl` and `base64`.
struct Base64LineWrappedTests {
    private static func wrapped(_ bytes: [UInt8], every length: Int = 64, with end: String = "\r\n") -> [UInt8] {
        let text = Base64.encode(bytes)
        var lines: [[UInt8]] = []
        for start in stride(from: 0, to: text.count, by: length) {
            lines.append(Array(text[start..<min(start + length, text.count)]))
        }
        return Array(lines.joined(separator: Array(end.utf8)))
    }

    /// Around one line, two lines and many.
    static let counts = [1, 46, 47, 48, 49, 50, 95, 96, 97, 144, 1_000, 100_000]

    @Test(arguments: counts + [56, 57, 58, 113, 114, 115, 116])
    func `wrapped text decodes, with a break at its end or none`(_ count: Int) throws {
        let bytes = SecureRandom.bytes(count)
        for (length, end) in [(64, "\r\n"), (64, "\n"), (76, "\r\n"), (76, "\n")] {
            let text = Self.wrapped(bytes, every: length, with: end)
            #expect(try Base64.decodeLineWrapped(text) == bytes)
            #expect(try Base64.decodeLineWrapped(text + Array(end.utf8)) == bytes)
        }
    }

    @Test func `lines of two lengths or with two kinds of breaks are refused`() {
        let bytes = SecureRandom.bytes(300)
        for (length, end) in [(64, "\n"), (76, "\r\n"), (76, "\n")] {
            var text = Self.wrapped(SecureRandom.bytes(48), with: "\r\n") + Array("\r\n".utf8)
            text += Self.wrapped(bytes, every: length, with: end)
            #expect(throws: (Base64.Failure).self) { try Base64.decodeLineWrapped(text) }
        }
    }

    @Test(arguments: counts)
    func `a final line break is allowed`(_ count: Int) throws {
        let bytes = SecureRandom.bytes(count)
        #expect(try Base64.decodeLineWrapped(Self.wrapped(bytes) + Array("\r\n".utf8)) == bytes)
    }

    @Test(arguments: counts)
    func `text on a single line decodes`(_ count: Int) throws {
        let bytes = SecureRandom.bytes(count)
        #expect(try Base64.decodeLineWrapped(Base64.encode(bytes)) == bytes)
    }

    @Test(arguments: [60, 63, 65, 68, 72, 75, 77, 80])
    func `lines of another length are refused`(_ length: Int) {
        #expect(throws: (Base64.Failure).self) {
            try Base64.decodeLineWrapped(Self.wrapped(SecureRandom.bytes(200), every: length))
        }
    }

    @Test(arguments: ["\r", "\n\r", "\n\n", "\r\n\r\n", " \r\n", "\r\n ", " \n"])
    func `another line break is refused`(_ end: String) {
        #expect(throws: (Base64.Failure).self) {
            try Base64.decodeLineWrapped(Self.wrapped(SecureRandom.bytes(200), with: end))
        }
    }

    @Test(arguments: ["\r\n\r\n", "\n\n", "\r", " ", "\r\n "])
    func `anything but one line break at the end is refused`(_ end: String) {
        for count in [3, 48, 96, 100] {
            let text = Self.wrapped(SecureRandom.bytes(count)) + Array(end.utf8)
            #expect(throws: (Base64.Failure).self) { try Base64.decodeLineWrapped(text) }
        }
    }

    @Test func `a line break at the start or alone is refused`() {
        for text in ["\r\n", "\r\nZm9v", "\r\n\r\n", "\r", "\n", "\nZm9v", "\n\n"] {
            #expect(throws: (Base64.Failure).self) { try Base64.decodeLineWrapped(text.utf8) }
        }
    }

    @Test func `a missing or a misplaced break in the middle is refused`() {
        let text = Self.wrapped(SecureRandom.bytes(48 * 4))
        for line in 1..<3 {
            var joined = text
            joined.removeSubrange(line * 66 + 64..<line * 66 + 66)
            #expect(throws: (Base64.Failure).self) { try Base64.decodeLineWrapped(joined) }
            var swapped = text
            swapped.swapAt(line * 66 + 64, line * 66 + 65)
            #expect(throws: Base64.Failure.invalidLineBreak) { try Base64.decodeLineWrapped(swapped) }
        }
    }

    @Test func `padding inside wrapped text is refused`() {
        var text = Self.wrapped(SecureRandom.bytes(100))
        text[63] = UInt8(ascii: "=")
        #expect(throws: Base64.Failure.invalidCharacter) { try Base64.decodeLineWrapped(text) }
    }
}
