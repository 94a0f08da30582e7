internal import HTTPCore
internal import Postgres

/// `POST /v1/tokens/inspect`: returns the state of a token of the service's own audience, in the form of RFC 7662 §2.2.
///
/// Tokens of other audiences, expired tokens, tokens of ended sessions and invalid tokens get the same reply: not
/// active.
struct InspectToken: OpenEndpoint {
    private let issuing: TokenIssuing?
    private let services: ServiceAuthentication
    private let database: PostgresClient
    private let clock: any WallClock
    private let sessions: SessionPolicy

    init(_ parts: Dependencies) {
        issuing = TokenIssuing(parts)
        services = ServiceAuthentication(database: parts.database)
        database = parts.database
        clock = parts.clock
        sessions = parts.configuration.sessions
    }

    func respond(to request: Request) async throws -> Response {
        let service = try await services.service(of: request)
        guard let issuing else { throw TokenProblem.notOffered }
        let text = try JSONBody.read(request) { try $0.string("token") }
        guard let token = try await activeToken(text, service, issuing) else {
            return .json { writer in writer.object { $0.member("active", false) } }
        }
        return .json(capacity: 1_024) { writer in
            writer.object { writer in
                writer.member("active", true)
                writer.member("token_type", "Bearer")
                token.write(to: &writer)
            }
        }
    }

    /// Returns the claims with the account's current plan, or nil if the token is not active.
    private func activeToken(
        _ text: String, _ service: Service, _ issuing: TokenIssuing
    ) async throws -> IdentityToken? {
        let key = try issuing.pairwise()
        let now = clock.now
        guard var token = IdentityToken(text, keys: issuing.keys), token.audience == service.audience,
            token.issuer == issuing.issuer.description, token.expiresAt > now.unixSeconds,
            let identifier = TokenIdentifier(token.identifier, for: token.audience, with: key)
        else { return nil }
        let find = FindPlanOfSession(
            accountID: identifier.accountID, sessionID: identifier.sessionID, now: now,
            idleSince: now - sessions.idleTimeout)
        guard let plan = try await database.execute(find).first else { return nil }
        token.plan = plan
        return token
    }
}

/// Finds the plan of a live session's account. Returns no row if the session has ended or is restricted.
struct FindPlanOfSession: Statement {
    typealias Row = String

    let accountID: AccountID
    let sessionID: SessionID
    let now: Timestamp
    /// A session without use since this time is not live.
    let idleSince: Timestamp

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT a.plan FROM saltern.sessions s JOIN saltern.accounts a ON a.account_id = s.account_id
        WHERE s.account_id = \(\.accountID) AND s.session_id = \(\.sessionID) AND a.account_id = \(\.accountID)
            AND \(SessionLiveness.isLive("s", at: "\(\.now)", idleSince: "\(\.idleSince)"))
        """
}
