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
