internal import HTTPCore
internal import Postgres

/// `POST /v1/recoveries`: opens a restricted session with the userid's recovery key. It can only set a new credential.
///
/// An unknown userid, a missing or wrong recovery key, and a locked account take the same statements. They receive the
/// same reply, which is also that of a failed log-in. Failures count together with those of log-ins.
struct UseRecovery: OpenEndpoint {
    private let database: PostgresClient
    private let sessions: SessionPolicy
    private let attempts: Attempts
    private let decoyVerifier = Verifier.decoy()

    init(_ parts: Dependencies) {
        database = parts.database
        sessions = SessionPolicy(
            idleTimeout: parts.configuration.sessions.idleTimeout, lifetime: Recovery.sessionLifetime)
        attempts = parts.attempts
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

    /// The result of a right key.
    private struct Opened: Sendable {
        let login: FindLogin.Row
        let session: NewSession
        let recovery: OpenRecoverySession.Row
        /// Recovery keyrings that a session has replaced.
        let keptKeyrings: [[UInt8]]
    }

    func respond(to request: Request) async throws -> Response {
        let body = try Body(request)
        let attempt = attempts.attempt(body.userid, body.device, from: request.client)
        let opened = try await attempt.run { check in try await open(body, check) }
        let recovery = opened.recovery
        let sealedCount = opened.keptKeyrings.reduce(recovery.keyring?.count ?? 0) { $0 + $1.count }
        return .json(.created, capacity: 512 + sealedCount * 4 / 3) { writer in
            writer.object { writer in
                writer.member("accountId", opened.login.accountID)
                opened.session.write(to: &writer)
                writer.object("kdf") { writer in writer.member("iterations", Int(opened.login.kdfIterations)) }
                if let keyring = recovery.keyring { writer.member("keyring", base64: keyring) }
                if let revision = recovery.keyringRevision { writer.member("keyringRevision", revision) }
                guard !opened.keptKeyrings.isEmpty else { return }
                writer.array("keptKeyrings") { writer in
                    for keyring in opened.keptKeyrings { writer.string(base64: keyring) }
                }
            }
        }
    }

    private func open(_ body: Body, _ check: SecretCheck) async throws -> CheckResult<Opened> {
        let accountID = check.login?.accountID ?? .random()
        let stored = try await database.execute(FindRecovery(accountID: accountID)).first
        let verifier = body.recoveryKey.verifier
        let isRightKey = verifier == stored ?? decoyVerifier
        let isPermitted = isRightKey && stored != nil && check.login != nil
        let session = NewSession(accountID: accountID, now: check.now, policy: sessions)
        let opening = OpenRecoverySession(
            accountID: accountID, tokenHash: session.token.hash, sessionID: session.id,
            deviceName: body.device.name, now: check.now, expiresAt: session.expiresAt, isPermitted: isPermitted,
            verifier: verifier)
        let rows = try await check.open(opening)
        guard let login = check.login, isPermitted, let recovery = rows.first else {
            return .wrong(.recoveryKey, WrongCredentials())
        }
        let kept = try await database.execute(Owned(accountID: accountID, read: FindKeptKeyrings(now: check.now)))
        let keyrings = kept.compactMap(\.recoveryKeyring).filter { $0 != recovery.keyring }
        return .right(Opened(login: login, session: session, recovery: recovery, keptKeyrings: keyrings))
    }
}
