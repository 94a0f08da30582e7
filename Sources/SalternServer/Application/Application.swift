public import HTTPCore
public import Postgres

/// The service of one event loop: all endpoints with their dependencies, behind one router.
///
/// Each loop has its own application.
public struct Application: Responder {
    /// All routes, in the order of `Application+Routes.swift`.
    public let router: Router<RouteMetadata>
    private let finisher: ResponseFinisher
    private let limiter: RateLimiter
    private let proxies: TrustedProxies
    private let metrics: RequestMetrics
    private let requestIDs = RequestIDSource()
    private let pace: Pace

    /// Composes the service.
    ///
    /// - Parameters:
    ///   - configuration: Must have no ``ServiceConfiguration/findings``.
    ///   - installation: The result of ``Installation/load(configuration:database:clock:)``.
    ///   - database: The client of the loop that calls the responder.
    ///   - revisions: The node's watcher, which its owner runs.
    ///   - nodeState: The node's, shared by all loops.
    ///   - log: Receives a line for each request.
    ///   - metrics: Counts each request.
    ///   - clock: The time that is stored and compared.
    ///   - outbox: The outbox of the node, which an ``EventDelivery`` fills.
    ///   - pace: Yields to other work on the loop during long computations.
    public init(
        configuration: ServiceConfiguration, installation: Installation, database: PostgresClient,
        revisions: RevisionWatcher, nodeState: NodeState, log: Log, metrics: RequestMetrics,
        clock: any WallClock, outbox: Outbox = Outbox(), pace: Pace = .yielding
    ) {
        let finisher = ResponseFinisher(
            log: log, metrics: metrics, strictTransportSecurity: configuration.strictTransportSecurity,
            origins: configuration.origins)
        let dependencies = Dependencies(
            configuration: configuration, installation: installation, database: database, revisions: revisions,
            nodeState: nodeState, clock: clock, outbox: outbox)
        let builder = RouteBuilder(
            finisher: finisher, database: database, attempts: dependencies.attempts, sessions: configuration.sessions,
            knownSessions: nodeState.knownSessions, clock: clock, outbox: outbox, door: nodeState.vaults)
        self.finisher = finisher
        limiter = nodeState.addresses
        proxies = configuration.trustedProxies
        self.metrics = metrics
        self.pace = pace
        router = Router(Self.routes(dependencies, builder))
    }

    public func admit(_ head: RequestHead, from client: ClientAddress) -> Admission {
        let requestID = requestIDs.next()
        switch router.match(head.method, head.pathBytes) {
        case .notFound:
            return .refuse(refusal(Problem.notFound, requestID: requestID, head: head))
        case .methodNotAllowed(let allowed):
            if let response = preflight(head, requestID) { return .refuse(response) }
            let problem = Problem.methodNotAllowed(allowed: allowed)
            return .refuse(refusal(problem, requestID: requestID, head: head))
        case .found(let route, let parameters):
            do throws(Problem) {
                if proxies.ignores(head.fields, peer: client) { metrics.noteIgnoredForward() }
                let client = proxies.client(head.fields, peer: client)
                try takeRateToken(client, head, route.metadata)
                let body = try route.body.admit(head)
                let query =
                    route.metadata.ignoresQuery ? QueryParameters() : try QueryParameters(parsing: head.queryBytes)
                let known = body.type == .bytes ? route.metadata.bytesQuery : route.metadata.query
                try query.refuseUnknown(except: known)
                let bodyLimit = try Self.bodyLimit(body.limit, head, route.metadata)
                let request = Request(
                    id: requestID, head: head, client: client, parameters: parameters, query: query,
                    bodyType: body.type, body: body.type == .none ? nil : RequestBody(), valueLimit: body.valueLimit,
                    pace: pace)
                return .accept(plan(route, request, bodyLimit: bodyLimit, memory: body.memory))
            } catch {
                return .refuse(refusal(error, requestID: requestID, head: head, route: route.metadata.name))
            }
        }
    }

    /// Returns the reply to a preflight request of an allowed origin, for a path that has routes.
    private func preflight(_ head: RequestHead, _ requestID: RequestID) -> Response? {
        guard case .methodNotAllowed(let allowed) = router.match(head.method, head.pathBytes),
            let method = allowed.first,
            case .found(let route, _) = router.match(method, head.pathBytes)
        else { return nil }
        return finisher.preflight(head, route: route.metadata.name, requestID)
    }

    public func refusal(_ refusal: Refusal, ofUnread head: UnreadHead?, from client: ClientAddress) -> Response {
        finisher.response(
            to: refusal, head: nil, requestID: requestIDs.next(), trace: nil, route: "unmatched", start: .now,
            unread: head)
    }

