internal import HTTPCore
internal import Postgres

/// Makes routes of endpoints: what goes around every endpoint is put around it here.
struct RouteBuilder: Sendable {
    let finisher: ResponseFinisher
    let database: PostgresClient
    let attempts: Attempts
    let sessions: SessionPolicy
    let clock: any WallClock

    /// How long a reply may take, where nothing else is said.
    static let standardDeadline = Duration.seconds(30)

    /// A route that anybody may call. Which bucket pays has to be said for each.
    func open(
        _ method: HTTPMethod, _ template: String, rate: RateClass?, body: BodyRule = .none, query: [String] = [],
        ignoresQuery: Bool = false, deadline: Duration = standardDeadline, _ endpoint: some OpenEndpoint
    ) -> Route<RouteMetadata> {
        let metadata = Self.metadata(
            method, template, rate: rate, needsSession: false, query: query, ignoresQuery: ignoresQuery,
            deadline: deadline)
        return Route(method, template, body: body, metadata: metadata) { [finisher] request in
            let start = ContinuousClock.now
            let reply: Result<Response, any Error>
            do { reply = .success(try await endpoint.respond(to: request)) } catch { reply = .failure(error) }
            return finisher.finish(reply, requestID: request.id, route: metadata.name, start: start, accountID: nil)
        }
    }

    /// A route that works on the caller's account.
    func account(
        _ method: HTTPMethod, _ template: String, rate: RateClass = .account, body: BodyRule = .none,
        query: [String] = [], bytesQuery: [String] = [], deadline: Duration = standardDeadline,
        _ endpoint: some AccountEndpoint
    ) -> Route<RouteMetadata> {
        let metadata = Self.metadata(
            method, template, rate: rate, needsSession: true, query: query, bytesQuery: bytesQuery, deadline: deadline)
        return Route(method, template, body: body, metadata: metadata) { [self] request in
            let start = ContinuousClock.now
            let reply: Result<Response, any Error>
            var authorization: Authorization?
            do {
                let permit = try Authorization(
                    request, database: database, attempts: attempts, now: clock.now, policy: sessions)
                authorization = permit
                reply = .success(try await endpoint.respond(to: request, authorization: permit))
            } catch {
                reply = .failure(error)
            }
            return finisher.finish(
                reply, requestID: request.id, route: metadata.name, start: start,
                accountID: authorization?.authenticatedAccount)
        }
    }

    /// A route that works on the caller's account, and that guests may call without a session.
    func account(
        _ method: HTTPMethod, _ template: String, body: BodyRule = .none, guests: GuestRule,
        _ endpoint: some AccountEndpoint & OpenEndpoint
    ) -> Route<RouteMetadata> {
        let metadata = Self.metadata(
            method, template, rate: .account, needsSession: true, guests: guests, query: [],
            deadline: Self.standardDeadline)
        let forSessions = account(method, template, body: body, endpoint)
        let forGuests = open(method, template, rate: guests.rateClass, body: body, endpoint)
        return Route(method, template, body: body, metadata: metadata) { request in
            guests.admits(request.head.fields)
                ? try await forGuests.handler(request) : try await forSessions.handler(request)
        }
    }

    private static func metadata(
        _ method: HTTPMethod, _ template: String, rate: RateClass?, needsSession: Bool, guests: GuestRule = .nobody,
        query: [String], bytesQuery: [String] = [], ignoresQuery: Bool = false, deadline: Duration
    ) -> RouteMetadata {
        RouteMetadata(
            name: "\(method.name) \(template)", rateClass: rate, needsSession: needsSession, guests: guests,
            query: query, bytesQuery: bytesQuery, ignoresQuery: ignoresQuery, handlerDeadline: deadline)
    }
}
