internal import HTTPCore
internal import Postgres

/// The last step of every reply: errors become responses here and nowhere else, every reply gets its security
/// fields, and the request is logged and counted.
final class ResponseFinisher: Sendable {
    let log: Log
    let metrics: RequestMetrics
    /// What every reply carries.
    private let securityFields: HTTPFields
    /// The value of `Strict-Transport-Security`; nil to send none.
    private let strictTransportSecurity: String?

    init(log: Log, metrics: RequestMetrics, strictTransportSecurity: String?) {
        self.log = log
        self.metrics = metrics
        self.strictTransportSecurity = strictTransportSecurity
        // A proxy that compresses a reply makes its entity tag a weak one (RFC 9110 §8.8.1), which no change can name.
        securityFields = ["Cache-Control": "no-store, no-transform", "X-Content-Type-Options": "nosniff"]
    }

    /// Turns what a handler threw into the reply.
    func response(
        to error: any Error, head: RequestHead?, requestID: RequestID, trace: TraceParent?, route: String,
        start: ContinuousClock.Instant, accountID: AccountID? = nil
    ) -> Response {
        let problem = problem(for: error, requestID: requestID)
        var response = problem.response(requestID: requestID)
        finish(
            &response, head: head, requestID: requestID, trace: trace, route: route, start: start, accountID: accountID,
            problemCode: problem.code)
        return response
    }

    /// Makes the reply of what a handler returned.
    /// - Parameter head: What is answered; nil when that is not a request.
    func finish(
        _ response: inout Response, head: RequestHead?, requestID: RequestID, trace: TraceParent?, route: String,
        start: ContinuousClock.Instant, accountID: AccountID? = nil, problemCode: String? = nil
    ) {
        if case .stream(let stream) = response.body {
            response.body = .stream(reportingErrors(of: stream, requestID: requestID))
            // Without it nginx keeps what was written until its buffer is full, and the head as well.
            response.fields.append("X-Accel-Buffering", "no")
        }
        response.fields.append(contentsOf: securityFields)
        // An address is never a host of this field, and localhost is other programs' as well (RFC 6797 §8.1.1).
        if let strictTransportSecurity, head?.hasDomainName ?? false {
            response.fields.append("Strict-Transport-Security", strictTransportSecurity)
        }
        response.fields.append("X-Request-Id", requestID.description)
        let record = RequestRecord(
            requestID: requestID, trace: trace, route: route, status: response.status,
            duration: ContinuousClock.now - start, accountID: accountID?.uuid, problemCode: problemCode)
        metrics.count(record)
        log.write(record)
    }

    /// The problem that clients see. What they cannot see is logged with the request's identifier: what an error of
    /// the database says about itself, which never includes values, or the name of an unexpected error's type.
    private func problem(for error: any Error, requestID: RequestID) -> Problem {
        if let error = error as? any ProblemConvertible {
            if let error = error as? any OperatorProblem { error.write(to: log, requestID: requestID) }
            return error.problem
        }
        if Self.isClientDisconnect(error) { return Self.clientGone }
        if let error = error as? PostgresError {
            let problem = DatabaseProblem.problem(for: error)
            // Who sends too much at once is no failure of the database.
            if problem.status.code >= 500 {
                log.write(.error, "database_error", ["requestId": requestID, "error": error])
            }
            return problem
        }
        log.write(
            .error, "unexpected_error",
            ["requestId": requestID, "error": OperatorText(String(reflecting: type(of: error)))])
        return .internalError
    }

    /// A handler is cancelled when its connection has ended. (One that has taken too long is as well, when that was answered
    /// and counted.)
    private static func isClientDisconnect(_ error: any Error) -> Bool {
        if case .cancelled? = error as? PostgresError { return true }
        return error is CancellationError
    }

    /// Reaches nobody; the log and the metrics have it under the status that nginx has for it, because it is no failure of
    /// the server.
    private static let clientGone = Problem(
        HTTPStatus(499), "client_gone", title: "Client Gone", detail: "The client closed the connection.")

    /// The head of a stream has gone when it fails, so nobody but the log can be told why.
    private func reportingErrors(of stream: ResponseStream, requestID: RequestID) -> ResponseStream {
        stream.reportingErrors { [log] error in
            if let error = error as? PostgresError {
                log.write(.error, "stream_failed", ["requestId": requestID, "error": error])
            } else {
                let name = OperatorText(String(reflecting: type(of: error)))
                log.write(.error, "stream_failed", ["requestId": requestID, "error": name])
            }
        }
    }
}

/// What clients are told when the database fails.
enum DatabaseProblem {
    /// The problem for an error that no feature has dealt with.
    static func problem(for error: PostgresError) -> Problem {
        if error.sqlState == .diskFull {
            return Problem(
                HTTPStatus(507), "storage_full", title: "Insufficient Storage",
                detail: "The server's disk is full. Nothing was changed.", responseFields: ["Retry-After": "60"])
        }
        if case .queueFull = error {
            return Problem(
                .tooManyRequests, "too_many_waiting",
                detail: "Too many requests of the same account, share or userid are waiting. "
                    + "Nothing was changed. Send the same request again.",
                limit: PostgresClient.waitersPerKey, responseFields: ["Retry-After": "1"])
        }
        guard error.isTransient || isSchemaMissing(error) else { return .internalError }
        var seconds: Int64 = 1
        if case .unavailable(let delay, _) = error { seconds = min(max(delay.components.seconds + 1, 1), 60) }
        return Problem(
            .serviceUnavailable, "database_unavailable",
            detail: "The database does not answer. Send the same request again.",
            responseFields: ["Retry-After": String(seconds)])
    }

    /// A restore begins with the schema put aside.
    private static func isSchemaMissing(_ error: PostgresError) -> Bool {
        error.sqlState == .undefinedTable || error.sqlState == .invalidSchemaName
    }
}
