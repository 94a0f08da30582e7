internal import Foundation

extension Userid {
    /// The text in NFKC and lower case, without white space around it.
    ///
    /// Lower-casing can undo normalisation and the other way round, so both are repeated until nothing changes. (A
    /// test tries every character; four rounds are more than any of them needs.)
    static func canonicalForm(of text: String) -> String {
        var form = text
        for _ in 0..<4 {
            let next = trimmed(form.precomposedStringWithCompatibilityMapping.lowercased())
            if next.utf8.elementsEqual(form.utf8) { return next }
            form = next
        }
        return form
    }

    private static func trimmed(_ text: String) -> String {
        let scalars = text.unicodeScalars
        guard let first = scalars.firstIndex(where: { !$0.properties.isWhitespace }),
            let last = scalars.lastIndex(where: { !$0.properties.isWhitespace })
        else { return "" }
        return String(scalars[first...last])
    }
}
