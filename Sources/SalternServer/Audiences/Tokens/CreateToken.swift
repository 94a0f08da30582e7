internal import HTTPCore
internal import Postgres

/// `POST /v1/tokens`: returns a signed token with which the app authenticates to a service of the operator.
struct CreateToken: AccountEndpoint {
    private let issuing: TokenIssuing?
    private let policy: TokenPolicy
    private let sessions: SessionPolicy

    init(_ parts: Dependencies) {
        issuing = TokenIssuing(parts)
        policy = parts.configuration.tokens
        sessions = parts.configuration.sessions
    }

    func respond(to request: Request, authorization: Authorization) async throws -> Response {
        guard let issuing else { throw TokenProblem.notOffered }
        let name = try JSONBody.read(request) { try $0.string("audience") }
        let found = try await authorization.read(FindTokenSubject(tokenHash: authorization.tokenHash))
        // Only users learn names of audiences.
        guard let audience = policy.audience(name) else { throw TokenProblem.unknownAudience }
        guard let subject = found.first else { throw Unauthenticated() }
        let token = try token(for: audience, of: subject, authorization, issuing)
        let signed: String
        do { signed = try token.signed(by: issuing.keys.active(at: authorization.now)) } catch {
            throw TokensUnavailable.signature
        }
        return .json(capacity: 1_024) { writer in
            writer.object { writer in
                writer.member("token", signed)
                writer.member("expiresAt", Timestamp(unixSeconds: token.expiresAt))
            }
        }
    }

    /// Returns the end of the session without further use. A token ends with it at the latest.
    private func end(of subject: FindTokenSubject.Row, at now: Timestamp) -> Timestamp {
        // This request is recorded as a use if the last record is older than the interval.
        let isRecorded = now - subject.lastUsedAt >= sessions.touchInterval
        return min(subject.expiresAt, (isRecorded ? now : subject.lastUsedAt) + sessions.idleTimeout)
    }

    private func token(
        for audience: Audience, of subject: FindTokenSubject.Row, _ authorization: Authorization,
        _ issuing: TokenIssuing
    ) throws -> IdentityToken {
        let key = try issuing.pairwise()
        let identifier = TokenIdentifier(accountID: authorization.accountID, sessionID: subject.sessionID)
        let now = authorization.now
        return IdentityToken(
            issuer: issuing.issuer.description,
            subject: PairwiseSubject(of: authorization.accountID, for: audience.name, key: key).text,
            session: PairwiseSubject(of: subject.sessionID, for: audience.name, key: key).text,
            audience: audience.name, issuedAt: now.unixSeconds,
            expiresAt: min(now + policy.lifetime, end(of: subject, at: now)).unixSeconds,
            identifier: try identifier.sealed(for: audience.name, with: key), plan: subject.plan,
            accountID: audience.seesAccountID ? authorization.accountID : nil,
            userid: audience.seesUserid ? subject.userid : nil)
    }
}

/// Finds the caller's session and account for a token.
struct FindTokenSubject: AccountRead {
    let tokenHash: TokenHash

    struct Row: Sendable {
        let sessionID: SessionID
        let expiresAt: Timestamp
        let lastUsedAt: Timestamp
        let plan: String
        let userid: String
    }

    static let sql: AccountSQL<Self> = """
        SELECT s.session_id, s.expires_at, s.last_used_at, a.plan, a.userid
        FROM saltern.sessions s JOIN saltern.accounts a ON a.account_id = s.account_id
        WHERE s.account_id = \(.account) AND s.token_hash = \(\.tokenHash) AND a.account_id = \(.account)
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row { try row.read(Row.init) }
}
