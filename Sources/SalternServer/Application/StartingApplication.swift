public import HTTPCore

/// The service while its start waits for the database. It is live, not ready, and rejects all other requests.
public struct StartingApplication: Responder {
    private let finisher: ResponseFinisher
    private let requestIDs = RequestIDSource()

    private static let livePath = "/v1/health/live"
    private static let readyPath = "/v1/health/ready"

    /// - Parameters:
    ///   - configuration: The configuration of the starting service.
    ///   - log: Receives a line for each request.
    ///   - metrics: Counts each request.
    public init(configuration: ServiceConfiguration, log: Log, metrics: RequestMetrics) {
        finisher = ResponseFinisher(
            log: log, metrics: metrics, strictTransportSecurity: configuration.strictTransportSecurity,
            origins: configuration.origins)
    }

    public func admit(_ head: RequestHead, from client: ClientAddress) -> Admission {
        if let response = finisher.preflight(head, route: nil, requestIDs.next()) { return .refuse(response) }
        let isReading = head.method == .get || head.method == .head
        guard head.path == Self.livePath, isReading else {
            let route = head.path == Self.readyPath && isReading ? "GET \(Self.readyPath)" : "unmatched"
            return .refuse(refusal(NotReady.isStarting, head, route: route))
        }
        var response = ShowLiveness.response
        finisher.finish(
            &response, head: head, requestID: requestIDs.next(), trace: TraceParent(head.fields),
            route: "GET \(Self.livePath)", start: .now)
        return .refuse(response)
    }

    public func refusal(_ refusal: Refusal, of request: KnownRequest?, from client: ClientAddress) -> Response {
        self.refusal(refusal, request?.head, route: "unmatched")
    }

    public func refusal(_ refusal: Refusal, ofUnread head: UnreadHead?, from client: ClientAddress) -> Response {
        finisher.response(
            to: refusal, head: nil, requestID: requestIDs.next(), trace: nil, route: "unmatched", start: .now,
            unread: head)
    }

    private func refusal(_ error: any Error, _ head: RequestHead?, route: String) -> Response {
        finisher.response(
            to: error, head: head, requestID: requestIDs.next(), trace: head.flatMap { TraceParent($0.fields) },
            route: route, start: .now)
    }
}
