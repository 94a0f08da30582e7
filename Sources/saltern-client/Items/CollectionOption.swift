import CommandLineKit
import SalternClient

/// `--collection NAME`, for a command that writes items.
enum CollectionOption {
    /// Parses the option.
    /// - Returns: nil when it was not given.
    static func name(_ arguments: inout Arguments) throws(UsageError) -> String? {
        guard let name = try arguments.option("--collection") else { return nil }
        guard name.wholeMatch(of: /[a-z0-9-]{1,32}/) != nil else {
            throw UsageError(message: "--collection must be 1 to 32 of a-z, 0-9 and -")
        }
        guard name != Attachment.chunkCollection else {
            throw UsageError(message: "--collection \(name) is reserved for chunks of attachments")
        }
        return name
    }
}
