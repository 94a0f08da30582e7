/// The reason for which an ignore file cannot be applied.
public struct IgnoreFault: Error, Hashable, Sendable {
    /// The reasons. The raw values are stable, for scripts.
    public enum Reason: String, Sendable {
        /// The file has more than 64 KiB.
        case fileTooLong = "file_too_long"
        /// A line has more than 1,024 bytes.
        case lineTooLong = "line_too_long"
        /// The file has more than 1,000 patterns.
        case tooManyPatterns = "too_many_patterns"
        /// The file is not UTF-8, or contains a NUL.
        case notText = "not_text"
        /// The pattern has no name, as `!` or `/` alone, or an empty one, as `a//b`.
        case emptyName = "empty_name"
        /// The pattern contains the name `.` or `..`, which no path in the folder contains.
        case dotName = "dot_name"
        /// The pattern ends with a backslash that escapes nothing.
        case trailingBackslash = "trailing_backslash"
        /// A bracket expression has no end.
        case openBracket = "open_bracket"
        /// The entry with the name of an ignore file is a link, a folder or a special file.
        case noFile = "no_file"
        /// The file cannot be read.
        case unreadable
    }

    /// The kind of the fault.
    public let reason: Reason
    /// The line, counted from 1; nil for a fault of the whole file.
    public let line: Int?

    init(_ reason: Reason, line: Int? = nil) {
        self.reason = reason
        self.line = line
    }
}
