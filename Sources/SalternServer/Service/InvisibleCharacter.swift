/// A character that is invisible or resembles another one. Users who copy a prefix with it by sight derive other keys.
public struct InvisibleCharacter: Error, Sendable, Equatable, CustomStringConvertible {
    private let scalar: Unicode.Scalar
    /// The position, counted from 1.
    private let position: Int

    /// Finds the first one in a text.
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
