import SalternClient
import SalternTesting

extension Identifier {
    static func random(using random: inout SeededGenerator) -> Self {
        let bytes = (0..<16).map { _ in UInt8.random(in: 0...255, using: &random) }
        return Self(bytes: bytes) ?? .random()
    }
}
