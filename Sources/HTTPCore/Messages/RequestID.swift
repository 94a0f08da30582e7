import Synchronization

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

/// Creates request identifiers without a system call for randomness each time.
///
/// Identifiers of one source never repeat. Those of different processes differ by 128 random bits. They are names, not
/// secrets: the next one may be predictable from another.
public final class RequestIDSource: Sendable {
    private let high: UInt64
    private let offset: UInt64
    private let count = Atomic<UInt64>(0)

    public init() {
        var generator = SystemRandomNumberGenerator()
        high = generator.next()
        offset = generator.next()
    }

    public func next() -> RequestID {
        // SplitMix64: every step is a bijection, so the low half has 2^64 different values.
        var low = offset &+ count.wrappingAdd(1, ordering: .relaxed).newValue &* 0x9E37_79B9_7F4A_7C15
        low = (low ^ low >> 30) &* 0xBF58_476D_1CE4_E5B9
        low = (low ^ low >> 27) &* 0x94D0_49BB_1331_11EB
        return RequestID(high: high, low: low ^ low >> 31)
    }
}
