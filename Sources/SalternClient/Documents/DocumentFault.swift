/// The reason for which a file of documents was not imported.
public struct DocumentFault: Error, Hashable, Sendable {
    /// The kinds of faults. The raw values are stable, for scripts.
    public enum Reason: String, Sendable {
        /// The line is not UTF-8.
        case notUTF8 = "not_utf8"
        /// The first line is not that of a file of documents, or it is that of a later version.
        case noBeginning = "no_beginning"
        /// The line is neither a document nor the end.
        case noDocument = "no_document"
        /// The last line names another number of documents than the file contains.
        case wrongCount = "wrong_count"
        /// The file continues after its last line.
        case afterEnd = "after_end"
        /// The file ends without its last line.
        case noEnd = "no_end"
    }

    /// The number of the line in the file, from 1. Empty lines count.
    public let line: Int
    /// The fault of the line.
    public let reason: Reason

    /// Creates a fault.
    /// - Parameter line: The number of the line, from 1.
    public init(line: Int, reason: Reason) {
        self.line = line
        self.reason = reason
    }
}
