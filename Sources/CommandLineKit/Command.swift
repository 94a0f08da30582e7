/// One subcommand.
package protocol Command: Sendable {
    /// The words that call it, for example `["migrate", "up"]`.
    static var words: [String] { get }
    /// One line for the overview.
    static var summary: String { get }
    /// Everything after the summary in the command's own help: options and what it does.
    static var help: String { get }

    /// Reads the options, then the operands. The caller refuses what is left over.
    ///
    /// It reads an option before it takes an operand and before it refuses anything that depends on another option: the
    /// options of a command are those that this reads from a command line without words (``OptionNames/init(of:)``).
    init(_ arguments: inout Arguments) throws(UsageError)

    /// Does it. Throws ``CommandFailure`` for what the caller has to mend.
    func run(_ console: Console) async throws
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
