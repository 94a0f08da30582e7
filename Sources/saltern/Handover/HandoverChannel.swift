import CUnixSocket
import EventLoop
import Foundation
import HTTPServer

/// What two servers say to each other when one takes over from the other, over a Unix socket.
///
/// The old one sends one line, `saltern 1 api=2 metrics=1`, with as many descriptors. The new one gets everything ready and
/// says `ready`. The old one gives way and answers `yours`, and only then the new one accepts connections, and moves to the
/// path. Whichever of them dies or hangs, and whenever: one of them serves, and can be taken over from. While the old one
/// has not answered it is that one.
struct HandoverMessage: Equatable {
    /// How many sockets there are for the API, and for metrics.
    var apiCount: Int
    var metricsCount: Int

    static let readiness = "ready\n"
    static let yield = "yours\n"
    static let descriptorLimit = Int(SALTERN_DESCRIPTOR_LIMIT)

    init(apiCount: Int, metricsCount: Int) {
        self.apiCount = apiCount
        self.metricsCount = metricsCount
    }

    var text: String { "saltern 1 api=\(apiCount) metrics=\(metricsCount)\n" }

    init?(_ text: String) {
        let words = text.split(separator: " ")
        guard words.count == 4, words[0] == "saltern", words[1] == "1", text.hasSuffix("\n"),
            let api = Self.number(words[2], "api="), let metrics = Self.number(words[3].dropLast(), "metrics=")
        else { return nil }
        self.init(apiCount: api, metricsCount: metrics)
    }

    private static func number(_ word: Substring, _ name: String) -> Int? {
        guard word.hasPrefix(name), let number = Int(word.dropFirst(name.count)) else { return nil }
        return (0...descriptorLimit).contains(number) ? number : nil
    }
}

/// Why a server cannot take over, or be taken over from.
struct HandoverFailure: Error, CustomStringConvertible {
    let description: String

    init(_ operation: String, _ path: String, _ code: CInt = errno) {
        description = "SALTERN_HANDOVER_SOCKET: \(operation) \(path): \(String(cString: strerror(code)))"
    }

    init(_ text: String) { description = "SALTERN_HANDOVER_SOCKET: \(text)" }
}
