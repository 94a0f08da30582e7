import Synchronization

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
