import CommandLineKit
import HTTPCore
import Postgres

extension Console {
    /// Prints a JSON object for scripts.
    func printJSON(_ build: (inout JSONWriter) -> Void) {
        var writer = JSONWriter()
        writer.object(build)
        writeJSON(writer.finish() + [UInt8(ascii: "\n")])
    }
}

extension Timestamp {
    /// The time in RFC 3339, as in JSON.
    var utc: UTCTimestamp { UTCTimestamp(microsecondsSinceEpoch: unixMicroseconds) }

    /// The time in seconds, as in tables.
    var shown: String {
        var bytes: [UInt8] = []
        utc.append(to: &bytes, fractionDigits: 0)
        return String(decoding: bytes, as: UTF8.self)
    }
}

extension JSONWriter {
    /// Writes text, or null.
    mutating func member(_ name: String, _ text: String?) {
        if let text { member(name, text) } else { null(name) }
    }

    /// Writes a time, or null.
    mutating func member(_ name: String, _ moment: Timestamp?) {
        if let moment { member(name, moment.utc) } else { null(name) }
    }

    private mutating func null(_ name: String) {
        self.name(name)
        null()
    }
}
