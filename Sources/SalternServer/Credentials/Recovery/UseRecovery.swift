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

/// Finds the verifier of the recovery key.
struct FindRecovery: Statement {
    typealias Row = Verifier

    let accountID: AccountID

    static let isReadOnly = true
    static let sql: SQL<Self> = "SELECT r.verifier FROM saltern.recoveries r WHERE r.account_id = \(\.accountID)"
}

/// Locks the account of a recovery with the right key until the transaction ends. A removal of the key or a change of
/// the credential then comes entirely before or after it. A wrong key locks nothing.
struct LockRecoveringAccount: Statement {
    typealias Row = AccountID

    let accountID: AccountID
    let isPermitted: Bool

    static let sql: SQL<Self> = """
        SELECT a.account_id FROM saltern.accounts a WHERE a.account_id = \(\.accountID)
            AND \(\.isPermitted) FOR NO KEY UPDATE
        """
}

/// Uses a recovery key: opens a restricted session and ends an earlier one. Returns no row if the key is wrong or
/// replaced, or the account is locked.
///
/// It follows ``LockRecoveringAccount``, so its snapshot includes the previous change. ``StoreRecoverySession``, an
/// event for the account's owner and ``DropOldEvents`` follow.
struct OpenRecoverySession: Statement {
    let accountID: AccountID
    let tokenHash: TokenHash
    let sessionID: SessionID
    let deviceName: DeviceName?
    let now: Timestamp
    let expiresAt: Timestamp
    /// True if the caller has presented the right key.
    let isPermitted: Bool
    /// The verifier that the key was compared with.
    let verifier: Verifier
    /// Stored in the account's row as a token for the statements that follow.
    let writer = Int64.random(in: .min ... .max)

    struct Row: Sendable {
        /// The keyring sealed under the recovery key.
        let keyring: [UInt8]?
        /// The revision of the account's own keyring. Nil without one.
        let keyringRevision: Int64?
    }

    static let sql: SQL<Self> = """
        WITH recovery AS (
            SELECT r.account_id, r.keyring, CASE WHEN a.keyring IS NOT NULL THEN a.keyring_revision END AS revision
            FROM saltern.recoveries r JOIN saltern.accounts a ON a.account_id = r.account_id
            WHERE r.account_id = \(\.accountID) AND a.account_id = \(\.accountID) AND \(\.isPermitted)
                AND r.verifier = \(\.verifier) AND a.locked_at IS NULL
        ), replaced AS (
            DELETE FROM saltern.sessions s USING recovery r WHERE s.account_id = \(\.accountID) AND s.restricted
        ), used AS (
            UPDATE saltern.recoveries u SET last_used_at = \(\.now) FROM recovery r WHERE u.account_id = \(\.accountID)
        ), told AS (
            UPDATE saltern.accounts t SET writer = \(\.writer) FROM recovery r WHERE t.account_id = \(\.accountID)
        )
        SELECT r.keyring, r.revision FROM recovery r
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row { try row.read(Row.init) }
}

/// Stores the session that ``OpenRecoverySession`` opens, if it opens one.
///
/// `MERGE`, because an INSERT that selects from another table is planned for every shard of a cluster.
struct StoreRecoverySession: Statement {
    let opening: OpenRecoverySession

    static let sql: SQL<Self> = """
        MERGE INTO saltern.sessions n USING (
            SELECT a.account_id FROM saltern.accounts a
            WHERE a.account_id = \(\.opening.accountID) AND a.writer = \(\.opening.writer)
        ) s ON n.account_id = s.account_id AND n.token_hash = \(\.opening.tokenHash)
        WHEN NOT MATCHED THEN INSERT
            (account_id, token_hash, session_id, device_name, created_at, last_used_at, expires_at, restricted)
            VALUES (s.account_id, \(\.opening.tokenHash), \(\.opening.sessionID), \(\.opening.deviceName?.string),
                \(\.opening.now), \(\.opening.now), \(\.opening.expiresAt), true)
        """
}

/// The statements of printed codes.
extension StatementList {
    static var recovery: [any Statement.Type] {
        [
            WriteRecovery.self, ReplaceRecoveryKeyring.self, DeleteRecovery.self, RemoveRestrictedSessions.self,
            FindRecovery.self, LockRecoveringAccount.self, OpenRecoverySession.self, StoreRecoverySession.self,
            CompleteRecovery.self, FindCompletedRecovery.self,
        ]
    }
}
