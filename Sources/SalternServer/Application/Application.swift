public import HTTPCore
public import Postgres

/// The service of one event loop: all endpoints with their dependencies, behind one router.
///
/// Each loop has its own application.
public struct Application: Responder {
    /// All routes, in the order of ``routes(_:_:)``.
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

extension Application {
    /// Bodies without authentication, and others with few members.
    private static let small = BodyRule.json(limit: 8_192)
    /// The keyring and the recovery keyring.
    private static let keyrings = BodyRule.json(limit: Keyring.requestLimitWithRecovery)

    /// Returns all routes of the service.
    private static func routes(_ parts: Dependencies, _ build: RouteBuilder) -> [Route<RouteMetadata>] {
        let share = BodyRule.json(limit: parts.configuration.items.requestLimit)
        let sharing: GuestRule =
            parts.configuration.shares.acceptsAnonymous
            ? .strangers(bodyLimit: SharePolicy.anonymousRequestLimit) : .nobody
        return [
            build.open(.get, "/v1/service", rate: nil, ShowService(parts.configuration)),
            build.open(.get, "/v1/health/live", rate: nil, ShowLiveness()),
            build.open(
                .get, "/v1/health/ready", rate: nil,
                ShowReadiness(database: parts.database, readiness: parts.nodeState.readiness)),

            build.open(.post, "/v1/kdf", rate: .lookup, body: small, ShowKDFParameters(parts)),

            build.open(
                .post, "/v1/accounts", rate: .registration, body: .json(limit: Keyring.requestLimit),
                RegisterAccount(parts)),
            build.account(.get, "/v1/account", ShowAccount()),
            build.account(.delete, "/v1/account", body: small, deadline: DeleteAccount.deadline, DeleteAccount(parts)),
            build.account(
                .put, "/v1/account/credential", body: keyrings, admitsRestricted: true, ChangeCredential(parts)),
            build.account(.put, "/v1/account/userid", rate: .registration, body: keyrings, ChangeUserid(parts)),
            build.account(.get, "/v1/account/keyring", ShowKeyring()),
            build.account(.put, "/v1/account/keyring", body: keyrings, PutKeyring()),
            build.account(.get, "/v1/account/keyring/kept", ListKeptKeyrings()),
            build.account(.put, "/v1/account/receipt", body: .json(limit: Receipt.requestLimit), PutReceipt()),
            build.account(.post, "/v1/account/export", body: small, ExportAccount(parts)),

            build.account(.post, "/v1/account/totp", body: small, BeginSecondFactor(parts)),
            build.account(.post, "/v1/account/totp/confirm", body: small, FinishSecondFactor(parts)),
            build.account(.post, "/v1/account/totp/recovery-codes", body: small, RenewRecoveryCodes(parts)),
            build.account(.delete, "/v1/account/totp", body: small, EndSecondFactor()),

            build.account(.post, "/v1/account/passkeys", body: small, BeginPasskey(parts)),
            build.account(
                .post, "/v1/account/passkeys/confirm", body: .json(limit: FinishPasskey.requestLimit),
                FinishPasskey(parts)),
            build.account(.post, "/v1/account/passkeys/options", body: small, BeginPasskeyAssertion(parts)),
            build.account(.get, "/v1/account/passkeys", ListPasskeys()),
            build.account(.patch, "/v1/account/passkeys/{id}", body: small, RenamePasskey()),
            build.account(.delete, "/v1/account/passkeys/{id}", body: small, RemovePasskey()),
            build.account(.put, "/v1/account/passkeys/{id}/box", body: small, PutPasskeyBox()),

            build.account(.get, "/v1/account/events", query: ["limit", "page"], ListEvents()),

            build.account(.put, "/v1/account/recovery", body: keyrings, SetRecovery()),
            build.account(.delete, "/v1/account/recovery", body: small, RemoveRecovery()),
            build.open(.post, "/v1/recoveries", rate: .login, body: small, UseRecovery(parts)),

            build.account(
                .post, "/v1/rotations", body: small, deadline: Rotation.discardDeadline, OpenRotation()),
            build.account(
                .put, "/v1/rotations/{id}/items",
                body: .json(limit: Rotation.requestLimit, values: Rotation.valueLimit),
                StageItems(parts.configuration.items)),
            build.account(
                .post, "/v1/rotations/{id}/commit", body: keyrings, deadline: Rotation.commitDeadline,
                changesItems: true, CommitRotation(parts)),
            build.account(
                .delete, "/v1/rotations/{id}", deadline: Rotation.discardDeadline, DiscardRotation()),

            build.open(.post, "/v1/sessions", rate: .login, body: small, LogIn(parts)),
            build.open(.post, "/v1/passkeys/options", rate: .login, BeginPasskeyLogIn(parts)),
            build.open(.post, "/v1/passkeys/sessions", rate: .login, body: small, LogInWithPasskey(parts)),
            build.account(.get, "/v1/sessions", ListSessions()),
            build.account(.delete, "/v1/sessions", EndOtherSessions(parts)),
            build.account(.delete, "/v1/sessions/current", EndCurrentSession()),
            build.account(.delete, "/v1/sessions/{id}", EndSession()),

            build.account(.get, "/v1/changes/stream", StreamChanges(parts.revisions)),

            build.account(.post, "/v1/tokens", rate: .token, body: small, CreateToken(parts)),
            build.open(.post, "/v1/tokens/inspect", rate: .service, body: small, InspectToken(parts)),
            build.open(.get, "/.well-known/jwks.json", rate: nil, ShowKeySet(parts)),
            build.open(.get, "/.well-known/oauth-authorization-server", rate: nil, ShowIssuer(parts)),

            build.account(.post, "/v1/shares", body: share, guests: sharing, CreateShare(parts)),
            build.account(.get, "/v1/shares", query: ["limit", "page"], ListShares(parts)),
            build.open(.get, "/v1/shares/{id}", rate: .share, OpenShare(parts)),
            build.open(.head, "/v1/shares/{id}", rate: .share, InspectShare(parts)),
            build.account(.put, "/v1/shares/{id}", body: share, guests: .managersOfShares, ReplaceShare(parts)),
            build.account(.delete, "/v1/shares/{id}", guests: .managersOfShares, DeleteShare(parts)),
            build.open(
                .post, "/v1/service-events/lease", rate: .service, body: small, deadline: LeaseEvents.deadline,
                LeaseEvents(parts)),
            build.open(.post, "/v1/service-events/ack", rate: .service, body: small, ConfirmEvents(parts)),

            build.account(.post, "/v1/vaults", body: small, CreateVault()),
            build.account(.get, "/v1/vaults", ListVaults(parts)),
            build.account(.get, "/v1/vaults/{vault}", ShowVault(parts)),
            build.account(.delete, "/v1/vaults/{vault}", deadline: DeleteVault.deadline, DeleteVault()),
            build.account(.get, "/v1/vaults/{vault}/log", query: ["after"], ShowLog()),
            build.account(.post, "/v1/vaults/{vault}/log", body: SharedVault.entryRule, AppendEntry()),
            build.account(.put, "/v1/vaults/{vault}/log", body: SharedVault.entriesRule, PutBackEntries()),
            build.account(.get, "/v1/vaults/{vault}/seals/{number}", ShowSealList()),
            build.account(
                .put, "/v1/vaults/{vault}/seals/{number}", body: .json(limit: SharedVault.listLimit), StoreSealList()),
            build.account(.put, "/v1/vaults/{vault}/boxes", body: SharedVault.boxesRule, StoreBoxes()),
            build.account(.delete, "/v1/vaults/{vault}/boxes/mine", RemoveOwnBox()),
            build.account(.put, "/v1/vaults/{vault}/seen", body: small, NoteSeen()),
            build.account(.post, "/v1/vaults/{vault}/claim", body: small, ClaimMember()),
            build.account(.post, "/v1/vaults/{vault}/recovered", body: small, ReportRecovery()),
            build.account(.get, "/v1/vaults/{vault}/invitations", ListInvitations(parts)),
            build.account(.post, "/v1/vaults/{vault}/invitations", body: small, CreateInvitation()),
            build.account(.post, "/v1/vaults/{vault}/owner", body: small, AcceptOwnership()),
            build.open(.get, "/v1/invitations/{id}", rate: .share, OpenInvitation(parts)),
            build.account(.post, "/v1/invitations/{id}/acceptance", body: small, AcceptInvitation(parts)),
        ] + items(parts.configuration.items, build) + pages(parts.configuration, build)
    }

