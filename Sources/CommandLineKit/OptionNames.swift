/// The options of a command, by their form.
package struct OptionNames: Sendable {
    /// Options without a value, such as `--json`.
    package var flags: Set<String> = []
    /// Options with a value, such as `--limit N`.
    package var valued: Set<String> = []

    package init(flags: Set<String> = [], valued: Set<String> = []) {
        self.flags = flags
        self.valued = valued
    }

    /// Finds the options of `command` by reading a command line without words with it. A separate table would repeat
    /// its initialiser.
    package init<C: Command>(of command: C.Type) { self = Arguments.names(of: command) }

    /// The options for help, which every command has.
    static let help: Set<String> = ["--help", "-h"]

    /// Returns whether `word` is an option where options are accepted. Compares bytes, because `-` and a combining mark
    /// are one character.
    static func isOption(_ word: String) -> Bool { word.utf8.first == UInt8(ascii: "-") && word.utf8.count > 1 }

    /// Splits `--name=VALUE` at the first `=`. The value is nil without one.
    static func split(_ word: String) -> (name: String, value: String?) {
        guard let sign = word.utf8.firstIndex(of: UInt8(ascii: "=")) else { return (word, nil) }
        return (
            String(decoding: word.utf8[..<sign], as: UTF8.self),
            String(decoding: word.utf8[word.utf8.index(after: sign)...], as: UTF8.self)
        )
    }

    /// Returns whether `words` contain one of the options `asked` where an option is accepted: not as a value, and not
    /// after `--`.
    func areAsked(_ asked: Set<String>, in words: [String]) -> Bool {
        var rest = words[...]
        while let word = rest.popFirst(), word != "--" {
            if asked.contains(word) { return true }
            if valued.contains(word) { _ = rest.popFirst() }
        }
        return false
    }
}
