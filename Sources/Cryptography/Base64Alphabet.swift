/// The lookup tables of one base64 alphabet.
struct Base64Alphabet: Sendable {
    /// RFC 4648 section 4, padded.
    static let standard = Base64Alphabet(last: "+/", isPadded: true)
    /// RFC 4648 section 5, not padded.
    static let url = Base64Alphabet(last: "-_", isPadded: false)

    /// A value that no 24 bits of output can have: set for characters outside the alphabet.
    static let invalid: UInt32 = 0xFF00_0000

    let isPadded: Bool
    /// For each 12 bits of input their two characters, in memory order.
    let pairs: [UInt16]
    /// Four tables of 256: what a character contributes to 24 bits of output in each of the four positions.
    let values: [UInt32]

    private init(last: StaticString, isPadded: Bool) {
        var characters: [UInt8] = []
        characters.append(contentsOf: UInt8(ascii: "A")...UInt8(ascii: "Z"))
        characters.append(contentsOf: UInt8(ascii: "a")...UInt8(ascii: "z"))
        characters.append(contentsOf: UInt8(ascii: "0")...UInt8(ascii: "9"))
        last.withUTF8Buffer { characters.append(contentsOf: $0) }

        var pairs: [UInt16] = []
        pairs.reserveCapacity(4096)
        for first in characters {
            for second in characters {
                pairs.append(UInt16(littleEndian: UInt16(second) << 8 | UInt16(first)))
            }
        }

        var values = [UInt32](repeating: Self.invalid, count: 4 * 256)
        for (value, character) in characters.enumerated() {
            for position in 0..<4 {
                values[position * 256 + Int(character)] = UInt32(value) << (18 - 6 * UInt32(position))
            }
        }

        self.isPadded = isPadded
        self.pairs = pairs
        self.values = values
    }
}
