/// The name of one request in logs, replies and `X-Request-Id`: 128 random bits as 32 hexadecimal digits.
public struct RequestID: Hashable, Sendable, CustomStringConvertible {
    private let high: UInt64
    private let low: UInt64

    /// Creates an identifier from the system's random number generator.
    public init() {
        var generator = SystemRandomNumberGenerator()
        self.init(high: generator.next(), low: generator.next())
    }

    /// Creates an identifier from 128 bits.
    public init(high: UInt64, low: UInt64) {
        self.high = high
        self.low = low
    }

    public var description: String { String(unsafeUninitializedCapacity: Self.characterCount) { write(to: $0) } }

    /// How many digits it has.
    public static let characterCount = 32

    /// Writes the digits, as ASCII, to the start of `digits`, which must have room for them.
    /// - Returns: ``characterCount``.
    public func write(to digits: UnsafeMutableBufferPointer<UInt8>) -> Int {
        for index in 0..<16 {
            let shift = UInt64(60 - index * 4)
            digits[index] = Self.digit((high >> shift) & 15)
            digits[16 + index] = Self.digit((low >> shift) & 15)
        }
        return Self.characterCount
    }

    private static func digit(_ value: UInt64) -> UInt8 {
        UInt8(truncatingIfNeeded: value < 10 ? 0x30 + value : 0x57 + value)
    }
}
