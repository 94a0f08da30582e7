import HTTPCore
import SalternTesting
import Testing

@testable import SalternServer

/// What raises the alarm of failed requests is what the log calls an error, and nothing that a stranger can ask for.
@Suite struct StatusClassTests {
    @Test(arguments: [(200, 2), (404, 4), (499, 4), (500, 5), (501, 4), (502, 5), (503, 5), (504, 5), (505, 4)])
    func `log and metrics agree on what is the server's failure`(code: UInt16, statusClass: Int) {
        let log = CapturedLog()
        let metrics = RequestMetrics()
        let record = RequestRecord(
            requestID: RequestID(), trace: nil, route: "unmatched", status: HTTPStatus(code), duration: .zero)
        Log.captured(by: log).write(record)
        metrics.count(record)
        #expect(log.lines.joined().contains(#""level":"error""#) == (statusClass == 5))
        var text = PrometheusText()
        text.requests([metrics])
        let sample = #"saltern_http_requests_total{route="unmatched",status="\#(statusClass)xx"} 1"#
        #expect(String(decoding: text.bytes, as: UTF8.self).contains(sample))
    }
}
