/// The options and operands after the words of a subcommand.
///
/// A word that begins with `-` is an option until the word `--`. Every word after `--` is an operand (POSIX XBD 12.2,
/// guideline 10), and so is `-` alone. The value of an option follows `=` or is the next word, also if that begins with
/// `-`. Options may follow operands.
package struct Arguments {
    /// One appearance of an option.
    private struct Occurrence {
        let value: String?
        /// True when option and value are one word, as in `--name=VALUE`.
        let isJoined: Bool
    }

    private var occurrences: [String: [Occurrence]] = [:]
    private var operands: [String] = []
    /// Collects the options of a command; nil while a command line is read.
    private var found: OptionNames?

    /// Reads a command line.
    /// - Parameter names: The options of the command.
    /// - Throws: ``UsageError`` for an unknown option, a missing value, or a value after an option without one.
    package init(_ words: [String], _ names: OptionNames) throws(UsageError) {
        var rest = words[...]
        while let word = rest.popFirst() {
            if word == "--" {
                operands += rest
                return
            }
            guard OptionNames.isOption(word) else {
                operands.append(word)
                continue
            }
            let (name, joined) = OptionNames.split(word)
            if names.valued.contains(name) {
                guard let value = joined ?? rest.popFirst() else { throw UsageError(message: "\(name) needs a value") }
                occurrences[name, default: []].append(Occurrence(value: value, isJoined: joined != nil))
            } else if names.flags.contains(name) {
                guard joined == nil else { throw UsageError(message: "\(name) takes no value") }
                occurrences[name, default: []].append(Occurrence(value: nil, isJoined: false))
            } else {
                throw UsageError(message: "unknown argument \(word)")
            }
        }
    }

    private init() { found = OptionNames() }

    /// Returns the options that `command` reads from a command line without words.
    static func names<C: Command>(of command: C.Type) -> OptionNames {
        var arguments = Arguments()
        // The operand is missing, so the command may throw. By then it has read its options.
        _ = try? C(&arguments)
        return arguments.found ?? OptionNames()
    }

    /// Takes `--name VALUE` or `--name=VALUE`. Returns nil when it is absent.
    /// - Parameter isJoinable: Accepts `--name=VALUE`. False for an option that selects the object of the command, so
    ///   that a single mistyped operand cannot select one.
    package mutating func option(_ name: String, isJoinable: Bool = true) throws(UsageError) -> String? {
        let taken = take(name, isFlag: false)
        guard taken.count <= 1 else { throw UsageError(message: "\(name) may be given once") }
        guard isJoinable || taken.first?.isJoined != true else {
            throw UsageError(message: "\(name) and its value are two words")
        }
        return taken.first?.value
    }

    /// Takes every `--name VALUE`, and returns the values.
    package mutating func options(_ name: String) throws(UsageError) -> [String] {
        take(name, isFlag: false).compactMap(\.value)
    }

    /// Takes `--name`, and returns true if it was present.
    package mutating func flag(_ name: String) -> Bool { !take(name, isFlag: true).isEmpty }

    /// Takes the next operand. Call this after all options are taken.
    package mutating func word(_ meaning: String) throws(UsageError) -> String {
        guard let word = try optionalWord() else { throw UsageError(message: "\(meaning) is missing") }
        return word
    }

    /// Takes the next operand, or returns nil without one. Call this after all options are taken.
    package mutating func optionalWord() throws(UsageError) -> String? {
        guard !operands.isEmpty else { return nil }
        let word = operands.removeFirst()
        // An empty argument is usually an unset shell variable. As a path it would be the working directory.
        if word.isEmpty { throw UsageError(message: "an argument is empty") }
        return word
    }

    /// Rejects options and operands that were not taken.
    package func finish() throws(UsageError) {
        if let name = occurrences.keys.min() { throw UsageError(message: "unknown argument \(name)") }
        if let first = operands.first { throw UsageError(message: "unknown argument \(first)") }
    }

    private mutating func take(_ name: String, isFlag: Bool) -> [Occurrence] {
        if isFlag { found?.flags.insert(name) } else { found?.valued.insert(name) }
        return occurrences.removeValue(forKey: name) ?? []
    }
}

extension Arguments {
    /// Takes `--name NUMBER`. Returns nil when it is absent.
    package mutating func integer(_ name: String, in range: ClosedRange<Int>) throws(UsageError) -> Int? {
        guard let text = try option(name) else { return nil }
        guard let number = OperatorNumber.integer(text), range.contains(number) else {
            let most = range.upperBound == .max ? "" : " to \(range.upperBound)"
            throw UsageError(message: "\(name) must be a whole number from \(range.lowerBound)\(most)")
        }
        return number
    }
}

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

/// A whole number as operators write it, in one form only: digits, without plus sign and leading zeros.
package enum OperatorNumber {
    /// Reads a number, or returns nil for other text. `Int` alone also accepts signs and leading zeros.
    package static func integer(_ text: some StringProtocol) -> Int? {
        guard let number = Int(text), String(number) == text else { return nil }
        return number
    }
}

/// A time as operators write it: a whole number and its unit, `90s`, `15m`, `12h` or `30d`.
package enum OperatorTime {
    /// Reads a time, or returns nil for other text.
    package static func duration(_ text: String) -> Duration? {
        let units: [Character: Int] = ["s": 1, "m": 60, "h": 3_600, "d": 86_400]
        guard let unit = text.last.flatMap({ units[$0] }), let number = OperatorNumber.integer(text.dropLast()),
            number >= 0,
            case let (seconds, overflow) = number.multipliedReportingOverflow(by: unit), !overflow
        else { return nil }
        return .seconds(seconds)
    }

    /// Returns whole seconds in the largest unit of which they are a multiple.
    package static func text(_ duration: Duration) -> String {
        let seconds = duration.components.seconds
        let units = [("d", Int64(86_400)), ("h", 3_600), ("m", 60)]
        for (unit, length) in units where seconds > 0 && seconds.isMultiple(of: length) {
            return "\(seconds / length)\(unit)"
        }
        return "\(seconds)s"
    }

    /// Returns the bounds for people.
    package static func text(_ range: ClosedRange<Duration>) -> String {
        "\(text(range.lowerBound)) to \(text(range.upperBound))"
    }
}

extension Arguments {
    /// Takes `--name TIME`. Returns nil when it is absent.
    package mutating func duration(_ name: String, in range: ClosedRange<Duration>) throws(UsageError) -> Duration? {
        guard let text = try option(name) else { return nil }
        guard let duration = OperatorTime.duration(text), range.contains(duration) else {
            throw UsageError(
                message: "\(name) must be a time such as 12h or 30d, from \(OperatorTime.text(range))")
        }
        return duration
    }
}
