import CommandLineKit
import HTTPCore

extension Console {
    /// Prints an object, for scripts.
    func printJSON(_ build: (inout JSONWriter) -> Void) {
        var writer = JSONWriter()
        writer.object(build)
        print(String(decoding: writer.finish(), as: UTF8.self))
    }
}
