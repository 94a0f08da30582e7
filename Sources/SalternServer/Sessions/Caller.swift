internal import Postgres

/// Who asks and when: the first four parameters of every statement that looks at the caller's session.
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

    /// Appends $1 to $4.
    func bind(to parameters: inout Parameters) {
        parameters.append(accountID)
        parameters.append(tokenHash)
        parameters.append(now)
        parameters.append(idleSince)
    }

    /// The condition that the caller's session is live and not restricted, for a statement that names the account $1.
    static let hasLiveSession = """
        EXISTS (SELECT FROM saltern.sessions live WHERE live.account_id = $1 AND live.token_hash = $2 \
        AND live.expires_at > $3 AND live.last_used_at > $4 AND NOT live.restricted)
        """
}
