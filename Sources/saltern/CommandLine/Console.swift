import Foundation

/// Standard output, standard error and the environment, handed to commands.
struct Console: Sendable {
    let environment: [String: String]
    var output = FileHandle.standardOutput
    var error = FileHandle.standardError

    /// The process's own.
    static func process() -> Console { Console(environment: ProcessInfo.processInfo.environment) }

    /// Prints a line.
    func print(_ line: String) { write(line + "\n") }

    func write(_ text: String) { write(Array(text.utf8)) }

    func write(_ bytes: [UInt8]) { output.write(Data(bytes)) }

    func writeError(_ text: String) { error.write(Data(text.utf8)) }
}
