internal import HTTPCore
internal import Postgres

/// Finishes all replies: turns errors into responses, adds security fields, and logs and counts the request.
final class ResponseFinisher: Sendable {
    let log: Log
    let metrics: RequestMetrics
    /// Fields of every reply.
    private let securityFields: HTTPFields
    /// The security fields of replies whose endpoint sets `Cache-Control`.
    private let cacheableFields: HTTPFields
    /// The value of `Strict-Transport-Security`. Nil omits the field.
    private let strictTransportSecurity: String?
    private let origins: WebOrigins

    init(log: Log, metrics: RequestMetrics, strictTransportSecurity: String?, origins: WebOrigins = WebOrigins()) {
        self.log = log
        self.metrics = metrics
        self.strictTransportSecurity = strictTransportSecurity
        self.origins = origins
        // A proxy that compresses a reply weakens its entity tag (RFC 9110 §8.8.1), and no change can name a weak one.
        securityFields = ["Cache-Control": "no-store, no-transform", "X-Content-Type-Options": "nosniff"]
        cacheableFields = ["X-Content-Type-Options": "nosniff"]
    }

    /// Turns an error of a handler into a reply.
    func response(
        to error: any Error, head: RequestHead?, requestID: RequestID, trace: TraceParent?, route: String,
        start: ContinuousClock.Instant, accountID: AccountID? = nil, unread: UnreadHead? = nil
    ) -> Response {
        let problem = problem(for: error, requestID: requestID)
        var response = problem.response(requestID: requestID)
        finish(
            &response, head: head, requestID: requestID, trace: trace, route: route, start: start, accountID: accountID,
            problemCode: problem.code, unread: unread)
        return response
    }

    /// Returns the finished reply to a preflight request of an allowed origin. Nil for other requests.
    /// - Parameter route: The name of a route of the path. Nil if routes are not available yet.
    func preflight(_ head: RequestHead, route: String?, _ requestID: RequestID) -> Response? {
        guard var response = origins.preflight(head, route: route) else { return nil }
        finish(
            &response, head: head, requestID: requestID, trace: TraceParent(head.fields), route: "preflight",
            start: .now)
        return response
    }

    /// Completes the response of a handler.
    /// - Parameters:
    ///   - head: The request's head. Nil if the input is not a request.
    ///   - unread: The part of its head that was read before an error.
    func finish(
        _ response: inout Response, head: RequestHead?, requestID: RequestID, trace: TraceParent?, route: String,
        start: ContinuousClock.Instant, accountID: AccountID? = nil, problemCode: String? = nil,
        unread: UnreadHead? = nil
    ) {
        if case .stream(let stream) = response.body {
            response.body = .stream(reportingErrors(of: stream, requestID: requestID))
            // Without it nginx holds the head and the written pieces back until its buffer is full.
            response.fields.append("X-Accel-Buffering", "no")
        }
        let isCacheable = response.fields.contains("Cache-Control")
        response.fields.append(contentsOf: isCacheable ? cacheableFields : securityFields)
        origins.finish(&response, route: route, head: head, unread: unread)
        // The field does not apply to IP addresses (RFC 6797 §8.1.1), and other programs share localhost.
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

    /// Returns the problem for the client, and logs the rest with the request's id. That is the database's message
    /// about an error, which never contains values, or the name of an unexpected error's type.
    private func problem(for error: any Error, requestID: RequestID) -> Problem {
        if let error = error as? any ProblemConvertible {
            if let error = error as? any OperatorProblem { error.write(to: log, requestID: requestID) }
            return error.problem
        }
        if Self.isClientDisconnect(error) { return Self.clientGone }
        if let error = error as? PostgresError {
            let problem = DatabaseProblem.problem(for: error)
            // A client that sends too much at once is no failure of the database.
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

    /// Returns true for the errors of a cancelled handler. Handlers are cancelled when their connection ends, or after
    /// their deadline; in that case the reply has already been sent and counted.
    private static func isClientDisconnect(_ error: any Error) -> Bool {
        if case .cancelled? = error as? PostgresError { return true }
        return error is CancellationError
    }

    /// Never sent. Log and metrics use nginx's status, because it is no failure of the server.
    private static let clientGone = Problem(
        HTTPStatus(499), "client_gone", title: "Client Gone", detail: "The client closed the connection.")

    /// Logs the errors of a stream, except that its client has gone. Its head is already sent, so the client cannot
    /// receive them.
    private func reportingErrors(of stream: ResponseStream, requestID: RequestID) -> ResponseStream {
        stream.reportingErrors { [log] error in
            if Self.isClientDisconnect(error) { return }
            if let error = error as? PostgresError {
                log.write(.error, "stream_failed", ["requestId": requestID, "error": error])
            } else {
                let name = OperatorText(String(reflecting: type(of: error)))
                log.write(.error, "stream_failed", ["requestId": requestID, "error": name])
            }
        }
    }
}

/// Replies to failures of the database.
enum DatabaseProblem {
    /// Returns the problem for an error that no feature handles.
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

    /// Returns true for a missing schema: a restore begins by moving it aside.
    private static func isSchemaMissing(_ error: PostgresError) -> Bool {
        error.sqlState == .undefinedTable || error.sqlState == .invalidSchemaName
    }
}
