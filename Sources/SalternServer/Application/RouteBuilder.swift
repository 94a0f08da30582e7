internal import HTTPCore
internal import Postgres

/// Makes routes of endpoints and adds the steps that all of them share.
struct RouteBuilder: Sendable {
    let finisher: ResponseFinisher
    let database: PostgresClient
    let attempts: Attempts
    let sessions: SessionPolicy
    let knownSessions: KnownSessions
    let clock: any WallClock
    let outbox: Outbox
    let door: VaultDoor

    /// Deadline of a reply on routes without their own.
    static let standardDeadline = Duration.seconds(30)

    /// Makes a route without authentication. Each names its bucket.
    func open(
        _ method: HTTPMethod, _ template: String, rate: RateClass?, body: BodyRule = .none, query: [String] = [],
        ignoresQuery: Bool = false, deadline: Duration = standardDeadline, _ endpoint: some OpenEndpoint
    ) -> Route<RouteMetadata> {
        let metadata = Self.metadata(
            method, template, rate: rate, needsSession: false, query: query, ignoresQuery: ignoresQuery,
            deadline: deadline)
        return Route(method, template, body: body, metadata: metadata) { [finisher] request in
            let start = ContinuousClock.now
            do {
                var response = try await endpoint.respond(to: request)
                finisher.finish(
                    &response, head: request.head, requestID: request.id, trace: request.trace, route: metadata.name,
                    start: start)
                return response
            } catch {
                return finisher.response(
                    to: error, head: request.head, requestID: request.id, trace: request.trace, route: metadata.name,
                    start: start)
            }
        }
    }

    /// Makes a route on the caller's account.
    func account(
        _ method: HTTPMethod, _ template: String, rate: RateClass = .account, body: BodyRule = .none,
        query: [String] = [], bytesQuery: [String] = [], deadline: Duration = standardDeadline,
        admitsRestricted: Bool = false, changesItems: Bool = false, _ endpoint: some AccountEndpoint
    ) -> Route<RouteMetadata> {
        let identify = admitsRestricted ? identifyAnySession : identifySession
        let metadata = Self.metadata(
            method, template, rate: rate, needsSession: true, query: query, bytesQuery: bytesQuery, deadline: deadline,
            identify: body.longest > Self.anybodysLimit ? identify : nil)
        return Route(method, template, body: body, metadata: metadata) { [self] request in
            let start = ContinuousClock.now
            var permit: Authorization?
            do {
                let authorization = try authorization(of: request)
                permit = authorization
                var response = try await endpoint.respond(to: request, authorization: authorization)
                if changesItems { outbox.noteChange(of: authorization.accountID) }
                finisher.finish(
                    &response, head: request.head, requestID: request.id, trace: request.trace, route: metadata.name,
                    start: start,
                    accountID: authorization.authenticatedAccount)
                return response
            } catch {
                return finisher.response(
                    to: error, head: request.head, requestID: request.id, trace: request.trace, route: metadata.name,
                    start: start,
                    accountID: permit?.authenticatedAccount)
            }
        }
    }

    /// Makes two routes on items: of the caller's account, and of a vault.
    ///
    /// - Parameter template: The path behind the owner's.
    func items(
        _ method: HTTPMethod, _ template: String, body: BodyRule = .none, query: [String] = [],
        bytesQuery: [String] = [], changesItems: Bool = false, _ endpoint: some ItemEndpoint
    ) -> [Route<RouteMetadata>] {
        [
            account(
                method, "/v1" + template, body: body, query: query, bytesQuery: bytesQuery, changesItems: changesItems,
                ItemsOfAccount(endpoint: endpoint)),
            account(
                method, "/v1/vaults/{vault}" + template, body: body, query: query, bytesQuery: bytesQuery,
                ItemsOfVault(endpoint: endpoint, needsHead: changesItems)),
        ]
    }

