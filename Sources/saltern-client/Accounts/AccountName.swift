import CommandLineKit
import Foundation

/// What an account is called here. Its profile and its folder have the name, too, whatever is in it.
struct AccountName: Hashable, Sendable, CustomStringConvertible {
    let description: String
    /// The name as a terminal may show it.
    var shown: String { VisibleText.visible(description) }
    /// The name as one component of a path.
    let component: String

    /// What is left of the 255 bytes of a file's name beside what profiles and folders add to it.
    private static let limit = 240

    /// - Throws: ``UsageError`` for no name, and for one that is too long for a file.
    init(_ text: String) throws(UsageError) {
        let plain = CharacterSet(charactersIn: "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789@+-_.")
        guard let escaped = text.addingPercentEncoding(withAllowedCharacters: plain), !escaped.isEmpty else {
            throw UsageError(message: "the account's name is empty: see --account")
        }
        component = escaped.hasPrefix(".") ? "%2E" + escaped.dropFirst() : escaped
        guard component.utf8.count <= Self.limit else {
            throw UsageError(message: "the account's name is too long for a file's: give a shorter one with --account")
        }
        description = text
    }

    /// That of a path; nil for a component that is none of ours.
    init?(component: Substring) {
        guard let text = String(component).removingPercentEncoding, let name = try? AccountName(text) else {
            return nil
        }
        self = name
    }
}

extension Arguments {
    /// Takes `--account NAME`; nil when it is absent.
    mutating func accountName() throws(UsageError) -> AccountName? {
        guard let text = try option("--account") else { return nil }
        return try AccountName(text)
    }
}
