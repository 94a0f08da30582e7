internal import Cryptography
internal import Postgres

/// The name of an account or a session towards one audience. Two audiences cannot tell whether their names are of the
/// same account, and the server alone can compute a name.
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
