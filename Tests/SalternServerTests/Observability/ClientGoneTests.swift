import HTTPCore
import Postgres
import SalternTesting
import Testing

@testable import SalternServer

/// A client that hangs up is no failure of the server.
@Suite struct ClientGoneTests {
    @Test(arguments: [true, false])
    func `a handler that was cancelled is logged below errors and counted as the client's`(inDatabase: Bool) {
        let error: any Error = inDatabase ? PostgresError.cancelled : CancellationError()
        let log = CapturedLog()
        let finisher = ResponseFinisher(
            log: .captured(by: log), metrics: RequestMetrics(), strictTransportSecurity: "max-age=1")
        let response = finisher.response(
            to: error, head: nil, requestID: RequestID(), trace: nil, route: "GET /v1/items", start: .now)
        #expect(response.status.code == 499)
        #expect(log.lines.count == 1)
        #expect(!log.lines.joined().contains(#""level":"error""#))
        #expect(log.lines.joined().contains("client_gone"))
    }

    @Test(arguments: [(PostgresError.cancelled, false), (.connectionLost, true)])
    func `a stream is logged as failed unless its client has gone`(error: PostgresError, isFailed: Bool) async throws {
        let log = CapturedLog()
        let finisher = ResponseFinisher(
            log: .captured(by: log), metrics: RequestMetrics(), strictTransportSecurity: "max-age=1")
        var response = Response(status: .ok, body: .stream(ResponseStream(isOpenEnded: false) { _ in throw error }))
        finisher.finish(
            &response, head: nil, requestID: RequestID(), trace: nil, route: "GET /v1/items", start: .now)
        guard case .stream(let stream) = response.body else { throw error }
        await #expect(throws: PostgresError.self) { try await stream.produce(NoBody()) }
        #expect(log.lines.joined().contains("stream_failed") == isFailed)
    }
}

private struct NoBody: ResponseBodyWriter {
    func write(_ bytes: [UInt8]) async throws(ResponseStreamEnded) {}
}
