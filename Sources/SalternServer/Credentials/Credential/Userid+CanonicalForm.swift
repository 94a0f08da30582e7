internal import Foundation

extension Userid {
    /// Returns the text in NFKC and lower case, without surrounding white space.
    ///
    /// Lower case can undo normalisation and the reverse, so both are repeated until nothing changes. A test covers all
    /// characters; four rounds are more than any of them needs.
    static func canonicalForm(of text: String) -> String {
        var form = text
        for _ in 0..<4 {
            let next = trimmed(lowercased(form.precomposedStringWithCompatibilityMapping))
            if next.utf8.elementsEqual(form.utf8) { return next }
            form = next
        }
        return form
    }

    /// Returns the text in lower case according to Unicode (chapter 3.13, with the final sigma), like Python and
    /// JavaScript. The standard library maps each character separately.
    private static func lowercased(_ text: String) -> String {
        guard text.unicodeScalars.contains(capitalSigma) else { return text.lowercased() }
        let scalars = Array(text.unicodeScalars)
        var lower = String.UnicodeScalarView()
        for (index, scalar) in scalars.enumerated() {
            if scalar == capitalSigma, isFinal(index, in: scalars) {
                lower.append(finalSigma)
            } else {
                lower.append(contentsOf: scalar.properties.lowercaseMapping.unicodeScalars)
            }
        }
        return String(lower)
    }

    private static let capitalSigma: Unicode.Scalar = "\u{3A3}"
    private static let finalSigma: Unicode.Scalar = "\u{3C2}"

    /// `Final_Sigma` of Unicode's table 3-17: a cased letter before it and none behind it, ignoring case-ignorable
    /// characters.
    private static func isFinal(_ index: Int, in scalars: [Unicode.Scalar]) -> Bool {
        let isIgnored: (Unicode.Scalar) -> Bool = { $0.properties.isCaseIgnorable }
        let before = scalars[..<index].last { !isIgnored($0) }
        let behind = scalars[(index + 1)...].first { !isIgnored($0) }
        return (before?.properties.isCased ?? false) && !(behind?.properties.isCased ?? false)
    }

    /// Returns the text without surrounding white space.
    static func trimmed(_ text: String) -> String {
        let scalars = text.unicodeScalars
        guard let first = scalars.firstIndex(where: { !$0.properties.isWhitespace }),
            let last = scalars.lastIndex(where: { !$0.properties.isWhitespace })
        else { return "" }
        return String(scalars[first...last])
    }
}
