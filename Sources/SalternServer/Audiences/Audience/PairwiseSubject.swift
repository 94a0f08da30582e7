internal import Cryptography
internal import Postgres

/// Names an account or a session for one audience. Audiences cannot link their names of one account, and only the
/// server can compute a name.
struct PairwiseSubject: Hashable, Sendable {
    private let code: SHA256Digest

    /// The name of an account.
    init(of account: AccountID, for audience: AudienceName, key: PairwiseKey) {
        code = key.code(.account, for: audience, account.uuid.bytes)
    }

    /// The name of a session.
    init(of session: SessionID, for audience: AudienceName, key: PairwiseKey) {
        code = key.code(.session, for: audience, session.uuid.bytes)
    }

    /// 43 characters of base64url, as tokens and events carry it.
    var text: String { Base64URL.encodeToString(code.bytes) }
}
