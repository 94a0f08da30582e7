internal import HTTPCore
internal import Postgres

/// `DELETE /v1/sessions/current`: ends the caller's session.
struct EndCurrentSession: AccountEndpoint {
    func respond(to request: Request, authorization: Authorization) async throws -> Response {
        _ = try await authorization.end(RemoveCurrentSession())
        return .noContent
    }
}

/// `DELETE /v1/sessions/{id}`: ends one of the caller's sessions.
struct EndSession: AccountEndpoint {
    func respond(to request: Request, authorization: Authorization) async throws -> Response {
        let id: SessionID = try request.parameters.require("id")
        guard try await !authorization.end(RemoveSession(id: id)).isEmpty else { throw Problem.notFound }
        return .noContent
    }
}

/// `DELETE /v1/sessions`: ends all other sessions of the caller. Tokens of other devices then belong to the previous
/// generation; the reply contains the caller's new one.
struct EndOtherSessions: AccountEndpoint {
    private let attempts: Attempts

    init(_ parts: Dependencies) {
        attempts = parts.attempts
    }

    func respond(to request: Request, authorization: Authorization) async throws -> Response {
        let (caller, subjects) = (authorization.caller, attempts.subjects)
        let (ended, device) = try await authorization.transaction { transaction in
            let removal = RemoveOtherSessions()
            let ends = QueueCallersEnds(removal: removal)
            let (_, _, _, ended, userids) = try await transaction.execute(
                Guarded(caller: caller, write: RecordCallersSessionEnds(removal: removal)),
                Guarded(caller: caller, write: ends), Guarded(caller: caller, write: StoreCallersEnds(queue: ends)),
                Guarded(caller: caller, write: removal),
                Owned(accountID: caller.accountID, read: FindUserid()))
            guard let userid = userids.first else { throw Unauthenticated() }
            try await transaction.endGeneration(subjects.userid(userid), of: caller.accountID, now: caller.now)
            let moved = try await transaction.execute(
                MoveDeviceGeneration(userid: userid, accountID: caller.accountID, now: caller.now))
            guard let generation = moved.first else { throw Unauthenticated() }
            return (ended, KnownDevice.ofSession(caller.accountID, caller.tokenHash, generation: generation))
        }
        return .json { writer in
            writer.object { writer in
                writer.member("ended", ended.count { $0 })
                attempts.devices.write(device, to: &writer)
            }
        }
    }
}

/// Ends the caller's session.
struct RemoveCurrentSession: CallersSessionRemoval {
    typealias Row = SessionID

    /// True to also remove events beyond ``SecurityEventLimit``.
    var isDropDue = SecurityEventLimit.isDue()

    static let noting: CallerSQL<Self> = SessionEnd.noting(isMeant, of: "\(.account)", at: "\(.now)")
    static let sql: CallerSQL<Self> = """
        \(SessionEnd.removing(isMeant, of: "\(.account)", at: "\(.now)", dropping: "\(\.isDropDue)"))
        RETURNING s.session_id
        """
    static let isMeant: CallerSQL<Self> = "s.token_hash = \(.token) AND \(Caller.hasLiveSession)"
}

/// Ends one session of the account. Returns a row if it was live.
///
/// Like all ends of sessions it queues with the account's writes. When it returns, no write of that session is running.
struct RemoveSession: CallersSessionRemoval {
    typealias Row = SessionID

    let id: SessionID

    private var isDropDue: Bool { SecurityEventLimit.isDue(after: SecurityEventID(id.uuid)) }

    static let noting: CallerSQL<Self> = SessionEnd.noting(isMeant, of: "\(.account)", at: "\(.now)")
    static let sql: CallerSQL<Self> = """
        \(SessionEnd.removing(isMeant, of: "\(.account)", at: "\(.now)", dropping: "\(\.isDropDue)"))
        RETURNING s.session_id
        """
    static let isMeant: CallerSQL<Self> = """
        s.session_id = \(\.id) AND \(SessionLiveness.hasNotEnded("s", at: "\(.now)", idleSince: "\(.idleSince)"))
            AND \(Caller.hasLiveSession)
        """
}

/// Ends all sessions of the account except the caller's.
struct RemoveOtherSessions: CallersSessionRemoval {
    /// True for a live session that its owner can list; false for an expired or restricted one.
    typealias Row = Bool

    static let noting: CallerSQL<Self> = SessionEnd.noting(
        isMeant, of: "\(.account)", at: SessionEnd.moment(now: "\(.now)", idleSince: "\(.idleSince)"))
    static let sql: CallerSQL<Self> = """
        \(SessionEnd.removing(isMeant, of: "\(.account)", at: nil))
        RETURNING \(SessionLiveness.isLive("s", at: "\(.now)", idleSince: "\(.idleSince)"))
        """
    static let isMeant: CallerSQL<Self> = "s.token_hash <> \(.token) AND \(Caller.hasLiveSession)"
}
