internal import HTTPCore
internal import Postgres

/// `POST /v1/recoveries`: opens a restricted session for whoever shows the userid's recovery key. It can set a new
/// credential and nothing else.
///
/// Unknown userid, no recovery key, a wrong one and a locked account take the same statements in the same order and get
/// the same answer, which is also that of a failed log-in.
struct UseRecovery: OpenEndpoint {
    private let database: PostgresClient
    private let clock: any WallClock
    private let sessions: SessionPolicy
    private let decoyVerifier = Verifier.decoy()

    init(_ parts: Dependencies) {
        database = parts.database
        clock = parts.clock
        sessions = parts.configuration.sessions
    }

    private struct Body {
        let userid: Userid
        let recoveryKey: PasswordKey
        let deviceName: DeviceName?

        init(_ request: Request) throws {
            self = try JSONBody.read(request) { try Body(&$0) }
        }

        private init(_ members: inout JSONMembers) throws {
            userid = try members.required("userid", Userid.init(json:))
            recoveryKey = try members.required("recoveryKey", PasswordKey.init(json:))
            deviceName = try DeviceName.device(from: &members)
        }
    }

    func respond(to request: Request) async throws -> Response {
        let body = try Body(request)
        let login = try await database.execute(FindLogin(userid: body.userid)).first
        let accountID = login?.accountID ?? .random()
        let recovery = try await database.execute(FindRecovery(accountID: accountID)).first
        let isRightKey = body.recoveryKey.verifier == recovery ?? decoyVerifier
        let isPermitted = isRightKey && recovery != nil && login != nil
        let now = clock.now
        let session = NewSession(
            accountID: accountID, now: now,
            policy: SessionPolicy(idleTimeout: sessions.idleTimeout, lifetime: Recovery.sessionLifetime))
        let (_, opened) = try await database.execute(
            LockRecoveringAccount(accountID: accountID, isPermitted: isPermitted),
            OpenRecoverySession(
                accountID: accountID, tokenHash: session.token.hash, sessionID: session.id,
                deviceName: body.deviceName, now: now, expiresAt: session.expiresAt, isPermitted: isPermitted,
                verifier: body.recoveryKey.verifier))
        guard let login, let opened = opened.first else { throw WrongCredentials() }
        return .json(.created, capacity: 512 + (opened.keyring?.count ?? 0) * 4 / 3) { writer in
            writer.object { writer in
                writer.member("accountId", accountID.description)
                session.write(to: &writer)
                writer.object("kdf") { writer in writer.member("iterations", Int(login.kdfIterations)) }
                if let keyring = opened.keyring { writer.member("keyring", base64: keyring) }
            }
        }
    }
}
