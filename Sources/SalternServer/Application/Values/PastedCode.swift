internal import HTTPCore

/// Reads codes that people paste or type, and ignores changes that their programs make.
///
/// White space and invisible characters are dropped. Digits of any script and full-width letters become ASCII, and
/// every dash becomes a hyphen. The code stays only in memory that is zeroed when it is released.
enum PastedCode {
    /// Maximum length of the text in bytes, far above any code with characters inserted.
    private static let byteLimit = 256

    /// Returns the code in ASCII, empty if the text has no visible characters.
    ///
    /// - Parameter keepsHyphens: True if hyphens are part of the code.
    /// - Returns: Nil if the text is too long, or has a character outside all codes.
    static func read(_ text: JSONString, keepsHyphens: Bool) -> ZeroizingBuffer? {
        guard text.count <= byteLimit else { return nil }
        var code = ZeroizingBuffer(capacity: text.count)
        var bytes = text.utf8.makeIterator()
        var decoder = Unicode.UTF8()
        while true {
            switch decoder.decode(&bytes) {
            case .emptyInput: return code
            case .error: return nil
            case .scalarValue(let scalar):
                if isIgnored(scalar) { continue }
                guard let byte = ascii(scalar) else { return nil }
                if byte == ASCII.minus, !keepsHyphens { continue }
                code.append(byte)
            }
        }
    }

    private static func isIgnored(_ scalar: Unicode.Scalar) -> Bool {
        if scalar.properties.isWhitespace || scalar.properties.isDefaultIgnorableCodePoint { return true }
        switch scalar.properties.generalCategory {
        case .control, .format: return true
        default: return false
        }
    }

    private static func ascii(_ scalar: Unicode.Scalar) -> UInt8? {
        if scalar.isASCII { return UInt8(ascii: scalar) }
        // The full-width forms of ! to ~ (Unicode, block FF00).
        if (0xFF01...0xFF5E).contains(scalar.value) { return UInt8(scalar.value - 0xFEE0) }
        switch scalar.properties.generalCategory {
        case .decimalNumber: return scalar.properties.numericValue.map { ASCII.zero + UInt8($0) }
        case .dashPunctuation: return ASCII.minus
        // The minus sign is mathematical punctuation.
        default: return scalar == "\u{2212}" ? ASCII.minus : nil
        }
    }
}
