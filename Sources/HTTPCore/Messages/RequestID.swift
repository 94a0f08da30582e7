/// The identifier of one request in logs, replies and `X-Request-Id`: 128 random bits as 32 hexadecimal digits.
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

    /// The number of digits.
    public static let characterCount = 32

    /// Writes the digits, as ASCII, to the start of `digits`, which must have room for them.
    /// - Returns: ``characterCount``.
    public func write(to digits: UnsafeMutableBufferPointer<UInt8>) -> Int {
        ASCII.writeHexadecimal(high, to: digits, at: 0)
        ASCII.writeHexadecimal(low, to: digits, at: 16)
        return Self.characterCount
    }
}
