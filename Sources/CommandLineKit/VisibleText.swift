/// Text on its way to a terminal. It may come from strangers.
///
/// A terminal executes control characters and the escape sequences that they begin. Format characters are invisible or
/// reverse the direction of writing. ``Console`` passes all text through these functions.
package enum VisibleText {
    /// Returns a part of a line, with each control or format character spelt as `\u{1b}`, line ends included.
    package static func visible(_ text: String) -> String { escaped(text, isObeyed, spelling) }

    /// Returns lines like ``visible(_:)``, but keeps line feeds.
    package static func lines(_ text: String) -> String { escaped(text, { isObeyed($0) && $0 != "\n" }, spelling) }

    /// Returns a line for each of `texts`.
    package static func list(_ texts: [String]) -> String { texts.map { visible($0) + "\n" }.joined() }

    /// Returns a document for a terminal like ``lines(_:)``, but also keeps tabs.
    package static func document(_ text: String) -> String {
        escaped(text, { isObeyed($0) && $0 != "\n" && $0 != "\t" }, spelling)
    }

    /// Returns JSON of the same value, with each control or format character as a JSON escape (RFC 8259, section 7).
    package static func json(_ json: [UInt8]) -> [UInt8] {
        guard json.contains(where: { $0 >= 0x7F || ($0 < 0x20 && $0 != UInt8(ascii: "\n")) }) else { return json }
        let text = String(decoding: json, as: UTF8.self)
        return Array(
            escaped(text, { isObeyed($0) && $0 != "\n" }) { scalar in
                scalar.utf16.map { unit in
                    let digits = String(unit, radix: 16)
                    return "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
                }.joined()
            }.utf8)
    }

    private static func spelling(_ scalar: Unicode.Scalar) -> String { "\\u{\(String(scalar.value, radix: 16))}" }

    private static func escaped(
        _ text: String, _ isEscaped: (Unicode.Scalar) -> Bool, _ spelling: (Unicode.Scalar) -> String
    ) -> String {
        guard text.unicodeScalars.contains(where: isEscaped) else { return text }
        return text.unicodeScalars.map { isEscaped($0) ? spelling($0) : String($0) }.joined()
    }

    static func isObeyed(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate: true
        default: false
        }
    }
}

/// Text that a shell reads as one word.
package enum ShellWord {
    /// Returns `text` in single quotes, as one word for a POSIX shell (XCU 2.2.2).
    /// - Returns: Nil for text with a control or format character, because a copy from a terminal would differ.
    package static func quoted(_ text: String) -> String? {
        if text.unicodeScalars.contains(where: VisibleText.isObeyed) { return nil }
        // Bytes, because a quote and a combining mark are one character.
        let pieces = text.utf8.split(separator: UInt8(ascii: "'"), omittingEmptySubsequences: false)
        return "'" + pieces.map { String(decoding: $0, as: UTF8.self) }.joined(separator: #"'\''"#) + "'"
    }
}

/// Returns a number with its noun, in the singular for 1: "1 session", "2 sessions".
/// - Parameter plural: The noun's plural; nil for the singular with an `s`.
package func counted(_ number: some BinaryInteger, _ singular: String, _ plural: String? = nil) -> String {
    "\(number) " + (number == 1 ? singular : plural ?? singular + "s")
}
