import Foundation

/// Finds the subcommand, reads its options, runs it, and turns what it throws into an exit status.
package struct CommandLineTool: Sendable {
    /// One line of the table of subcommands.
    private struct Entry: Sendable {
        let words: [String]
        let summary: String
        let help: String
        let run: @Sendable (_ words: [String], _ console: Console) async throws -> Void

        var name: String { words.joined(separator: " ") }

        init<C: Command>(_ type: C.Type) {
            words = C.words
            summary = C.summary
            help = C.help
            run = { words, console in
                var arguments = Arguments(words)
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
    private let lostOutputStatus: Int32?
    private let explain: @Sendable (any Error) -> CommandFailure?

    /// The exit status when the words were wrong (`EX_USAGE`).
    package static let usageStatus: Int32 = 64

    /// - Parameters:
    ///   - purpose: What the overview begins with, after the name.
    ///   - notes: What it ends with.
    ///   - commands: Where one's words begin with all the words of another, it comes first.
    ///   - reportsJSON: Whether `--json` makes one object of an error too.
    ///   - lostOutputStatus: What it ends with when its output could not be written; nil when nobody minds.
    ///   - explain: Says what an error means that is no ``CommandFailure``; nil when it does not know.
    package init(
        _ name: String, purpose: String, notes: String, commands: [any Command.Type], reportsJSON: Bool = false,
        lostOutputStatus: Int32? = nil,
        explain: @escaping @Sendable (any Error) -> CommandFailure? = { _ in nil }
    ) {
        self.name = name
        self.purpose = purpose
        self.notes = notes
        entries = commands.map { command in Self.entry(command) }
        self.reportsJSON = reportsJSON
        self.lostOutputStatus = lostOutputStatus
        self.explain = explain
    }

    private static func entry<C: Command>(_ type: C.Type) -> Entry { Entry(type) }

    /// Runs the command that `words` name.
    /// - Returns: the process's exit status: 0, that of a ``CommandFailure``, 64 when the words were wrong, and
    ///   `lostOutputStatus` when all is well but what was asked for could not be written.
    package func run(_ words: [String], console: Console = .process()) async -> Int32 {
        var console = console
        console.speaksJSON = reportsJSON && words.contains("--json")
        let outcome = await outcome(words, console)
        guard console.hasLostOutput, !outcome.isTold, let lostOutputStatus else { return outcome.status }
        report(
            CommandFailure("the output cannot be written", status: lostOutputStatus, code: "output_unusable"),
            of: entry(words), console)
        return lostOutputStatus
    }

    /// How a command has ended.
    private struct Outcome {
        var status: Int32 = 0
        /// Whether standard error says why.
        var isTold = false

        static let done = Outcome()
        static let wrongWords = Outcome(status: usageStatus, isTold: true)
    }

    private func entry(_ words: [String]) -> Entry? {
        let spoken = Array(words.prefix { !$0.hasPrefix("-") })
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
        let words = first == "help" ? Array(words.dropFirst()) + ["--help"] : words
        let asksForHelp = words.contains("--help") || words.contains("-h")
        let spoken = Array(words.prefix { !$0.hasPrefix("-") })
        if let entry = entry(words) {
            if asksForHelp {
                console.write("\(name) \(entry.name): \(entry.summary)\n\n\(entry.help)\n")
                return .done
            }
            return await run(entry, Array(words.dropFirst(entry.words.count)), console)
        }
        let group = entries.filter { $0.words.first == spoken.first && spoken.count == 1 }
        guard !group.isEmpty else {
            console.writeError("\(name): unknown command '\(spoken.joined(separator: " "))'; see \(name) --help\n")
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
            // What is shown as something else would be taken for that.
            let unreadable = console.unreadableVariables.filter { $0.hasPrefix("SALTERN_") }
            guard unreadable.isEmpty else { throw CommandFailure(unreadable.map { "\($0) is not UTF-8" }) }
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
            console.writeError(String(decoding: json, as: UTF8.self) + "\n")
        } else {
            let speaker = [name, entry?.name].compactMap(\.self).joined(separator: " ")
            for message in failure.messages { console.writeError("\(speaker): \(message)\n") }
        }
    }

    private var overview: String {
        """
        \(name): \(purpose)

        usage: \(name) COMMAND [OPTIONS]

        \(Self.table(of: entries))
        \(notes)
        `\(name) COMMAND --help` says more about a command.

        """
    }

    private static func table(of entries: [Entry]) -> String {
        let width = entries.map(\.name.count).max() ?? 0
        return entries.map { entry in
            let padding = String(repeating: " ", count: width - entry.name.count)
            return "  \(entry.name)\(padding)  \(entry.summary)\n"
        }.joined()
    }
}
