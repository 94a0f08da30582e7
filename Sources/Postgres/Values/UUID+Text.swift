extension UUID: LosslessStringConvertible {
    /// Reads the canonical form: 36 characters, lower-case hexadecimal, four hyphens. Returns `nil` for any other text.
    public init?(_ description: String) {
        var description = description
        guard let uuid = description.withUTF8({ UUID(canonicalText: $0) }) else { return nil }
        self = uuid
    }

    /// Reads the canonical form from UTF-8.
    public init?(canonicalText text: UnsafeBufferPointer<UInt8>) {
        guard text.count == 36 else { return nil }
        var halves: (UInt64, UInt64) = (0, 0)
        for index in 0..<36 {
            let character = text[index]
            if index == 8 || index == 13 || index == 18 || index == 23 {
                guard character == UInt8(ascii: "-") else { return nil }
                continue
            }
            let digit: UInt8
            switch character {
            case UInt8(ascii: "0")...UInt8(ascii: "9"): digit = character - UInt8(ascii: "0")
            case UInt8(ascii: "a")...UInt8(ascii: "f"): digit = character - UInt8(ascii: "a") + 10
            default: return nil
            }
            // The third hyphen follows the sixteenth digit.
            if index < 18 {
                halves.0 = halves.0 << 4 | UInt64(digit)
            } else {
                halves.1 = halves.1 << 4 | UInt64(digit)
            }
        }
        self.init(high: halves.0, low: halves.1)
    }

    /// The canonical form, in lower case.
    public var description: String {
        String(unsafeUninitializedCapacity: Self.characterCount) { write(to: $0) }
    }

    /// The length of the canonical form.
    public static let characterCount = 36

    /// Writes the canonical form as ASCII to the start of `text`, which must have room for it.
    /// - Returns: ``characterCount``.
    public func write(to text: UnsafeMutableBufferPointer<UInt8>) -> Int {
        var digit = 0
        for index in 0..<Self.characterCount {
            if index == 8 || index == 13 || index == 18 || index == 23 {
                text[index] = UInt8(ascii: "-")
                continue
            }
            let half = digit < 16 ? high : low
            let nibble = UInt8(truncatingIfNeeded: half >> UInt64(60 - digit % 16 * 4) & 0xF)
            text[index] = nibble < 10 ? UInt8(ascii: "0") + nibble : UInt8(ascii: "a") + nibble - 10
            digit += 1
        }
        return Self.characterCount
    }
}
