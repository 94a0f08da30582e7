package import Foundation
import Synchronization

/// Standard output, standard error and the environment, handed to commands.
package struct Console: Sendable {
    package let environment: [String: String]
    /// The names of variables whose value is no UTF-8.
    package var unreadableVariables: [String] = []
    package var output: FileHandle
    package var error: FileHandle
    /// Whether somebody sits in front of standard error.
    package var isTerminal: Bool
    /// Somebody's wish that the command ends, when it is awaited.
    package var wish: Interruption.Wish?
    /// Whether scripts read this: then what is said beside the output is an object too.
    package var speaksJSON = false
    /// The next line that somebody types; nil when nobody can.
    package var answer: @Sendable () -> String?
    private let losses = OutputLosses()

    package init(
        environment: [String: String], output: FileHandle = .standardOutput, error: FileHandle = .standardError,
        isTerminal: Bool = false, answer: @escaping @Sendable () -> String? = { nil }
    ) {
        self.environment = environment
        self.output = output
        self.error = error
        self.isTerminal = isTerminal
        self.answer = answer
    }

    /// The process's own.
    package static func process() -> Console {
        let environment = ProcessEnvironment.process()
        var console = Console(environment: environment.variables)
        console.unreadableVariables = environment.unreadable
        console.isTerminal = isatty(STDERR_FILENO) == 1
        if isatty(STDIN_FILENO) == 1 { console.answer = { readLine() } }
        return console
    }

    /// Asks before something that cannot be undone.
    /// - Throws: ``CommandFailure`` unless somebody types `yes`.
    package func confirm(_ question: String) throws(CommandFailure) {
        writeError("\(question) Type yes: ")
        guard let answer = answer() else { throw CommandFailure("nobody is there to confirm it; see --yes") }
        guard answer == "yes" else { throw CommandFailure("not confirmed; nothing was done") }
    }

    /// Prints a line.
    package func print(_ line: String) { write(line + "\n") }

    package func write(_ text: String) { write(Array(text.utf8)) }

    /// Writes to standard output. What cannot be written is remembered: see ``hasLostOutput``.
    package func write(_ bytes: [UInt8]) {
        do { try output.write(contentsOf: Data(bytes)) } catch { losses.note() }
    }

    /// Whether something that was written did not arrive: a full disk, a reader that has gone.
    package var hasLostOutput: Bool { losses.areThere }

    /// Says something beside the output, on standard error: a line for people, an object for scripts.
    package func notice(_ message: String, code: String) {
        struct Report: Encodable {
            let code: String
            let messages: [String]
        }
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        if speaksJSON, let json = try? encoder.encode(["notice": Report(code: code, messages: [message])]) {
            writeError(String(decoding: json, as: UTF8.self) + "\n")
        } else {
            writeError(message + "\n")
        }
    }

    package func writeError(_ text: String) { try? error.write(contentsOf: Data(text.utf8)) }
}

/// Whether output was lost, for all copies of a console.
private final class OutputLosses: Sendable {
    private let isLost = Atomic(false)

    var areThere: Bool { isLost.load(ordering: .relaxed) }

    func note() { isLost.store(true, ordering: .relaxed) }
}
