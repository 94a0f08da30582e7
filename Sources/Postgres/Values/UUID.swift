/// A universally unique identifier (RFC 9562): sixteen bytes held inline, in PostgreSQL's sort order of `uuid`.
public struct UUID: Sendable, Hashable {
    /// The first eight bytes, most significant first.
    public let high: UInt64
    /// The last eight bytes, most significant first.
    public let low: UInt64

    /// The size of a UUID.
    public static let byteCount = 16

    /// The nil UUID (RFC 9562 §5.9), the lowest of all.
    public static let zero = UUID(high: 0, low: 0)

    /// Makes a UUID from two big-endian halves.
    public init(high: UInt64, low: UInt64) {
        self.high = high
        self.low = low
    }

    /// Makes a UUID from sixteen bytes. Returns `nil` for any other count.
    public init?(bytes: UnsafeRawBufferPointer) {
        guard bytes.count == Self.byteCount else { return nil }
        high = UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 0, as: UInt64.self))
        low = UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
    }

    /// Makes a UUID from sixteen bytes. Returns `nil` for any other count.
    public init?(bytes: [UInt8]) {
        guard let uuid = bytes.withUnsafeBytes({ UUID(bytes: $0) }) else { return nil }
        self = uuid
    }

    /// The sixteen bytes.
    public var bytes: [UInt8] {
        [UInt8](unsafeUninitializedCapacity: 16) { buffer, count in
            let raw = UnsafeMutableRawBufferPointer(buffer)
            raw.storeBytes(of: high.bigEndian, as: UInt64.self)
            raw.storeBytes(of: low.bigEndian, toByteOffset: 8, as: UInt64.self)
            count = 16
        }
    }
}

extension UUID: Comparable {
    public static func < (left: UUID, right: UUID) -> Bool {
        left.high == right.high ? left.low < right.low : left.high < right.high
    }
}

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
