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

/// Condition for registration: open to all, with an invite, or closed.
public enum RegistrationMode: String, Sendable, CaseIterable {
    case open
    case invite
    case closed
}

/// The rows that a registration stores, all or none.
struct Registration {
    let login: InsertLogin
    let account: InsertAccount
    let session: InsertSession
    /// True if a destination receives the opening of the session.
    var reportsSession = false

    /// Stores the registration. It waits for concurrent registrations of the same userid, so it uses a dedicated
    /// connection.
    ///
    /// - Throws: ``RegistrationProblem/useridTaken`` or a `PostgresError`.
    func store(in database: PostgresClient) async throws {
        do {
            try await database.withTransaction(key: .userid(login.userid)) { transaction in
                try await store(account, in: transaction)
            }
        } catch let error as PostgresError {
            throw Self.meaning(of: error)
        }
    }

    /// Stores the registration and uses up an invite, which decides the account's plan. A failed registration leaves
    /// the invite unused.
    ///
    /// - Throws: ``RegistrationProblem/invalidInvite``, ``RegistrationProblem/useridTaken`` (also for a repeated
    ///   registration, whose invite is used), or a `PostgresError`.
    func store(in database: PostgresClient, using invite: InviteCode) async throws {
        do {
            try await database.withTransaction(key: .invite(invite.hash)) { transaction in
                // The invite comes first: callers without one cannot test which userids exist.
                let consumed = try await transaction.execute(ConsumeInvite(hash: invite.hash, now: account.now)).first
                guard let consumed else { throw RegistrationProblem.invalidInvite }
                var account = account
                account.invite = consumed
                try await store(account, in: transaction)
            }
        } catch RegistrationProblem.invalidInvite {
            throw try await hasHappened(in: database, with: invite)
                ? RegistrationProblem.useridTaken : RegistrationProblem.invalidInvite
        } catch let error as PostgresError {
            throw Self.meaning(of: error)
        }
    }

    private func store(_ account: InsertAccount, in transaction: Transaction) async throws(PostgresError) {
        let event = ReportedEvent(accountID: account.accountID, kind: .accountCreated, now: account.now)
        if reportsSession {
            let opened = QueueOpenedSession(
                accountID: account.accountID, sessionID: session.sessionID, now: account.now)
            _ = try await transaction.execute(
                login, account, session, QueueAccountEvent(event: event), StoreAccountEvent(event: event), opened,
                StoreOpenedSession(queue: opened))
        } else {
            _ = try await transaction.execute(
                login, account, session, QueueAccountEvent(event: event), StoreAccountEvent(event: event))
        }
    }

    /// Returns true if the userid was registered with this invite: the client missed the reply and repeats the request.
    private func hasHappened(in database: PostgresClient, with invite: InviteCode) async throws -> Bool {
        guard let id = try await database.execute(FindInviteOfCode(hash: invite.hash)).first else { return false }
        let owner = try await database.execute(FindLogin(userid: login.userid)).first?.accountID ?? .random()
        return try await database.execute(FindInviteOfAccount(accountID: owner)).first == id
    }

    private static func meaning(of error: PostgresError) -> any Error {
        InsertLogin.isUseridTaken(error) ? RegistrationProblem.useridTaken : error
    }
}

/// Reasons to reject a registration.
enum RegistrationProblem: ProblemConvertible {
    case closed
    case useridTaken
    case inviteRequired
    /// Unknown, used, revoked or expired. Clients do not receive the reason.
    case invalidInvite

    var problem: Problem {
        switch self {
        case .closed:
            Problem(.forbidden, "registration_closed", detail: "Registration is closed.")
        case .useridTaken:
            Problem(.conflict, "userid_taken", detail: "The userid is taken.", field: "userid")
        case .inviteRequired:
            Problem(.forbidden, "invite_required", detail: "Registration requires an `invite`.", field: "invite")
        case .invalidInvite:
            Problem(.forbidden, "invalid_invite", detail: "`invite` is not valid or no longer valid.", field: "invite")
        }
    }
}

/// Takes the userid, as the first of a registration's three statements. Fails with a unique violation if the userid is
/// taken.
struct InsertLogin: Statement {
    let userid: Userid
    let accountID: AccountID
    let verifier: Verifier
    let kdfIterations: Int32

    /// The table's default value.
    static let deviceGeneration: Int64 = 1
    static let sql: SQL<Self> = """
        INSERT INTO saltern.logins (userid, account_id, verifier, kdf_iterations)
            VALUES (\(\.userid.string), \(\.accountID), \(\.verifier), \(\.kdfIterations))
        """

    /// Returns true if an error means that the userid is taken. The statement inserts only one unique value; on a
    /// cluster the error does not name the constraint.
    static func isUseridTaken(_ error: PostgresError) -> Bool {
        error.sqlState == .uniqueViolation && error.isOf(Self.self)
    }
}

/// Creates the account, as the second of a registration's three statements.
struct InsertAccount: Statement {
    let accountID: AccountID
    let userid: Userid
    let keyring: Keyring?
    let now: Timestamp
    /// The invite that was used up for it.
    var invite: ConsumeInvite.Row?

    private var keyringRevision: Int64 { keyring == nil ? 0 : 1 }

    static let sql: SQL<Self> = """
        INSERT INTO saltern.accounts (account_id, userid, keyring, keyring_revision, created_at, plan, invite_id)
        VALUES (\(\.accountID), \(\.userid.string), \(\.keyring?.bytes), \(\.keyringRevision), \(\.now),
            coalesce(\(\.invite?.plan), 'default'), \(\.invite?.id))
        """
}

/// The statements of registrations.
extension StatementList {
    static var registration: [any Statement.Type] {
        [
            InsertLogin.self, InsertAccount.self, InsertSession.self, Owned<FindAccount>.self,
        ]
    }
}
