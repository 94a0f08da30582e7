import Cryptography
import SalternTesting
import Testing

@testable import SalternServer

@Suite struct PlaintextEvidenceTests {
    @Test(arguments: [
        ("sixteen letters.", true), ("fifteen letters", false), ("Passwörter: größte", true),
        ("パスワードはここにあります", true), ("{\"user\":\"ada\",\"password\":\"x\"}", true),
        ("line one\r\nline two\tend\n", true), ("binary \u{0} inside the text", true),
        ("my password is \0 hunter2hunter2", true),
        ("-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2Vw", true), ("0123456789abcdef0123456789abcdef", true),
        ("VGhpcyBpcyBiYXNlNjQgb2YgYSBzZW50ZW5jZQ==", true), ("\u{FEFF}text with a mark", true),
        ("🔑🔑🔑🔑", true), ("🔑🔑🔑", false),
    ])
    func `text of 16 bytes or more is evidence`(_ text: String, _ isEvidence: Bool) {
        #expect(Self.isRefused(Array(text.utf8)) == isEvidence)
    }

    @Test(
        arguments: [
            [0xC0, 0x80], [0xED, 0xA0, 0x80], [0xF5, 0x80, 0x80, 0x80], [0xE2, 0x82], [0x80], [0xC2, 0x85],
            [0xF0, 0x8F, 0xBF, 0xBF],
            [0xF4, 0x90, 0x80, 0x80], [0xE0, 0x9F, 0xBF], [0x7F],
        ] as [[UInt8]])
    func `what is not valid text is none`(_ tail: [UInt8]) {
        let bytes = Array("otherwise a text ".utf8) + tail
        #expect(bytes.withUnsafeBytes { PlainText.isText($0) } == false)
    }

    @Test func `every valid character is text`() {
        for value in UInt32(0xA0)...0x10FFFF {
            guard let scalar = Unicode.Scalar(value) else { continue }
            let bytes = Array(String(scalar).utf8)
            if !bytes.withUnsafeBytes({ PlainText.isText($0) }) { Issue.record("U+\(String(value, radix: 16))") }
        }
    }

    @Test(arguments: files)
    func `a file is recognised by more than its first bytes`(_ name: String, _ head: [UInt8]) {
        let file = head + SecureRandom.bytes(200)
        #expect(Self.isRefused(file), "\(name)")
        // In place of the ciphertext, behind a real nonce and before a real tag, it is recognised too.
        #expect(Self.isRefused(SecureRandom.bytes(12) + file + SecureRandom.bytes(16), .aes256GCM), "\(name)")
        // The well-known first bytes alone are no evidence: ciphertext begins like that now and then.
        #expect(!Self.isRefused(Array(head.prefix(3)) + SecureRandom.bytes(200)), "\(name)")
    }

