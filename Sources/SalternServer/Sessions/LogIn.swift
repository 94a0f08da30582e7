internal import HTTPCore
internal import Postgres

/// `POST /v1/sessions`: opens a session for whoever shows the userid's password key.
///
/// Unknown userid, wrong key and locked account take the same two statements in the same order and get the same
/// answer.
struct LogIn: OpenEndpoint {
    private let database: PostgresClient
    private let clock: any WallClock
    private let kdf: KDFPolicy
    private let sessions: SessionPolicy
    private let decoyVerifier = Verifier.decoy()

    init(_ parts: Dependencies) {
        database = parts.database
        clock = parts.clock
        kdf = parts.configuration.kdf
        sessions = parts.configuration.sessions
    }

    private struct Body {
        let userid: Userid
        let passwordKey: PasswordKey
        let deviceName: DeviceName?

        init(_ request: Request) throws {
            self = try JSONBody.read(request) { try Body(&$0) }
        }

        private init(_ members: inout JSONMembers) throws {
            userid = try members.required("userid", Userid.init(json:))
            passwordKey = try members.required("passwordKey", PasswordKey.init(json:))
            deviceName = try DeviceName.device(from: &members)
        }
    }

    func respond(to request: Request) async throws -> Response {
        let body = try Body(request)
        let login = try await database.execute(FindLogin(userid: body.userid)).first
        let isRightKey = body.passwordKey.verifier == login?.verifier ?? decoyVerifier
        let now = clock.now
        let accountID = login?.accountID ?? .random()
        let session = NewSession(accountID: accountID, now: now, policy: sessions)
        let opened = try await database.execute(
            OpenSession(
                accountID: accountID, tokenHash: session.token.hash, sessionID: session.id,
                deviceName: body.deviceName, now: now, idleSince: now - sessions.idleTimeout,
                expiresAt: session.expiresAt, isPermitted: isRightKey && login != nil,
                credentialRevision: login?.credentialRevision ?? 0))
        guard let login, isRightKey, let account = opened.first else { throw WrongCredentials() }
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
                writer.member("kdfUpgradeRequired", kdf.isOutdated(login.kdfIterations))
                guard let keyring = account.keyring else { return }
                writer.member("keyring", base64: keyring)
                writer.member("keyringRevision", account.keyringRevision)
            }
        }
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