    public func refusal(_ refusal: Refusal, of request: KnownRequest?, from client: ClientAddress) -> Response {
        let requestID = requestIDs.next()
        guard let request else { return self.refusal(refusal, requestID: requestID, head: nil) }
        // A page cannot read the rejection of its preflight, and this reply costs no more.
        if case .overloaded = refusal, let response = preflight(request.head, requestID) { return response }
        guard case .found(let route, _) = router.match(request.head.method, request.head.pathBytes) else {
            return self.refusal(refusal, requestID: requestID, head: request.head)
        }
        let error: any Error =
            if case .unexpectedBody = refusal { route.body.refusalOfContent(request.head) } else { refusal }
        return self.refusal(
            error, requestID: requestID, head: request.head, route: route.metadata.name,
            accountID: route.metadata.account(of: request))
    }

    private func plan(
        _ route: Route<RouteMetadata>, _ request: Request, bodyLimit: Int, memory: MemoryFactor
    ) -> RequestPlan {
        RequestPlan(
            bodyLimit: bodyLimit, memory: memory, handlerDeadline: route.metadata.handlerDeadline,
            client: request.client, identify: identification(route, request), body: request.body,
            respond: handler(route, request))
    }

    /// Returns the handler of the route. If the route requires content, it rejects a chunked body that is empty (RFC
    /// 9112 §6.3).
    private func handler(_ route: Route<RouteMetadata>, _ request: Request) -> @Sendable () async -> Response {
        guard request.head.framing == .chunked, route.body != .none else { return { await route.handler(request) } }
        return { [self] in
            if request.body?.isEmpty ?? true {
                return refusal(
                    route.body.missingBody, requestID: request.id, head: request.head, route: route.metadata.name)
            }
            return await route.handler(request)
        }
    }

    /// Returns the check of the sender that precedes a long body. Nil for routes without long bodies.
    private func identification(
        _ route: Route<RouteMetadata>, _ request: Request
    ) -> (@Sendable () async -> Identification)? {
        guard let identify = route.metadata.identify else { return nil }
        return { [finisher] in
            let start = ContinuousClock.now
            do {
                return .memoryOwner(try await identify(request))
            } catch {
                return .refuse(
                    finisher.response(
                        to: error, head: request.head, requestID: request.id, trace: request.trace,
                        route: route.metadata.name,
                        start: start))
            }
        }
    }

    private func refusal(
        _ error: any Error, requestID: RequestID, head: RequestHead?, route: String = "unmatched",
        accountID: AccountID? = nil
    ) -> Response {
        finisher.response(
            to: error, head: head, requestID: requestID, trace: head.flatMap { TraceParent($0.fields) }, route: route,
            start: .now, accountID: accountID)
    }

    /// Takes a token of the route's bucket for the client address.
    private func takeRateToken(_ client: ClientAddress, _ head: RequestHead, _ route: RouteMetadata) throws(Problem) {
        let isGuest = route.guests.admits(head.fields)
        guard let rateClass = isGuest ? route.guests.rateClass : route.rateClass,
            let limited = limiter.take(client, rateClass)
        else { return }
        throw limited.problem
    }

    /// Returns the limit of the body. Routes that need a session reject a body without any token, except from guests.
    private static func bodyLimit(
        _ limit: Int, _ head: RequestHead, _ route: RouteMetadata
    ) throws(Problem) -> Int {
        guard route.needsSession, head.framing != .none else { return limit }
        if route.guests.admits(head.fields) {
            let limit = route.guests.bodyLimit(limit)
            if case .length(let length) = head.framing, length > limit {
                throw Refusal.bodyTooLarge(limit: limit).problem
            }
            return limit
        }
        do throws(Unauthenticated) {
            _ = try PresentedToken(head.fields)
        } catch {
            throw error.problem
        }
        return limit
    }
}

/// Dependencies of endpoints.
struct Dependencies: Sendable {
    let configuration: ServiceConfiguration
    let installation: Installation
    let database: PostgresClient
    let revisions: RevisionWatcher
    let nodeState: NodeState
    let clock: any WallClock
    let outbox: Outbox

    /// The checks of secrets, which limit guessing.
    var attempts: Attempts {
        Attempts(
            subjects: installation.attempts, database: database, counterQueue: nodeState.counterQueue,
            checks: nodeState.checks,
            devices: DeviceTokens(keys: configuration.masterKey.subkeys("known-device")),
            previousKeys: PreviousKeys(keys: configuration.masterKey.subkeys("previous-key")), clock: clock)
    }
}
