internal import HTTPCore
internal import Postgres

/// `POST /v1/sessions`: opens a session for whoever shows the userid's password key.
///
/// Unknown userid, wrong key and locked account take the same statements in the same order and get the same answer at the
/// same pace.
/// After failures in a row the next attempt is not looked at for a while, at the userid or, when the client shows that
/// it was here before, at its device alone. Whether an account has a second factor is told only to whoever has shown the
/// right key.
struct LogIn: OpenEndpoint {
    private let database: PostgresClient
    private let clock: any WallClock
    private let kdf: KDFPolicy
    private let sessions: SessionPolicy
    private let attempts: Attempts
    private let devices: DeviceTokens
    private let secondFactor: SecondFactorCheck
    private let decoyVerifier = Verifier.decoy()

    init(_ parts: Dependencies) {
        database = parts.database
        clock = parts.clock
        kdf = parts.configuration.kdf
        sessions = parts.configuration.sessions
        attempts = parts.attempts
        devices = parts.devices
        secondFactor = SecondFactorCheck(database: parts.database, masterKey: parts.configuration.masterKey)
    }

    private struct Body {
        let userid: Userid
        let passwordKey: PasswordKey
        let device: DeviceClaim
        let code: SecondFactorCode?

        init(_ request: Request) throws {
            self = try JSONBody.read(request) { try Body(&$0) }
        }

        private init(_ members: inout JSONMembers) throws {
            userid = try members.required("userid", Userid.init(json:))
            passwordKey = try members.required("passwordKey", PasswordKey.init(json:))
            device = try DeviceClaim(from: &members)
            code = try members.optional("totp", SecondFactorCode.init(json:))
        }
    }

    func respond(to request: Request) async throws -> Response {
        let body = try Body(request)
        let device = body.device.token.flatMap { devices.device($0, body.userid) }
        let subject = device.map(attempts.subjects.device) ?? attempts.subjects.userid(body.userid)
        return try await SteadyPace.refusal.failures {
            try await attempts.turn(subject) { try await attempt(body, subject, device ?? .new(body.userid)) }
        }
    }

    /// Looks at the key, unless the subject is blocked. Nobody else attempts the same subject meanwhile.
    private func attempt(_ body: Body, _ subject: AttemptSubject, _ device: KnownDevice) async throws -> Response {
        let (logins, failures) = try await database.execute(
            FindLogin(userid: body.userid), FindFailedAttempts(subject: subject))
        let streak = try attempts.admit(failures)
        let login = logins.first
        let isRightKey = body.passwordKey.verifier == login?.verifier ?? decoyVerifier
        let now = clock.now
        let accountID = login?.accountID ?? .random()
        let session = NewSession(accountID: accountID, now: now, policy: sessions)
        let opening = OpenSession(
            accountID: accountID, tokenHash: session.token.hash, sessionID: session.id,
            deviceName: body.device.name, now: now, idleSince: now - sessions.idleTimeout,
            expiresAt: session.expiresAt, isPermitted: isRightKey && login != nil,
            credentialRevision: login?.credentialRevision ?? 0)
        let opened: OpenSession.Row?
        do {
            opened = try await secondFactor.open(opening, body.code)
        } catch SecondFactorProblem.wrongCode {
            try await attempts.recordFailure(subject)
            try await recordWrongCode(opening)
            throw SecondFactorProblem.wrongCode
        }
        guard let login, isRightKey, let account = opened else {
            try await attempts.recordFailure(subject)
            throw WrongCredentials()
        }
        await attempts.recordSuccess(subject, after: streak, of: accountID)
        if account.needsTrimming {
            // The login has succeeded whether this does or not; the next one tries again.
            _ = try? await database.execute(
                TrimSessions(
                    accountID: accountID, now: now, idleSince: now - sessions.idleTimeout,
                    tokenHash: session.token.hash, otherSessions: max(account.sessionLimit - 1, 0)))
        }
        return .json(.created, capacity: 512 + (account.keyring?.count ?? 0) * 4 / 3) { writer in
            writer.object { writer in
                writer.member("accountId", accountID.description)
                session.write(to: &writer)
                devices.write(device, to: &writer)
                writer.member("kdfUpgradeRequired", kdf.isOutdated(login.kdfIterations))
                guard let keyring = account.keyring else { return }
                writer.member("keyring", base64: keyring)
                writer.member("keyringRevision", account.keyringRevision)
            }
        }
    }
}

extension LogIn {
    /// The right key came with a wrong code: the person should hear of it, for somebody may have their password.
    private func recordWrongCode(_ opening: OpenSession) async throws(PostgresError) {
        _ = try await database.execute(
            RecordSecurityEvent(
                accountID: opening.accountID, kind: .secondFactorFailed, now: opening.now,
                deviceName: opening.deviceName))
    }
}

/// Unknown userid, wrong key or locked account: nobody is told which.
struct WrongCredentials: ProblemConvertible {
    var problem: Problem {
        Problem(
            .unauthorized, "wrong_credentials", detail: "Userid and password key do not belong together.",
            responseFields: ["WWW-Authenticate": "Bearer"])
    }
}