    /// Returns the routes of items, each for the caller's account and for a vault.
    private static func items(_ policy: ItemPolicy, _ build: RouteBuilder) -> [Route<RouteMetadata>] {
        let item = BodyRule.jsonOrBytes(json: policy.requestLimit, bytes: ItemPolicy.byteLimit)
        return [
            build.items(.get, "/items", query: ["collection", "fields", "limit", "page"], ListItems()),
            build.items(.get, "/items/{id}", ShowItem()),
            build.items(
                .put, "/items/{id}", body: item, bytesQuery: ItemContent.parameters,
                changesItems: true, PutItem(policy)),
            build.items(.delete, "/items/{id}", changesItems: true, DeleteItem()),
            build.items(.get, "/items/{id}/body", ShowItem(isAlwaysBytes: true)),
            build.items(
                .put, "/items/{id}/body", body: .bytes(limit: ItemPolicy.byteLimit),
                bytesQuery: ItemContent.parameters, changesItems: true, PutItem(policy)),
            build.items(.post, "/items/{id}/restore", changesItems: true, RestoreItem()),
            build.items(.get, "/items/{id}/versions", query: ["limit", "page"], ListVersions()),
            build.items(.get, "/items/{id}/versions/{revision}", ShowVersion()),
            build.items(
                .post, "/items/batch", body: .json(limit: WriteBatch.requestLimit, values: WriteBatch.valueLimit),
                changesItems: true, WriteBatch(policy)),

            build.items(
                .get, "/changes", query: ["since", "limit", "tombstones", "collection", "fields"],
                ListChanges()),
        ].flatMap(\.self)
    }