    static let files: [(String, [UInt8])] = [
        ("PDF", Array("%PDF-1.7\n%".utf8)), ("PNG", [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]),
        ("GIF", Array("GIF89a".utf8)), ("JFIF", [0xFF, 0xD8, 0xFF, 0xE0, 0x00, 0x10] + Array("JFIF\0".utf8)),
        ("Exif", [0xFF, 0xD8, 0xFF, 0xE1, 0x1C, 0x45] + Array("Exif\0\0".utf8)),
        ("JPEG", [0xFF, 0xD8, 0xFF, 0xDB, 0x00, 0x43, 0x00]),
        ("ZIP", [0x50, 0x4B, 0x03, 0x04, 0x14, 0x00, 0x08, 0x08, 0x08, 0x00]),
        ("SQLite", Array("SQLite format 3\0".utf8)), ("OLE", [0xD0, 0xCF, 0x11, 0xE0, 0xA1, 0xB1, 0x1A, 0xE1]),
        ("ELF", [0x7F, 0x45, 0x4C, 0x46, 2, 1, 1, 0]), ("Mach-O", [0xCF, 0xFA, 0xED, 0xFE, 0x0C, 0, 0, 1]),
        ("universal binary", [0xCA, 0xFE, 0xBA, 0xBE, 0, 0, 0, 2]), ("bplist", Array("bplist00".utf8)),
        ("xz", [0xFD, 0x37, 0x7A, 0x58, 0x5A, 0x00]),
        ("bzip2", Array("BZh9".utf8) + [0x31, 0x41, 0x59, 0x26, 0x53, 0x59]),
        ("7z", [0x37, 0x7A, 0xBC, 0xAF, 0x27, 0x1C]), ("RAR", Array("Rar!".utf8) + [0x1A, 0x07, 0x01]),
        ("WebP", Array("RIFF".utf8) + [0x24, 0x10, 0, 0] + Array("WEBP".utf8)),
        ("MP4", [0, 0, 0, 0x20] + Array("ftypisom".utf8)), ("Ogg", Array("OggS".utf8) + [0, 2]),
        ("FLAC", Array("fLaC".utf8) + [0, 0, 0, 0x22]), ("ID3", Array("ID3".utf8) + [4, 0, 0, 0, 0, 0x21, 0x76]),
        ("TIFF", [0x49, 0x49, 0x2A, 0, 8, 0, 0, 0]), ("TIFF, big-endian", [0x4D, 0x4D, 0, 0x2A, 0, 0, 0, 8]),
        ("WebAssembly", [0, 0x61, 0x73, 0x6D, 1, 0, 0, 0]), ("Java key store", [0xFE, 0xED, 0xFE, 0xED, 0, 0, 0, 2]),
    ]

    @Test func `compressed data and keys are recognised by their structure`() {
        // gzip: the length of the content stands at the end.
        let gzip: [UInt8] = [0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 3] + SecureRandom.bytes(100)
        #expect(Self.isRefused(gzip + [0x00, 0x02, 0x00, 0x00]))
        #expect(!Self.isRefused(gzip + [0x00, 0x02, 0x00, 0xF0]))
        // Zstandard: one last raw block of 100 bytes, then the same with a wrong length.
        let zstandard: [UInt8] = [0x28, 0xB5, 0x2F, 0xFD, 0x20, 100]
        #expect(Self.isRefused(zstandard + [0x21, 0x03, 0x00] + SecureRandom.bytes(100)))
        #expect(!Self.isRefused(zstandard + [0x29, 0x03, 0x00] + SecureRandom.bytes(100)))
        // DER: PKCS #8 with its exact length, and with a wrong one.
        let content: [UInt8] = [0x02, 0x01, 0x00, 0x30, 0x0D] + SecureRandom.bytes(295)
        #expect(Self.isRefused([0x30, 0x82, 0x01, 0x2C] + content))
        #expect(!Self.isRefused([0x30, 0x82, 0x01, 0x2D] + content))
        // A Windows program: MZ, and PE where the header says.
        var program: [UInt8] = Array("MZ".utf8) + SecureRandom.bytes(198)
        program.replaceSubrange(0x3C..<0x40, with: [0x80, 0, 0, 0])
        #expect(!Self.isRefused(program))
        program.replaceSubrange(0x80..<0x84, with: [0x50, 0x45, 0, 0])
        #expect(Self.isRefused(program))
    }

    @Test(arguments: corpus)
    func `bytes that no cipher returns are evidence`(_ name: String, _ bytes: [UInt8]) {
        #expect(Self.isRefused(bytes), "\(name)")
    }

