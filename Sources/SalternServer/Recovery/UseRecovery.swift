internal import HTTPCore
internal import Postgres

/// `POST /v1/recoveries`: opens a restricted session for whoever shows the userid's recovery key. It can set a new
/// credential and nothing else.
///
/// Unknown userid, no recovery key, a wrong one and a locked account take the same statements in the same order and get
/// the same answer, which is also that of a failed log-in. Failures in a row are counted as those of log-ins are.
struct UseRecovery: OpenEndpoint {
    private let database: PostgresClient
    private let clock: any WallClock
    private let sessions: SessionPolicy
    private let attempts: Attempts
    private let devices: DeviceTokens
    private let decoyVerifier = Verifier.decoy()

    init(_ parts: Dependencies) {
        database = parts.database
        clock = parts.clock
        sessions = SessionPolicy(
            idleTimeout: parts.configuration.sessions.idleTimeout, lifetime: Recovery.sessionLifetime)
        attempts = parts.attempts
        devices = parts.devices
    }

    private struct Body {
        let userid: Userid
        let recoveryKey: PasswordKey
        let device: DeviceClaim

        init(_ request: Request) throws {
            self = try JSONBody.read(request) { try Body(&$0) }
        }

        private init(_ members: inout JSONMembers) throws {
            userid = try members.required("userid", Userid.init(json:))
            recoveryKey = try members.required("recoveryKey", PasswordKey.init(json:))
            device = try DeviceClaim(from: &members)
        }
    }

    func respond(to request: Request) async throws -> Response {
        let body = try Body(request)
        let device = body.device.token.flatMap { devices.device($0, body.userid) }
        let subject = device.map(attempts.subjects.recovery) ?? attempts.subjects.recovery(body.userid)
        return try await SteadyPace.refusal.failures {
            try await attempts.turn(subject) { try await attempt(body, subject) }
        }
    }

    /// Looks at the key, unless the subject is blocked. Nobody else attempts the same subject meanwhile.
    private func attempt(_ body: Body, _ subject: AttemptSubject) async throws -> Response {
        let (logins, failures) = try await database.execute(
            FindLogin(userid: body.userid), FindFailedAttempts(subject: subject))
        let streak = try attempts.admit(failures)
        let login = logins.first
        let accountID = login?.accountID ?? .random()
        let stored = try await database.execute(FindRecovery(accountID: accountID)).first
        let isRightKey = body.recoveryKey.verifier == stored ?? decoyVerifier
        let isPermitted = isRightKey && stored != nil && login != nil
        let now = clock.now
        let session = NewSession(accountID: accountID, now: now, policy: sessions)
        let (_, opened) = try await database.execute(
            LockRecoveringAccount(accountID: accountID, isPermitted: isPermitted),
            OpenRecoverySession(
                accountID: accountID, tokenHash: session.token.hash, sessionID: session.id,
                deviceName: body.device.name, now: now, expiresAt: session.expiresAt, isPermitted: isPermitted,
                verifier: body.recoveryKey.verifier))
        guard let login, let recovery = opened.first else {
            try await attempts.recordFailure(subject)
            throw WrongCredentials()
        }
        await attempts.recordSuccess(subject, after: streak, of: accountID)
        return .json(.created, capacity: 512 + (recovery.keyring?.count ?? 0) * 4 / 3) { writer in
            writer.object { writer in
                writer.member("accountId", accountID.description)
                session.write(to: &writer)
                writer.object("kdf") { writer in writer.member("iterations", Int(login.kdfIterations)) }
                if let keyring = recovery.keyring { writer.member("keyring", base64: keyring) }
            }
        }
    }
}
