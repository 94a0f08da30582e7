import CommandLineKit
import HTTPCore

extension Console {
    /// Prints a JSON object for scripts.
    func printJSON(_ build: (inout JSONWriter) -> Void) {
        var writer = JSONWriter()
        writer.object(build)
        writeJSON(writer.finish() + [UInt8(ascii: "\n")])
    }
}
