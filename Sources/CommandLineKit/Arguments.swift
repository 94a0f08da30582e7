/// The options and operands behind the words of a subcommand.
///
/// A word that begins with `-` is an option until the word `--`. Every word behind `--` is an operand, whatever it begins
/// with (POSIX XBD 12.2, guideline 10), and so is `-` alone. An option that takes a value has it behind `=` or as the next
/// word, whatever that begins with. Options may stand behind operands.
package struct Arguments {
    /// One appearance of an option.
    private struct Occurrence {
        let value: String?
        /// Whether option and value were one word, as in `--name=VALUE`.
        let isJoined: Bool
    }

    private var occurrences: [String: [Occurrence]] = [:]
    private var operands: [String] = []
    /// Filled while a command's options are found; nil when a command line is read.
    private var found: OptionNames?

    /// Reads a command line.
    /// - Parameter names: The options of the command.
    /// - Throws: ``UsageError`` for an unknown option, a missing value, and a value where none belongs.
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
        // An operand is missing, so the command may refuse. It has read its options by then.
        _ = try? C(&arguments)
        return arguments.found ?? OptionNames()
    }

    /// Takes `--name VALUE` or `--name=VALUE`; nil when it is absent.
    /// - Parameter isJoinable: Whether `--name=VALUE` is accepted. It is not where one word that was meant as an operand
    ///   would select what the command acts on.
    package mutating func option(_ name: String, isJoinable: Bool = true) throws(UsageError) -> String? {
        let taken = take(name, isFlag: false)
        guard taken.count <= 1 else { throw UsageError(message: "\(name) may be given once") }
        guard isJoinable || taken.first?.isJoined != true else {
            throw UsageError(message: "\(name) and its value are two words")
        }
        return taken.first?.value
    }

    /// Takes every `--name VALUE`.
    package mutating func options(_ name: String) throws(UsageError) -> [String] {
        take(name, isFlag: false).compactMap(\.value)
    }

    /// Takes `--name`. Returns whether it was there.
    package mutating func flag(_ name: String) -> Bool { !take(name, isFlag: true).isEmpty }

    /// Takes the next operand. A command takes its operands when it has taken all of its options.
    package mutating func word(_ meaning: String) throws(UsageError) -> String {
        guard let word = try optionalWord() else { throw UsageError(message: "\(meaning) is missing") }
        return word
    }

    /// Takes the next operand; nil when there is none. A command takes its operands when it has taken all of its options.
    package mutating func optionalWord() throws(UsageError) -> String? {
        guard !operands.isEmpty else { return nil }
        let word = operands.removeFirst()
        // A variable of the shell that is not set. As a path it would be the working directory.
        if word.isEmpty { throw UsageError(message: "an argument is empty") }
        return word
    }

    /// Refuses what was not taken.
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
    /// Takes `--name NUMBER`; nil when it is absent.
    package mutating func integer(_ name: String, in range: ClosedRange<Int>) throws(UsageError) -> Int? {
        guard let text = try option(name) else { return nil }
        guard let number = OperatorNumber.integer(text), range.contains(number) else {
            let most = range.upperBound == .max ? "" : " to \(range.upperBound)"
            throw UsageError(message: "\(name) must be a whole number from \(range.lowerBound)\(most)")
        }
        return number
    }
}
