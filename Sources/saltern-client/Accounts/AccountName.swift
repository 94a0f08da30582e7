import CommandLineKit
import Foundation

/// The local name of an account, which can be any text. Its profile and its folder have the name, too.
struct AccountName: Hashable, Sendable, CustomStringConvertible {
    let description: String
    /// The name in a form that is safe for a terminal.
    var shown: String { VisibleText.visible(description) }
    /// The name as one component of a path.
    let component: String

    /// The longest component, in bytes. Profiles and folders add to it, up to the 255 bytes of a file's name.
    private static let limit = 240

    /// - Throws: ``UsageError`` for an empty name, and for one that is too long for a file.
    init(_ text: String) throws(UsageError) {
        let plain = CharacterSet(charactersIn: "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789@+-_.")
        guard let escaped = text.addingPercentEncoding(withAllowedCharacters: plain), !escaped.isEmpty else {
            throw UsageError(message: "the account's name is empty: see --account")
        }
        component = escaped.hasPrefix(".") ? "%2E" + escaped.dropFirst() : escaped
        guard component.utf8.count <= Self.limit else {
            throw UsageError(
                message: "the account's name is too long for a file name: give a shorter one with --account")
        }
        description = text
    }

    /// Creates the name from a component of a path; nil for any other component.
    init?(component: Substring) {
        guard let text = String(component).removingPercentEncoding, let name = try? AccountName(text) else {
            return nil
        }
        self = name
    }
}

extension Arguments {
    /// Parses `--account NAME`; nil when it is absent.
    mutating func accountName() throws(UsageError) -> AccountName? {
        guard let text = try option("--account") else { return nil }
        return try AccountName(text)
    }
}
