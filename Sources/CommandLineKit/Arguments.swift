/// The words after the subcommand, taken one option at a time.
package struct Arguments {
    private var words: [String]

    package init(_ words: [String]) { self.words = words }

    /// Takes `--name VALUE` or `--name=VALUE`; nil when it is absent.
    package mutating func option(_ name: String) throws(UsageError) -> String? {
        var found: [String] = []
        while let value = try nextOption(name) { found.append(value) }
        guard found.count <= 1 else { throw UsageError(message: "\(name) may be given once") }
        return found.first
    }

    /// Takes every `--name VALUE`.
    package mutating func options(_ name: String) throws(UsageError) -> [String] {
        var found: [String] = []
        while let value = try nextOption(name) { found.append(value) }
        return found
    }

    /// Takes `--name`; whether it was there.
    package mutating func flag(_ name: String) -> Bool {
        guard let index = words.firstIndex(of: name) else { return false }
        words.remove(at: index)
        return true
    }

    /// Takes the next word that is no option. Ask after every option was taken.
    package mutating func word(_ meaning: String) throws(UsageError) -> String {
        guard let word = try optionalWord() else { throw UsageError(message: "\(meaning) is missing") }
        return word
    }

    /// Takes the next word that is no option; nil when there is none. Ask after every option was taken.
    package mutating func optionalWord() throws(UsageError) -> String? {
        guard let index = words.firstIndex(where: { !$0.hasPrefix("--") }) else { return nil }
        let word = words.remove(at: index)
        // A shell's variable that is not set: as a path it would be the folder where somebody happens to be.
        if word.isEmpty { throw UsageError(message: "an argument is empty") }
        return word
    }

    /// Refuses what nobody took.
    package func finish() throws(UsageError) {
        if let first = words.first { throw UsageError(message: "unknown argument \(first)") }
    }

    private mutating func nextOption(_ name: String) throws(UsageError) -> String? {
        guard let index = words.firstIndex(where: { $0 == name || $0.hasPrefix(name + "=") }) else { return nil }
        let word = words.remove(at: index)
        if word != name { return String(word.dropFirst(name.count + 1)) }
        guard index < words.count, !words[index].hasPrefix("--") else {
            throw UsageError(message: "\(name) needs a value")
        }
        return words.remove(at: index)
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
