internal import HTTPCore
internal import Postgres

/// `POST /v1/accounts`: creates account, credential, first session and optional keyring, all or none.
///
/// The registration uses up its invite.
struct RegisterAccount: OpenEndpoint {
    private let database: PostgresClient
    private let clock: any WallClock
    private let kdf: KDFPolicy
    private let sessions: SessionPolicy
    private let mode: RegistrationMode
    private let devices: DeviceTokens
    private let outbox: Outbox

    init(_ parts: Dependencies) {
        database = parts.database
        clock = parts.clock
        kdf = parts.configuration.kdf
        sessions = parts.configuration.sessions
        mode = parts.configuration.registration
        devices = parts.attempts.devices
        outbox = parts.outbox
    }

    private struct Body {
        let userid: Userid
        let passwordKey: PasswordKey
        let iterations: Int32
        let keyring: Keyring?
        let deviceName: DeviceName?
        let invite: InviteCode?

        init(_ request: Request, _ kdf: KDFPolicy) throws {
            self = try JSONBody.read(request) { try Body(&$0, kdf) }
        }

        private init(_ members: inout JSONMembers, _ kdf: KDFPolicy) throws {
            userid = try members.required("userid", Userid.init(json:))
            passwordKey = try members.required("passwordKey", PasswordKey.init(json:))
            iterations = try members.object("kdf") { try $0.required("iterations", kdf.newIterations(json:)) }
            keyring = try members.optional("keyring", Keyring.init(json:))
            deviceName = try DeviceName.device(from: &members)
            invite = try members.optional("invite", InviteCode.init(optional:)) ?? nil
        }
    }

    func respond(to request: Request) async throws -> Response {
        guard mode != .closed else { throw RegistrationProblem.closed }
        let body = try Body(request, kdf)
        if mode == .invite, body.invite == nil { throw RegistrationProblem.inviteRequired }
        let now = clock.now
        let accountID = AccountID.random()
        let session = NewSession(accountID: accountID, now: now, policy: sessions)
        let registration = Registration(
            login: InsertLogin(
                userid: body.userid, accountID: accountID, verifier: body.passwordKey.verifier,
                kdfIterations: body.iterations),
            account: InsertAccount(accountID: accountID, userid: body.userid, keyring: body.keyring, now: now),
            session: InsertSession(
                accountID: accountID, tokenHash: session.token.hash, sessionID: session.id,
                deviceName: body.deviceName, now: now, expiresAt: session.expiresAt),
            reportsSession: outbox.gets(.sessionOpened))
        if let invite = body.invite {
            try await registration.store(in: database, using: invite)
        } else {
            try await registration.store(in: database)
        }
        return .json(.created) { writer in
            writer.object { writer in
                writer.member("accountId", accountID)
                session.write(to: &writer)
                devices.write(.new(of: accountID, generation: InsertLogin.deviceGeneration), to: &writer)
            }
        }
    }
}
