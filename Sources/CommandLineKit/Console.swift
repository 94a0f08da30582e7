package import Foundation
import Synchronization

/// Standard output, standard error and the environment, handed to commands.
package struct Console: Sendable {
    package let environment: [String: String]
    /// The names of variables whose value is no UTF-8.
    package var unreadableVariables: [String] = []
    /// Whether an argument of the process is no UTF-8, and so another text here than the caller's.
    package var hasUnreadableWords = false
    package var output: FileHandle
    package var error: FileHandle
    /// Whether somebody sits in front of standard error.
    package var isTerminal: Bool
    /// Whether standard output is a terminal.
    package var isOutputTerminal = false
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
        console.hasUnreadableWords = ProcessEnvironment.hasUnreadableWords
        console.isTerminal = isatty(STDERR_FILENO) == 1
        console.isOutputTerminal = isatty(STDOUT_FILENO) == 1
        if isatty(STDIN_FILENO) == 1 { console.answer = { readLine() } }
        return console
    }

    /// Asks before something that cannot be undone.
    /// - Throws: ``CommandFailure`` unless somebody types `yes`.
    package func confirm(_ question: String) throws(CommandFailure) {
        if isTerminal || !speaksJSON { draw(VisibleText.visible(question) + " Type yes: ") }
        guard let answer = answer() else {
            throw CommandFailure("cannot ask for confirmation without a terminal; use --yes")
        }
        guard answer == "yes" else { throw CommandFailure("not confirmed; nothing was changed") }
    }

    /// Prints a line. Characters that a terminal obeys are spelt (``VisibleText``).
    package func print(_ line: String) { put(Array((VisibleText.visible(line) + "\n").utf8)) }

    /// Prints lines. Characters that a terminal obeys are spelt, but for line feeds.
    package func write(_ lines: String) { put(Array(VisibleText.lines(lines).utf8)) }

    /// Prints JSON, or a part of it. Characters that a terminal obeys are escaped as JSON does.
    package func writeJSON(_ json: [UInt8]) { put(VisibleText.json(json)) }

    /// Prints content: byte for byte, but on a terminal as text whose obeyed characters are spelt.
    package func writeContent(_ bytes: [UInt8]) {
        put(isOutputTerminal ? Array(VisibleText.document(String(decoding: bytes, as: UTF8.self)).utf8) : bytes)
    }

    /// Writes to standard output. What cannot be written is remembered: see ``hasLostOutput``.
    private func put(_ bytes: [UInt8]) {
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
            writeErrorJSON(Array(json))
        } else {
            printError(message)
        }
    }

    /// Writes a line to standard error.
    package func printError(_ line: String) { draw(VisibleText.visible(line) + "\n") }

    /// Writes lines to standard error.
    package func writeError(_ lines: String) { draw(VisibleText.lines(lines)) }

    /// Writes an object to standard error, and a line end.
    func writeErrorJSON(_ json: [UInt8]) { try? error.write(contentsOf: Data(VisibleText.json(json) + [0x0A])) }

    /// Writes to standard error what the terminal obeys: for the program's own control characters, and with nothing in it
    /// that is not ``VisibleText``.
    package func draw(_ text: String) { try? error.write(contentsOf: Data(text.utf8)) }
}

/// Whether output was lost, for all copies of a console.
private final class OutputLosses: Sendable {
    private let isLost = Atomic(false)

    var areThere: Bool { isLost.load(ordering: .relaxed) }

    func note() { isLost.store(true, ordering: .relaxed) }
}
