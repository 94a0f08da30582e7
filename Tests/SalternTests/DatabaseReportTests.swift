import HTTPCore
import Postgres
import SalternServer
import SalternTesting
import Testing

@testable import saltern

@Suite struct DatabaseReportTests {
    private func lines(_ events: [PostgresEvent]) -> [String] {
        let captured = CapturedLog()
        let report = DatabaseReport(
            log: Log(minimumLevel: .debug, sink: captured) { UTCTimestamp(microsecondsSinceEpoch: 0) })
        for event in events { report.take(event) }
        return captured.lines
    }

    @Test func `why the database cannot be reached is said once, however many loops find out, and when that changes`() {
        let wrongPassword = PostgresEvent.cannotConnect(.server(.invalidPassword))
        let refused = PostgresEvent.cannotConnect(.system(111))
        let lines = lines([wrongPassword, wrongPassword, refused, refused, .connected, .connected, wrongPassword])
        let events = lines.map {
            $0.contains("database_connected") ? "connected" : $0.contains("28P01") ? "28P01" : "errno"
        }
        #expect(events == ["28P01", "errno", "connected", "28P01"])
        #expect(lines[0].contains(#""level":"error""#) && lines[0].contains("SQLSTATE 28P01"))
        #expect(lines[1].contains("errno 111"))
    }

    @Test func `that commits stall is said when the first loop does and when the last goes on`() {
        let lines = lines([.commitsStalled, .commitsStalled, .commitsResumed, .commitsResumed])
        #expect(lines.count == 2)
        #expect(lines[0].contains("database_commits_stalled") && lines[1].contains("database_commits_resumed"))
    }

    @Test func `a statement that nobody waits for is complained about once for each code`() {
        let lines = lines([
            .laterStatementRefused(.insufficientPrivilege), .laterStatementRefused(.insufficientPrivilege),
        ])
        #expect(lines.count == 1 && lines[0].contains("42501"))
    }
}
