import Foundation
import HTTPCore

/// Standard output, standard error and the environment, handed to commands.
struct Console: Sendable {
    let environment: [String: String]
    var output = FileHandle.standardOutput
    var error = FileHandle.standardError

    /// The process's own.
    static func process() -> Console { Console(environment: ProcessInfo.processInfo.environment) }

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