    /// Returns the routes for browsers and platforms of apps. Their replies are constant, so they have no rate limit.
    private static func pages(
        _ configuration: ServiceConfiguration, _ build: RouteBuilder
    ) -> [Route<RouteMetadata>] {
        let page = BrowserPage(service: configuration.name, banner: configuration.appLinks.appStoreID)
        return [
            build.open(.get, "/s/{id}", rate: nil, ignoresQuery: true, ShowSharePage(page)),
            build.open(.get, "/s/{id}/", rate: nil, ignoresQuery: true, ShowSharePage(page)),
            build.open(.get, "/s/{id}/{passphrase}", rate: nil, ignoresQuery: true, ShowSharePage(page)),
            build.open(.get, "/s/{id}/{passphrase}/", rate: nil, ignoresQuery: true, ShowSharePage(page)),
            build.open(.get, "/j/{id}", rate: nil, ignoresQuery: true, ShowSharePage(invitationsOf: page)),
            build.open(.get, "/j/{id}/", rate: nil, ignoresQuery: true, ShowSharePage(invitationsOf: page)),
            build.open(.get, "/assets/{name}", rate: nil, ShowSharePageAsset(page)),
            build.open(
                .get, "/.well-known/apple-app-site-association", rate: nil,
                ShowAppleAppSiteAssociation(configuration.appLinks, acceptsPasskeys: configuration.passkeys != nil)),
            build.open(
                .get, "/.well-known/assetlinks.json", rate: nil,
                ShowAssetLinks(configuration.appLinks, acceptsPasskeys: configuration.passkeys != nil)),
        ]
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

extension Application {
    /// All statements of the service, each with the name of its type.
    public static var statements: [(name: String, sql: String)] { StatementList.entries() }
}

/// The SQL statements of the service.
///
/// Each feature lists its own next to them, in an extension with one static property. `StatementTests` fails for a
/// statement that is missing.
enum StatementList {
    private static var features: [[any Statement.Type]] {
        [
            accountAdministration, accountRows, registration, auditLog, audiences, credentials, deletion, export,
            history, invites, items, keyrings, keptKeyrings, versions, liveStream, masterKey, plans, purge, receipts,
            recovery, rotations, secondFactor, passkeys, securityEvents, service, sessions, outgoingEvents, shares,
            statistics, sync, attempts, vaults, itemsInVaults,
        ]
    }

    /// Returns each statement with the name of its type, feature by feature.
    fileprivate static func entries() -> [(name: String, sql: String)] { features.joined().map { entry($0) } }

    private static func entry<S: Statement>(_ type: S.Type) -> (name: String, sql: String) {
        (name: String(describing: type), sql: type.sql.text)
    }
}
