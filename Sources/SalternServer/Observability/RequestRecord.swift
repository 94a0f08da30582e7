public import HTTPCore
public import Postgres

/// What log and metrics keep of a finished request.
public struct RequestRecord: Sendable {
    public var requestID: RequestID
    /// The trace that its sender says it belongs to.
    public var trace: TraceParent?
    /// Method and route template, for example `PUT /v1/items/{id}`; `unmatched` when no route matched. Never the path.
    public var route: String
    public var status: HTTPStatus
    public var duration: Duration
    /// Whose session it was.
    public var accountID: Postgres.UUID?
    /// The stable code of the problem that was answered.
    public var problemCode: String?

    /// The first digit of the status, 5 for what is the server's own failure: 501 and 505 are 4, because the client asked
    /// for what HTTP need not have, and anybody can do that.
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
