internal import HTTPCore
internal import Postgres

/// A session that is about to be stored, with its token, which only this reply contains.
struct NewSession {
    let id: SessionID
    let token: SessionToken
    let expiresAt: Timestamp

    init(accountID: AccountID, now: Timestamp, policy: SessionPolicy) {
        id = SessionID.random()
        token = SessionToken(for: accountID)
        expiresAt = now + policy.lifetime
    }

    /// Writes the member `session`.
    func write(to writer: inout JSONWriter) {
        writer.object("session") { writer in
            writer.member("id", id)
            token.write("token", to: &writer)
            writer.member("expiresAt", expiresAt)
        }
    }
}
