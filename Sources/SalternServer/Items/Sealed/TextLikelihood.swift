internal import Glibc

/// Detects text with other bytes in it: control characters, or arbitrary bytes behind a beginning of text.
///
/// Each of the models below is a probability Q of the next byte, given the ones before it. For uniformly random bytes
/// the likelihood ratio L(n) = Π 256·Q(byte) is a martingale that begins at 1, since the sum of Q over all bytes is 1.
/// By Ville's inequality (J. Ville, "Étude critique de la notion de collectif", 1939) it ever reaches 1/ε, at any
/// length, with probability at most ε.
///
/// With four models and ε = 2.5·10^-15 for each, random bytes of any length are rejected with probability at most
/// 10^-14. The bound holds for any quality of the models, which decides only how soon text is found:
///
/// | Model | What it expects | Bits for each of its characters |
/// | --- | --- | --- |
/// | prose | lower case and spaces | 2.6 to 4.9 |
/// | identifiers | letters and digits, as in tokens and keys in base64 | 1.8 |
/// | printable | any ASCII that is printed | 1.3 |
/// | UTF-8 | characters of several bytes | 3.5 for two bytes, 5.5 for three |
///
/// 48.6 bits are needed: 19 bytes of prose, 27 of a token, 37 of printable characters. A control character costs 2
/// bits.
enum TextLikelihood {
    /// log2 of 1/ε.
    static let evidence: Float = 48.6
    /// log2 of a ratio from which text does not recover. The scan of random bytes ends there.
    private static let hopeless: Float = -64

    /// Returns true if the bytes begin with text rather than ciphertext.
    static func isFound(in bytes: UnsafeRawBufferPointer) -> Bool {
        withUnsafeTemporaryAllocation(of: Float.self, capacity: models.count) { ratios in
            ratios.initialize(repeating: 0)
            var missing = 0
            for byte in bytes {
                var best = hopeless
                for (index, model) in models.enumerated() {
                    ratios[index] += (missing > 0 ? model.continued : model.plain)[Int(byte)]
                    best = max(best, ratios[index])
                }
                if best >= evidence { return true }
                if best <= hopeless { return false }
                missing = missing > 0 && byte & 0xC0 == 0x80 ? missing - 1 : continuationBytes(after: byte)
            }
            return false
        }
    }

    /// Returns the number of continuation bytes after a first byte.
    private static func continuationBytes(after first: UInt8) -> Int {
        switch first {
        case 0xC2...0xDF: 1
        case 0xE0...0xEF: 2
        case 0xF0...0xF4: 3
        default: 0
        }
    }

    /// log2 of 256·Q for each byte.
    struct Model: Sendable {
        let plain: [Float]
        /// The same within a character of several bytes.
        let continued: [Float]

        /// - Parameters:
        ///   - plain: The expected share of classes of bytes, which together contain every byte once.
        ///   - continued: The same within a character of several bytes.
        init(_ plain: [(share: Double, bytes: [UInt8])], continued: [(share: Double, bytes: [UInt8])]? = nil) {
            self.plain = Self.table(plain)
            self.continued = continued.map(Self.table) ?? self.plain
        }

        private static func table(_ classes: [(share: Double, bytes: [UInt8])]) -> [Float] {
            var table = [Float](repeating: -.infinity, count: 256)
            for (share, bytes) in classes {
                for byte in bytes { table[Int(byte)] = Float(log2(256 * share / Double(bytes.count))) }
            }
            return table
        }
    }

    private static let lowerCase = Array(UInt8(ascii: "a")...UInt8(ascii: "z"))
    private static let upperCase = Array(UInt8(ascii: "A")...UInt8(ascii: "Z"))
    private static let digits = Array(UInt8(ascii: "0")...UInt8(ascii: "9"))
    private static let space = [UInt8(ascii: " ")]
    private static let lineEnds: [UInt8] = [0x09, 0x0A, 0x0C, 0x0D]
    private static let control = Array(UInt8(0)...0x1F).filter { !lineEnds.contains($0) } + [0x7F]
    private static let punctuation = Array(UInt8(0x21)...0x7E).filter { byte in
        !(lowerCase + upperCase + digits).contains(byte)
    }
    private static let printable = Array(UInt8(0x20)...0x7E)
    private static let high = Array(UInt8(0x80)...0xFF)
    private static let firstOfSeveral = Array(UInt8(0xC2)...0xF4)
    private static let following = Array(UInt8(0x80)...0xBF)

    static let models = [
        // Prose.
        Model([
            (0.60, lowerCase), (0.12, space), (0.14, upperCase + digits), (0.06, punctuation), (0.02, lineEnds),
            (0.03, control), (0.03, high),
        ]),
        // Identifiers, tokens, keys.
        Model([
            (0.85, lowerCase + upperCase + digits), (0.09, punctuation + space), (0.02, lineEnds), (0.03, control),
            (0.01, high),
        ]),
        // Printable characters.
        Model([(0.93, printable), (0.02, lineEnds), (0.03, control), (0.02, high)]),
        // Characters of several bytes.
        Model(
            [
                (0.60, firstOfSeveral), (0.33, printable), (0.02, lineEnds), (0.03, control),
                (0.02, high.filter { !firstOfSeveral.contains($0) }),
            ],
            continued: [(0.97, following), (0.03, Array(UInt8(0)...0xFF).filter { !following.contains($0) })]),
    ]
}
