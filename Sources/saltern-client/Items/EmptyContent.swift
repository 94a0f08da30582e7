import CommandLineKit
import SalternClient

/// Rejects empty content in place of an item's, which a command with failed input would write.
enum EmptyContent {
    static func refusal(_ source: String, over item: ItemSummary) -> CommandFailure {
        let size = item.byteCount.map { "the \($0) bytes of " } ?? ""
        return CommandFailure(
            "\(source) is empty, and would replace \(size)\(item.id); nothing was changed; --allow-empty replaces it",
            status: ExitStatus.unreadable, code: "empty_content")
    }
}
