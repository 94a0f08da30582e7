internal import HTTPCore
internal import Postgres

/// Reads what belongs to an account for longer than a request lasts: every read looks at the session anew, with the time
/// of the read, and is a transaction of its own.
struct AccountReader: Sendable {
    let session: SessionKey
    let database: PostgresClient
    let clock: any WallClock
    let policy: SessionPolicy

    /// Reads rows.
    /// - Throws: `ResponseStreamEnded` when the session has ended, or a `PostgresError`.
    func read<Read: AccountRead>(_ read: Read) async throws -> [Read.Row] {
        let caller = Caller(session, now: clock.now, policy: policy)
        let (sessions, rows) = try await database.execute(
            Authenticate(caller: caller), Owned(accountID: caller.accountID, read: read))
        guard !sessions.isEmpty else { throw ResponseStreamEnded() }
        return rows
    }
}
