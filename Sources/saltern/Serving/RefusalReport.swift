import HTTPServer
import SalternServer
import Synchronization

/// Logs what a server refuses or ignores without a reply of its own: at once, and then at most once a minute. An operator
/// sees such connections nowhere else.
struct RefusalReport: Sendable {
    let server: HTTPServer
    let metrics: [RequestMetrics]
    let log: Log

    private static let interval = 60

    /// Looks every second, until it is cancelled.
    func run() async {
        var told = Counts()
        var secondsLeft = 0
        while (try? await Task.sleep(for: .seconds(1))) != nil {
            secondsLeft = max(secondsLeft - 1, 0)
            let present = Counts(server.statistics, metrics)
            guard secondsLeft == 0, present != told else { continue }
            write(present, since: told)
            told = present
            secondsLeft = Self.interval
        }
    }

    private func write(_ present: Counts, since told: Counts) {
        if present.dropped > told.dropped {
            log.write(
                .warning, "connections_dropped",
                ["count": present.dropped - told.dropped, "ofAddress": present.ofAddress - told.ofAddress])
        }
        if present.headers > told.headers {
            log.write(.warning, "proxy_headers_refused", ["count": present.headers - told.headers])
        }
        if present.forwards > told.forwards {
            log.write(.warning, "forwarded_for_ignored", ["count": present.forwards - told.forwards])
        }
    }

    private struct Counts: Equatable {
        var dropped = 0
        var ofAddress = 0
        var headers = 0
        var forwards = 0

        init() {}

        init(_ statistics: HTTPServerStatistics, _ metrics: [RequestMetrics]) {
            dropped = statistics.droppedConnections.load(ordering: .relaxed)
            ofAddress = statistics.droppedOfAddress.load(ordering: .relaxed)
            headers = statistics.refusedProxyHeaders.load(ordering: .relaxed)
            forwards = metrics.reduce(0) { $0 + $1.ignoredForwards }
        }
    }
}
