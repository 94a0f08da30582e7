import Foundation
import HTTPCore

/// Standard output, standard error and the environment, handed to commands.
struct Console: Sendable {
    let environment: [String: String]
    var output = FileHandle.standardOutput
    var error = FileHandle.standardError
    /// Whether somebody sits in front of standard error.
    var isTerminal = false
    /// The next line that somebody types; nil when nobody can.
    var answer: @Sendable () -> String? = { nil }

    /// The process's own.
    static func process() -> Console {
        var console = Console(environment: ProcessInfo.processInfo.environment)
        console.isTerminal = isatty(STDERR_FILENO) == 1
        if isatty(STDIN_FILENO) == 1 { console.answer = { readLine() } }
        return console
    }

    /// Asks before something that cannot be undone.
    /// - Throws: ``CommandFailure`` unless somebody types `yes`.
    func confirm(_ question: String) throws(CommandFailure) {
        writeError("\(question) Type yes: ")
        guard let answer = answer() else { throw CommandFailure("nobody is there to confirm it; see --yes") }
        guard answer == "yes" else { throw CommandFailure("not confirmed; nothing was done") }
    }

    /// Prints a line.
    func print(_ line: String) { write(line + "\n") }

    /// Prints an object, for scripts.
    func printJSON(_ build: (inout JSONWriter) -> Void) {
        var writer = JSONWriter()
        writer.object(build)
        print(String(decoding: writer.finish(), as: UTF8.self))
    }

    func write(_ text: String) { write(Array(text.utf8)) }

    /// Writes to standard output. A reader that has gone, such as `head`, misses nothing that it wanted.
    func write(_ bytes: [UInt8]) { try? output.write(contentsOf: Data(bytes)) }

    func writeError(_ text: String) { try? error.write(contentsOf: Data(text.utf8)) }
}
