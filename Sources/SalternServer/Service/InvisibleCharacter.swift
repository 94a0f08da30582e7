/// A character that nobody sees, or that looks like another one: a prefix with it is not what its author reads, and clients
/// that were given what he reads derive other keys.
public struct InvisibleCharacter: Error, Sendable, Equatable, CustomStringConvertible {
    private let scalar: Unicode.Scalar
    /// Counted from 1.
    private let position: Int

    /// The first one in a text.
    init?(in text: String) {
        for (index, scalar) in text.unicodeScalars.enumerated() where Self.isInvisible(scalar) {
            self.scalar = scalar
            position = index + 1
            return
        }
        return nil
    }

    private static func isInvisible(_ scalar: Unicode.Scalar) -> Bool {
        if scalar.properties.isDefaultIgnorableCodePoint { return true }
        switch scalar.properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator, .spaceSeparator: return true
        // BRAILLE PATTERN BLANK, which is no space.
        default: return scalar.value == 0x2800
        }
    }

    public var description: String {
        let digits = String(scalar.value, radix: 16, uppercase: true)
        let code = String(repeating: "0", count: max(0, 4 - digits.count)) + digits
        let name = scalar.properties.name ?? scalar.properties.nameAlias ?? "control"
        return "U+\(code) (\(name)) as character \(position)"
    }
}
