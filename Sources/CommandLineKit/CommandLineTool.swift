import Foundation

/// Finds the subcommand, reads its options, runs it, and converts thrown errors into an exit status.
package struct CommandLineTool: Sendable {
    /// One line of the table of subcommands.
    private struct Entry: Sendable {
        let words: [String]
        let summary: String
        let usage: [String]
        let example: String
        let help: String
        let options: OptionNames
        let run: @Sendable (_ words: [String], _ console: Console) async throws -> Void

        var name: String { words.joined(separator: " ") }

        init<C: Command>(_ type: C.Type) {
            words = C.words
            summary = C.summary
            usage = C.usage
            example = C.example
            help = C.help
            let options = OptionNames(of: type)
            self.options = options
            run = { words, console in
                var arguments = try Arguments(words, options)
                let command = try C(&arguments)
                try arguments.finish()
                try await command.run(console)
            }
        }
    }

    private let name: String
    private let purpose: String
    private let notes: String
    private let entries: [Entry]
    private let reportsJSON: Bool
    private let variables: Set<String>
    private let explain: @Sendable (any Error) -> CommandFailure?

    /// The exit status of a usage error (`EX_USAGE`).
    package static let usageStatus: Int32 = 64
    /// The exit status when the output could not be written (`EX_IOERR`).
    package static let lostOutputStatus: Int32 = 74

    /// - Parameters:
    ///   - purpose: The overview's first text, after the name.
    ///   - notes: The overview's last text.
    ///   - commands: A command whose words begin with all words of another precedes it.
    ///   - reportsJSON: Writes errors as an object if `--json` is given.
    ///   - variables: Variables that the tool reads besides those that begin with `SALTERN_`.
    ///   - explain: Returns the failure for an error that is no ``CommandFailure``, or nil for an unknown error.
    package init(
        _ name: String, purpose: String, notes: String, commands: [any Command.Type], reportsJSON: Bool = false,
        variables: Set<String> = [], explain: @escaping @Sendable (any Error) -> CommandFailure? = { _ in nil }
    ) {
        self.name = name
        self.purpose = purpose
        self.notes = notes
        entries = commands.map { command in Self.entry(command) }
        self.reportsJSON = reportsJSON
        self.variables = variables
        self.explain = explain
    }

    private static func entry<C: Command>(_ type: C.Type) -> Entry { Entry(type) }

    /// Runs the command that `words` name.
    /// - Returns: The exit status: 0, that of a ``CommandFailure``, or 64 for a usage error. 74 if the command
    ///   succeeded and part of its output could not be written.
    package func run(_ words: [String], console: Console = .process()) async -> Int32 {
        var console = console
        if reportsJSON {
            let entry = entry(words)
            console.speaksJSON =
                entry?.options.areAsked(["--json"], in: Array(words.dropFirst(entry?.words.count ?? 0)))
                ?? words.contains("--json")
        }
        let outcome = await outcome(words, console)
        guard console.hasLostOutput, !outcome.isTold else { return outcome.status }
        report(.lostOutput, of: entry(words), console)
        return Self.lostOutputStatus
    }

    /// Returns the options of the command that `words` name, or nil without such a command.
    package func options(of words: [String]) -> OptionNames? { entry(words)?.options }

    /// The end of a command.
    private struct Outcome {
        var status: Int32 = 0
        /// True when standard error has the reason.
        var isTold = false

        static let done = Outcome()
        static let wrongWords = Outcome(status: usageStatus, isTold: true)
    }

    /// Returns the words before the first option.
    private static func spoken(_ words: ArraySlice<String>) -> [String] {
        Array(words.prefix { !OptionNames.isOption($0) })
    }

    private func entry(_ words: [String]) -> Entry? {
        let spoken = Self.spoken(words[...])
        return entries.first { spoken.starts(with: $0.words) }
    }

    private func outcome(_ words: [String], _ console: Console) async -> Outcome {
        guard let first = words.first else {
            console.writeError(overview)
            return .wrongWords
        }
        if words == ["--help"] || words == ["-h"] || words == ["help"] {
            console.write(overview)
            return .done
        }
        if words == ["--version"] { return await outcome(["version"], console) }
        let words = first == "help" ? Self.spoken(words.dropFirst()) + ["--help"] : words
        if let entry = entry(words) {
            let rest = Array(words.dropFirst(entry.words.count))
            if entry.options.areAsked(OptionNames.help, in: rest) {
                console.write(help(of: entry))
                return .done
            }
            return await run(entry, rest, console)
        }
        let spoken = Self.spoken(words[...])
        let asksForHelp = OptionNames().areAsked(OptionNames.help, in: words)
        let group = entries.filter { $0.words.first == spoken.first && spoken.count == 1 }
        guard !group.isEmpty else {
            let message = "unknown command '\(spoken.joined(separator: " "))'; see \(name) --help"
            report(CommandFailure(message, status: Self.usageStatus, code: "usage"), of: nil, console)
            return .wrongWords
        }
        if asksForHelp {
            console.write(Self.table(of: group))
            return .done
        }
        console.writeError("\(name) \(spoken[0]) needs one of:\n\(Self.table(of: group))")
        return .wrongWords
    }

    private func run(_ entry: Entry, _ words: [String], _ console: Console) async -> Outcome {
        do {
            // A value that is not UTF-8 would be read as another value.
            let unreadable = console.unreadableVariables.filter { $0.hasPrefix("SALTERN_") || variables.contains($0) }
            guard unreadable.isEmpty else { throw CommandFailure(unreadable.map { "\($0) is not UTF-8" }) }
            guard !console.hasUnreadableWords else { throw UsageError(message: "an argument is not UTF-8") }
            try await entry.run(words, console)
            return .done
        } catch {
            let failure: CommandFailure
            if let error = error as? UsageError {
                failure = CommandFailure(
                    "\(error.message); see \(name) \(entry.name) --help", status: Self.usageStatus, code: "usage")
            } else {
                failure = error as? CommandFailure ?? explain(error) ?? CommandFailure("\(error)")
            }
            report(failure, of: entry, console)
            return Outcome(status: failure.status, isTold: !failure.messages.isEmpty)
        }
    }

    private func report(_ failure: CommandFailure, of entry: Entry?, _ console: Console) {
        struct Report: Encodable {
            let code: String
            let messages: [String]
            let status: Int32
        }
        if failure.messages.isEmpty { return }
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        let report = Report(code: failure.code, messages: failure.messages, status: failure.status)
        if console.speaksJSON, let json = try? encoder.encode(["error": report]) {
            console.writeErrorJSON(Array(json))
        } else {
            let speaker = [name, entry?.name].compactMap(\.self).joined(separator: " ")
            for message in failure.messages { console.printError("\(speaker): \(message)") }
        }
    }

    private func help(of entry: Entry) -> String {
        let calls = entry.usage.enumerated().map { index, operands in
            let call = "\(index == 0 ? "usage:" : "      ") \(name) \(entry.name)"
            return operands.isEmpty ? call : "\(call) \(operands)"
        }
        return """
            \(name) \(entry.name): \(entry.summary)

            \(calls.joined(separator: "\n"))

            \(entry.help)

            Example:
              \(entry.example)

            """
    }

    private var overview: String {
        """
        \(name): \(purpose)

        usage: \(name) COMMAND [OPTIONS]

        \(Self.table(of: entries))
        \(notes)
        `\(name) COMMAND --help` describes a command.

        """
    }

    private static func table(of entries: [Entry]) -> String {
        let width = entries.map(\.name.count).max() ?? 0
        return entries.map { entry in
            let padding = String(repeating: " ", count: width - entry.name.count)
            let lines = wrapped(entry.summary, to: columns - width - 4)
            return
                "  \(entry.name)\(padding)  \(lines.joined(separator: "\n" + String(repeating: " ", count: width + 4)))\n"
        }.joined()
    }

    /// The width of help texts, in columns of a terminal.
    private static let columns = 80

    private static func wrapped(_ text: String, to width: Int) -> [String] {
        var lines: [String] = []
        for word in text.split(separator: " ") {
            if let line = lines.last, line.count + 1 + word.count <= width {
                lines[lines.count - 1] = "\(line) \(word)"
            } else {
                lines.append(String(word))
            }
        }
        return lines
    }
}
