internal import Postgres

/// Who asks and when: what every statement is supplied with that works on the caller's account.
struct Caller: Sendable {
    let accountID: AccountID
    let tokenHash: TokenHash
    /// A session that ended before is not live.
    let now: Timestamp
    /// A session that was last used at or before it is not live.
    let idleSince: Timestamp

    init(_ token: PresentedToken, now: Timestamp, policy: SessionPolicy) {
        self.init(SessionKey(accountID: token.accountID, tokenHash: token.hash), now: now, policy: policy)
    }

    init(_ session: SessionKey, now: Timestamp, policy: SessionPolicy) {
        accountID = session.accountID
        tokenHash = session.tokenHash
        self.now = now
        idleSince = now - policy.idleTimeout
    }

    /// The condition that the caller's session is live and not restricted.
    static let hasLiveSession: CallerSQL<Never> = """
        EXISTS (SELECT FROM saltern.sessions live WHERE live.account_id = \(.account) \
        AND live.token_hash = \(.token) AND \(SessionLiveness.isLive("live", at: "\(.now)", idleSince: "\(.idleSince)")))
        """
}

/// The SQL of an ``AccountWrite``: it has `\(.account)`, `\(.token)`, `\(.now)` and `\(.idleSince)`.
typealias CallerSQL<Root> = SQLTemplate<Root, Caller>

extension Caller: SQLContext {
    enum Parameter {
        case account, token, now, idleSince
    }

    func append(_ parameter: Parameter, to parameters: inout Parameters) {
        switch parameter {
        case .account: parameters.append(accountID)
        case .token: parameters.append(tokenHash)
        case .now: parameters.append(now)
        case .idleSince: parameters.append(idleSince)
        }
    }
}