    static let corpus: [(String, [UInt8])] = [
        ("zeros", [UInt8](repeating: 0, count: 16)),
        ("UTF-16", Array("Password: hunter2".utf16).flatMap { [UInt8($0 & 0xFF), UInt8($0 >> 8)] }),
        (
            "UTF-16 in Cyrillic",
            Array("пароль от сейфа: двенадцать".utf16).flatMap { [UInt8($0 & 0xFF), UInt8($0 >> 8)] }
        ),
        ("UTF-32", Array("Passw0rd!".unicodeScalars).flatMap { [0, 0, UInt8($0.value >> 8), UInt8($0.value & 0xFF)] }),
        ("integers", (0..<100).flatMap { [UInt8($0), 0x02, 0x00, 0x00] }),
        (
            "Latin-1",
            Array(
                repeating: Array("Gr".utf8) + [0xFC, 0xDF] + Array("e aus der Stra".utf8) + [0xDF, 0x65, 0x2E],
                count: 20
            ).flatMap { $0 }
        ),
        ("ECB", Array(repeating: SecureRandom.bytes(16), count: 2).flatMap { $0 } + SecureRandom.bytes(32)),
        (
            "blocks far apart",
            {
                let block = SecureRandom.bytes(16); return block + SecureRandom.bytes(4_096) + block
            }()
        ),
        ("a counter", (0..<64).flatMap { [UInt8($0), 0x5A, 0xC3, UInt8($0 &* 3)] }),
        ("half of the values", SecureRandom.bytes(800).map { $0 & 0x7F }),
        (
            "ASCII under a repeated key",
            Array("attack at dawn, retreat at dusk. ".utf8).cycled(600).enumerated().map {
                $1 ^ [0xA5, 0x3C, 0x96][$0 % 3]
            }
        ),
    ]

    @Test func `plain text behind a real nonce and before a real tag is found`() {
        let text = Array("The quick brown fox jumps over the lazy dog".utf8)
        #expect(Self.isRefused(SecureRandom.bytes(12) + text + SecureRandom.bytes(16), .aes256GCM))
        #expect(Self.isRefused(SecureRandom.bytes(16) + text + SecureRandom.bytes(16), .aes256GCMIV16))
        let blocks = Array("The quick brown fox jumps over the lazy dog, twice.....".utf8).cycled(64)
        #expect(Self.isRefused([3, 0] + SecureRandom.bytes(16) + blocks + SecureRandom.bytes(32), .rncryptorV3))
        #expect(Self.isRefused([3, 1] + SecureRandom.bytes(32) + blocks + SecureRandom.bytes(32), .rncryptorV3))
    }

    /// The rounds are those of 1,000 seeds.
    @Test(arguments: [(37, 50_000), (64, 30_000), (100, 18_000), (1_024, 4_000), (16_384, 200), (200_000, 10)])
    func `random bytes are not refused`(_ byteCount: Int, _ rounds: Int) {
        let count = max(1, rounds * PropertyTests.seeds.count / 1_000)
        for _ in 0..<count where Self.isRefused(SecureRandom.bytes(byteCount)) {
            Issue.record("random bytes were refused")
        }
    }

    @Test func `the bound on one byte's frequency is the least that holds`() {
        for count in [16, 28, 64, 256, 1_024, 65_536] {
            let limit = ByteHistogram.improbableCount(ofOneValueIn: count)
            #expect(Self.unionBound(count, limit) <= 1e-13)
            #expect(Self.unionBound(count, limit - 1) > 1e-13)
        }
    }

    @Test func `the bound on the divergence is below 10^-13`() {
        let excess = ByteHistogram.divergenceLimit / 255 - 1
        var logarithm = 0.0
        // ln(1 + excess) by its series, so that the test does not share the code's arithmetic.
        for power in 1...200 { logarithm += (power % 2 == 1 ? 1 : -1) * Self.power(excess, power) / Double(power) }
        #expect(255 * (excess - logarithm) > 29.94)
    }

    /// 256·C(n,m)/256^m.
    private static func unionBound(_ n: Int, _ m: Int) -> Double {
        (0..<m).reduce(256.0) { $0 * Double(n - $1) / (Double($1 + 1) * 256) }
    }

    private static func power(_ base: Double, _ exponent: Int) -> Double {
        (0..<exponent).reduce(1) { product, _ in product * base }
    }

    static func isRefused(_ bytes: [UInt8], _ format: SealedFormat = .opaque) -> Bool {
        guard let layout = format.layout(of: bytes) else { return false }
        return PlaintextEvidence.isFound(in: bytes, layout: layout)
    }
}

extension [UInt8] {
    /// The elements over and over, `count` of them.
    func cycled(_ count: Int) -> [UInt8] { (0..<count).map { self[$0 % self.count] } }
}
