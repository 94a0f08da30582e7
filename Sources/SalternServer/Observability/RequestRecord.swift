public import HTTPCore
public import Postgres

/// The data of a finished request for log and metrics.
public struct RequestRecord: Sendable {
    public var requestID: RequestID
    /// The trace in the request's `traceparent`.
    public var trace: TraceParent?
    /// Method and route template, for example `PUT /v1/items/{id}`, or `unmatched` without a route. Never the path.
    public var route: String
    public var status: HTTPStatus
    public var duration: Duration
    /// The account of the request's session.
    public var accountID: Postgres.UUID?
    /// The stable code of the returned problem.
    public var problemCode: String?

    /// The first digit of the status, where 5 means a failure of the server. 501 and 505 count as 4, because any client
    /// can cause them with optional features of HTTP.
    var statusClass: Int {
        status == .notImplemented || status == .httpVersionNotSupported ? 4 : Int(status.code) / 100
    }

    public init(
        requestID: RequestID, trace: TraceParent?, route: String, status: HTTPStatus, duration: Duration,
        accountID: Postgres.UUID? = nil, problemCode: String? = nil
    ) {
        self.requestID = requestID
        self.trace = trace
        self.route = route
        self.status = status
        self.duration = duration
        self.accountID = accountID
        self.problemCode = problemCode
    }
}