    /// Maximum body in bytes that is read before the session is checked.
    private static let anybodysLimit = 98_304

    /// Checks the request's session and returns its account as the owner of memory. Restricted sessions are not
    /// accepted.
    @Sendable private func identifySession(_ request: Request) async throws -> MemoryBudget.Owner {
        try await authorization(of: request).identify().memoryOwner
    }

    /// Checks the request's session, which may be restricted, or may have ended by setting a credential.
    @Sendable private func identifyAnySession(_ request: Request) async throws -> MemoryBudget.Owner {
        try await authorization(of: request).identifyAny().memoryOwner
    }

    private func authorization(of request: Request) throws(Unauthenticated) -> Authorization {
        try Authorization(
            request, database: database, attempts: attempts, clock: clock, policy: sessions, known: knownSessions,
            outbox: outbox, door: door)
    }

    /// Makes a route on the caller's account that also accepts guests without a session.
    func account(
        _ method: HTTPMethod, _ template: String, body: BodyRule = .none, guests: GuestRule,
        _ endpoint: some AccountEndpoint & OpenEndpoint
    ) -> Route<RouteMetadata> {
        let guestIdentity = (endpoint as? any LongBodyEndpoint).map { endpoint in
            { @Sendable (request: Request) in try await endpoint.identify(request) }
        }
        let metadata = Self.metadata(
            method, template, rate: .account, needsSession: true, guests: guests, query: [],
            deadline: Self.standardDeadline
        ) { [self] request in
            guard guests.admits(request.head.fields) else { return try await identifySession(request) }
            // Requests without a token have short bodies only. This check runs if their address has no memory left for
            // more of them.
            guard let guestIdentity else { throw Refusal.overloaded(retryAfter: 1) }
            return try await guestIdentity(request)
        }
        let forSessions = account(method, template, body: body, endpoint)
        let forGuests = open(method, template, rate: guests.rateClass, body: body, endpoint)
        return Route(method, template, body: body, metadata: metadata) { request in
            guests.admits(request.head.fields)
                ? await forGuests.handler(request) : await forSessions.handler(request)
        }
    }

    private static func metadata(
        _ method: HTTPMethod, _ template: String, rate: RateClass?, needsSession: Bool, guests: GuestRule = .nobody,
        query: [String], bytesQuery: [String] = [], ignoresQuery: Bool = false, deadline: Duration,
        identify: (@Sendable (Request) async throws -> MemoryBudget.Owner)? = nil
    ) -> RouteMetadata {
        RouteMetadata(
            name: "\(method.name) \(template)", rateClass: rate, needsSession: needsSession, guests: guests,
            query: query, bytesQuery: bytesQuery, ignoresQuery: ignoresQuery, handlerDeadline: deadline,
            identify: identify)
    }
}

/// Answers an ``ItemEndpoint`` for the items of the caller's account.
private struct ItemsOfAccount<Endpoint: ItemEndpoint>: AccountEndpoint {
    let endpoint: Endpoint

    func respond(to request: Request, authorization: Authorization) async throws -> Response {
        try await endpoint.respond(to: request, items: ItemAccess(authorization))
    }
}

/// Answers an ``ItemEndpoint`` for the items of the vault in the path.
private struct ItemsOfVault<Endpoint: ItemEndpoint>: AccountEndpoint {
    let endpoint: Endpoint
    /// True for changes.
    let needsHead: Bool

    func respond(to request: Request, authorization: Authorization) async throws -> Response {
        let vault: VaultID = try request.parameters.require("vault")
        var head: Int64?
        if needsHead {
            let text = request.head.fields["vault-head"]
            guard let text, let number = Int(pathParameter: text), number > 0 else {
                _ = try await authorization.identify()
                throw text == nil ? VaultProblem.headRequired : .headMalformed
            }
            head = Int64(number)
        }
        return try await endpoint.respond(to: request, items: ItemAccess(authorization, vault: vault, head: head))
    }
}
