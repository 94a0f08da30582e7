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
