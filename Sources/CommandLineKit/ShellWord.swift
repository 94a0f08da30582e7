/// Text that a shell reads as one word.
package enum ShellWord {
    /// Returns `text` in single quotes, as one word for a POSIX shell (XCU 2.2.2).
    /// - Returns: nil for text with a character that a terminal obeys: what is copied from a terminal would be another word.
    package static func quoted(_ text: String) -> String? {
        if text.unicodeScalars.contains(where: VisibleText.isObeyed) { return nil }
        // On bytes: a combining mark behind a quote does not hide it.
        let pieces = text.utf8.split(separator: UInt8(ascii: "'"), omittingEmptySubsequences: false)
        return "'" + pieces.map { String(decoding: $0, as: UTF8.self) }.joined(separator: #"'\''"#) + "'"
    }
}
