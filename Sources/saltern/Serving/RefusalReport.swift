import HTTPServer
import SalternServer
import Synchronization

/// Logs connections and headers that a server rejects or ignores without a response. Each event is logged immediately,
/// and then at most once a minute.
struct RefusalReport: Sendable {
    let server: HTTPServer
    let metrics: [RequestMetrics]
    let log: Log

    private static let interval = 60

    /// Compares the counters every second until the task is cancelled.
    func run() async {
        var logged = Counts()
        var secondsLeft = Seconds()
        while (try? await Task.sleep(for: .seconds(1))) != nil {
            let present = Counts(server.statistics, metrics)
            if isDue(&secondsLeft.dropped, present.dropped > logged.dropped) {
                log.write(
                    .warning, "connections_dropped",
                    ["count": present.dropped - logged.dropped, "ofAddress": present.ofAddress - logged.ofAddress])
                logged.dropped = present.dropped
                logged.ofAddress = present.ofAddress
            }
            if isDue(&secondsLeft.headers, present.headers > logged.headers) {
                log.write(.warning, "proxy_headers_refused", ["count": present.headers - logged.headers])
                logged.headers = present.headers
            }
            if isDue(&secondsLeft.forwards, present.forwards > logged.forwards) {
                log.write(.warning, "forwarded_for_ignored", ["count": present.forwards - logged.forwards])
                logged.forwards = present.forwards
            }
        }
    }

    /// Returns true if an event with new occurrences is to be logged now, and starts its minute.
    private func isDue(_ secondsLeft: inout Int, _ hasOccurred: Bool) -> Bool {
        secondsLeft = max(secondsLeft - 1, 0)
        guard secondsLeft == 0, hasOccurred else { return false }
        secondsLeft = Self.interval
        return true
    }

    private struct Seconds {
        var dropped = 0
        var headers = 0
        var forwards = 0
    }

    private struct Counts {
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
