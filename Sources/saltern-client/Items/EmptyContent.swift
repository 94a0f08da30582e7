import CommandLineKit
import SalternClient

/// The refusal of empty content in the place of an item's, as a command whose input has failed would write it.
enum EmptyContent {
    static func refusal(_ source: String, over item: ItemSummary) -> CommandFailure {
        let size = item.byteCount.map { "the \($0) bytes of " } ?? ""
        return CommandFailure(
            "\(source) is empty, and would replace \(size)\(item.id); nothing was changed; --allow-empty replaces it",
            status: ExitStatus.unreadable, code: "empty_content")
    }
}
