internal import HTTPCore
internal import Postgres

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
