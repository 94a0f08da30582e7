internal import HTTPCore
internal import Postgres

/// Reads an account's rows for the duration of a streamed reply. Each read is a transaction of its own and checks the
/// session again at its own time.
struct AccountReader: Sendable {
    let session: SessionKey
    let database: PostgresClient
    let clock: any WallClock
    let policy: SessionPolicy

    /// Reads rows.
    ///
    /// - Throws: `ResponseStreamEnded` if the session has ended, or a `PostgresError`.
    func read<Read: AccountRead>(_ read: Read) async throws -> [Read.Row] {
        let caller = Caller(session, now: clock.now, policy: policy)
        let (sessions, rows) = try await database.execute(
            Authenticate(caller: caller), Owned(accountID: caller.accountID, read: read))
        guard !sessions.isEmpty else { throw ResponseStreamEnded() }
        return rows
    }
}
