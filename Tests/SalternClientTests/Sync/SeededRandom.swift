import SalternClient

/// SplitMix64.
struct SeededRandom: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var value = state
        value = (value ^ (value >> 30)) &* 0xbf58_476d_1ce4_e5b9
        value = (value ^ (value >> 27)) &* 0x94d0_49bb_1331_11eb
        return value ^ (value >> 31)
    }

    /// Whether one of so many cases is it.
    mutating func chance(_ one: Int) -> Bool { Int.random(in: 0..<one, using: &self) == 0 }
}

extension Identifier {
    static func random(using random: inout SeededRandom) -> Self {
        let bytes = (0..<16).map { _ in UInt8.random(in: 0...255, using: &random) }
        return Self(bytes: bytes) ?? .random()
    }
}
