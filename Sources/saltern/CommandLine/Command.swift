/// One subcommand of `saltern`.
protocol Command: Sendable {
    /// The words that call it, for example `["migrate", "up"]`.
    static var words: [String] { get }
    /// One line for the overview.
    static var summary: String { get }
    /// Everything after the summary in the command's own help: options and what it does.
    static var help: String { get }

    /// Reads the options; what is left over is refused by the caller.
    init(_ arguments: inout Arguments) throws(UsageError)

    /// Does it. Throws ``CommandFailure`` for what the operator has to mend.
    func run(_ console: Console) async throws
}

/// The words of the command line were wrong; exit status 64 (`EX_USAGE`).
struct UsageError: Error {
    let message: String
}

/// The command could not do its work; exit status 1.
struct CommandFailure: Error {
    /// One line for each thing to mend.
    let messages: [String]

    init(_ messages: String...) { self.messages = messages }
    init(_ messages: [String]) { self.messages = messages }
}
