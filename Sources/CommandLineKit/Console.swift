package import Foundation
import Synchronization

/// Standard output, standard error and the environment of a command.
package struct Console: Sendable {
    package let environment: [String: String]
    /// The names of variables that are not UTF-8.
    package var unreadableVariables: [String] = []
    /// True when an argument of the process is not UTF-8, so that its text here differs from the caller's.
    package var hasUnreadableWords = false
    package var output: FileHandle
    package var error: FileHandle
    /// True when a user can read standard error: it is a terminal.
    package var isTerminal: Bool
    /// True when standard output is a terminal.
    package var isOutputTerminal = false
    /// The request to end the command, if the command supports one.
    package var wish: Interruption.Wish?
    /// True when scripts read the output. Notices and errors are objects then.
    package var speaksJSON = false
    /// Reads the next line that the user types. Returns nil at the end of the input, and without a terminal.
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

    /// Creates the console of the process.
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

    /// Asks before an irreversible operation.
    /// - Throws: ``CommandFailure`` unless the user types `yes`.
    package func confirm(_ question: String) throws(CommandFailure) {
        if isTerminal || !speaksJSON { draw(VisibleText.visible(question) + " Type yes: ") }
        guard let answer = answer() else {
            throw CommandFailure("cannot ask for confirmation without a terminal; use --yes")
        }
        guard answer == "yes" else { throw CommandFailure("not confirmed; nothing was changed") }
    }

    /// Prints a line. Control and format characters are spelt (``VisibleText``).
    package func print(_ line: String) { put(Array((VisibleText.visible(line) + "\n").utf8)) }

    /// Prints lines. Control characters except line feeds, and format characters, are spelt.
    package func write(_ lines: String) { put(Array(VisibleText.lines(lines).utf8)) }

    /// Prints JSON, or a part of it. Control and format characters become JSON escapes.
    package func writeJSON(_ json: [UInt8]) { put(VisibleText.json(json)) }

    /// Prints content: unchanged, but on a terminal as text with control and format characters spelt.
    package func writeContent(_ bytes: [UInt8]) {
        put(isOutputTerminal ? Array(VisibleText.document(String(decoding: bytes, as: UTF8.self)).utf8) : bytes)
    }

    /// Writes to standard output. ``hasLostOutput`` reports a failure.
    private func put(_ bytes: [UInt8]) {
        do { try output.write(contentsOf: Data(bytes)) } catch { losses.note() }
    }

    /// True when a write failed: the disk is full, or the reader is closed.
    package var hasLostOutput: Bool { losses.areThere }

    /// Reports something besides the output, on standard error: a line for people, an object for scripts.
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

    /// Writes to standard error without escaping. Only for the program's own control characters; other parts of the
    /// text come from ``VisibleText``.
    package func draw(_ text: String) { try? error.write(contentsOf: Data(text.utf8)) }
}

/// Shares among copies of a console that output was lost.
private final class OutputLosses: Sendable {
    private let isLost = Atomic(false)

    var areThere: Bool { isLost.load(ordering: .relaxed) }

    func note() { isLost.store(true, ordering: .relaxed) }
}

/// The three descriptors that every process needs open.
package enum StandardDescriptors {
    /// Opens standard descriptors that the caller has closed, so that no other file or connection gets their numbers.
    ///
    /// Writing to them fails, and counts as lost output. Call this before anything else is opened.
    package static func occupy() {
        for descriptor: Int32 in 0...2 where fcntl(descriptor, F_GETFD) < 0 { _ = open("/dev/null", O_RDONLY) }
    }
}
