import CUnixSocket
import EventLoop
import Foundation
import HTTPServer

/// A message of the handover protocol between two servers, over a Unix socket.
///
/// The old server sends one line, `saltern 1 api=2 metrics=1`, with as many descriptors. The new one prepares and sends
/// `ready`. The old one stops accepting and replies `yours`. Only then the new one accepts connections and moves to the
/// path. Until the reply, the old server serves. Whichever of them dies or hangs at any time, one of them serves and
/// can hand over again.
struct HandoverMessage: Equatable {
    /// The number of sockets for the API, and for metrics.
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

/// The reason why a handover failed.
struct HandoverFailure: Error, CustomStringConvertible {
    let description: String

    init(_ operation: String, _ path: String, _ code: CInt = errno) {
        description = "SALTERN_HANDOVER_SOCKET: \(operation) \(path): \(String(cString: strerror(code)))"
    }

    init(_ text: String) { description = "SALTERN_HANDOVER_SOCKET: \(text)" }
}
