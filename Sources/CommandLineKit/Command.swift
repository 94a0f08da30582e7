/// One subcommand.
package protocol Command: Sendable {
    /// The words that select the command, for example `["migrate", "up"]`.
    static var words: [String] { get }
    /// An imperative verb and its object, at most 60 characters.
    static var summary: String { get }
    /// The operands and options after the command's words, one element for each form of the call.
    static var usage: [String] { get }
    /// A shell command line with the command, as an example.
    static var example: String { get }
    /// Describes the options, then the command, in lines of at most 80 columns.
    static var help: String { get }

    /// Reads the options, then the operands. The caller rejects the rest.
    ///
    /// Read each option before any operand, and before any check that depends on another option. A call without words
    /// must read all of the command's options (``OptionNames/init(of:)``).
    init(_ arguments: inout Arguments) throws(UsageError)

    /// Runs the command. Throws ``CommandFailure`` for a fault that the caller can correct.
    func run(_ console: Console) async throws
}

extension Command {
    package static var usage: [String] { ["[OPTIONS]"] }
}

/// A usage error; exit status 64 (`EX_USAGE`).
package struct UsageError: Error {
    package let message: String

    package init(message: String) { self.message = message }
}

/// A failure of the command.
package struct CommandFailure: Error {
    /// One line for each fault to correct.
    package let messages: [String]
    /// The exit status of the process.
    package var status: Int32 = 1
    /// The stable name of the failure, for scripts.
    package var code = "failed"

    package init(_ messages: String...) { self.messages = messages }
    package init(_ messages: [String]) { self.messages = messages }

    package init(_ message: String, status: Int32, code: String) {
        self.init([message], status: status, code: code)
    }

    package init(_ messages: [String], status: Int32, code: String) {
        self.messages = messages
        self.status = status
        self.code = code
    }
}

extension CommandFailure {
    /// Part of the output could not be written: the disk is full, the reader is closed, or standard output is closed.
    package static let lostOutput = CommandFailure(
        "the output cannot be written", status: CommandLineTool.lostOutputStatus, code: "output_unusable")
}
