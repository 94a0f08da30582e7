/// One subcommand.
package protocol Command: Sendable {
    /// The words that call it, for example `["migrate", "up"]`.
    static var words: [String] { get }
    /// An imperative verb and its object, at most 60 characters.
    static var summary: String { get }
    /// The operands and options after the command's words, one element for each form of the call.
    static var usage: [String] { get }
    /// A line for a shell that calls the command.
    static var example: String { get }
    /// The options, then what the command does, in lines of at most 80 columns.
    static var help: String { get }

    /// Reads the options, then the operands. The caller refuses what is left over.
    ///
    /// It reads an option before it takes an operand and before it refuses anything that depends on another option: the
    /// options of a command are those that this reads from a command line without words (``OptionNames/init(of:)``).
    init(_ arguments: inout Arguments) throws(UsageError)

    /// Does it. Throws ``CommandFailure`` for what the caller has to mend.
    func run(_ console: Console) async throws
}

extension Command {
    package static var usage: [String] { ["[OPTIONS]"] }
}

/// The words of the command line were wrong; exit status 64 (`EX_USAGE`).
package struct UsageError: Error {
    package let message: String

    package init(message: String) { self.message = message }
}

/// The command could not do its work.
package struct CommandFailure: Error {
    /// One line for each thing to mend.
    package let messages: [String]
    /// What the process ends with.
    package var status: Int32 = 1
    /// What scripts know it by.
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
    /// A part of the output could not be written: the disk is full, the reader has gone, or standard output is closed.
    package static let lostOutput = CommandFailure(
        "the output cannot be written", status: CommandLineTool.lostOutputStatus, code: "output_unusable")
}
