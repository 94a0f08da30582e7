internal import HTTPCore
internal import Postgres
internal import WebAuthn

/// `POST /v1/passkeys/sessions`: opens a session by a passkey alone, which has verified its user.
///
/// Unknown passkey, locked account and wrong signature read one row, verify one signature, and get the same reply at
/// the same pace. No counter of the account changes: signatures cannot be guessed, and strangers must not delay the
/// owner.
struct LogInWithPasskey: OpenEndpoint {
    private let database: PostgresClient
    private let sessions: SessionPolicy
    private let tally: SessionTally
    private let verifier: PasskeyVerifier
    private let outbox: Outbox
    private let clock: any WallClock

    init(_ parts: Dependencies) {
        database = parts.database
        sessions = parts.configuration.sessions
        tally = parts.nodeState.sessions
        verifier = PasskeyVerifier(parts.configuration)
        outbox = parts.outbox
        clock = parts.clock
    }

    private struct Opened: Sendable {
        let session: NewSession
        let account: OpenSession.Row
        let login: FindPasskeyLogIn.Row
    }

    func respond(to request: Request) async throws -> Response {
        let (response, device) = try JSONBody.readResponse(request) { members in
            (
                try members.required("credential", AuthenticationResponse.init(json:)),
                try DeviceName.device(from: &members)
            )
        }
        guard verifier.relyingParty != nil else { throw PasskeyProblem.off }
        let opened = try await ResponseTiming.refusal.failures { try await open(response, device) }
        return .json(.created, capacity: 512 + (opened.account.keyring?.count ?? 0) * 4 / 3) { writer in
            writer.object { writer in
                writer.member("accountId", opened.session.token.accountID)
                opened.session.write(to: &writer)
                if let keyring = opened.account.keyring {
                    writer.member("keyring", base64: keyring)
                    writer.member("keyringRevision", opened.account.keyringRevision)
                }
                guard let key = opened.login.sealedPrivateKey, let box = opened.login.unlockBox else { return }
                writer.object("unlock") { writer in
                    writer.member("sealedPrivateKey", base64: key)
                    writer.member("box", base64: box)
                }
            }
        }
    }

    private func open(_ response: AuthenticationResponse, _ device: DeviceName?) async throws -> Opened {
        let now = clock.now
        let accountID = response.userHandle.flatMap { UUID(bytes: $0) }.map(AccountID.init) ?? .random()
        let found = try await database.execute(FindPasskeyLogIn(accountID: accountID, id: response.id)).first
        let (challenge, verified) = try verifier.verify(
            response, of: accountID, found?.passkey, for: .logIn, .alone, now: now)
        guard let found else { throw WrongPasskey(accountID: nil, failure: nil) }
        let session = NewSession(accountID: accountID, now: now, policy: sessions)
        let opening = OpenSession(
            accountID: accountID, tokenHash: session.token.hash, sessionID: session.id, deviceName: device, now: now,
            idleSince: now - sessions.idleTimeout, expiresAt: session.expiresAt, isPermitted: true,
            credentialRevision: found.credentialRevision)
        let isCounted = tally.begin(accountID) != .never
        do {
            let account = try await database.withTransaction(key: .account(accountID)) { transaction in
                try await transaction.open(
                    opening, found.passkey, challenge, verified, isCounted: isCounted, reportingTo: outbox)
            }
            if isCounted { tally.counted(accountID, before: true) }
            return Opened(session: session, account: account, login: found)
        } catch {
            tally.undo(accountID)
            throw error
        }
    }
}

/// `POST /v1/passkeys/options`: returns a challenge for a log-in without password. It names no passkeys, so it
/// discloses nothing about userids. Reads and stores nothing.
struct BeginPasskeyLogIn: OpenEndpoint {
    private let verifier: PasskeyVerifier
    private let clock: any WallClock

    init(_ parts: Dependencies) {
        verifier = PasskeyVerifier(parts.configuration)
        clock = parts.clock
    }

    func respond(to request: Request) async throws -> Response {
        guard let relyingParty = verifier.relyingParty else { throw PasskeyProblem.off }
        let challenge = verifier.challenges.make(for: .logIn, now: clock.now)
        return .json(.created) { writer in
            writer.object { writer in
                writer.name("publicKey")
                writer.value(PasskeyOptions.request(challenge, relyingParty, allowed: [], verifiesUser: true))
            }
        }
    }
}

extension Transaction {
    /// Opens the session of a passkey, ends excess sessions, and reports the session.
    /// - Throws: The errors of ``use(_:_:_:for:)``.
    fileprivate func open(
        _ opening: OpenSession, _ passkey: UsablePasskey, _ challenge: PasskeyChallenge,
        _ verified: Assertion.Verified, isCounted: Bool, reportingTo outbox: Outbox
    ) async throws -> OpenSession.Row {
        let account = try await use(passkey, challenge, verified, for: opening)
        report(opening, to: outbox)
        if isCounted { try await trim(opening) }
        return account
    }

    /// Records the use of the passkey and uses up the challenge. The session is sent with the transaction's next
    /// statements.
    ///
    /// After an error the transaction must be rolled back. A rejected assertion then changes nothing.
    ///
    /// - Throws: ``WrongPasskey`` if the challenge is used, or the passkey or account has changed since it was read.
    ///   ``TooManyPasskeyUses``, or a `PostgresError`.
    func use(
        _ passkey: UsablePasskey, _ challenge: PasskeyChallenge, _ verified: Assertion.Verified,
        for opening: OpenSession
    ) async throws -> OpenSession.Row {
        let opened = try await execute(
            OpenSessionWithPasskey(
                opening: opening, id: passkey.id, signCount: passkey.signCount, verified: verified))
        guard let account = opened.first,
            try await spend(challenge, of: opening.accountID, now: opening.now)
        else { throw WrongPasskey(accountID: opening.accountID, failure: .wrongChallenge) }
        enqueue(InsertSession(opening, by: passkey.id.hash))
        return account
    }
}

/// Finds a passkey that logs in, of an account that is not locked.
struct FindPasskeyLogIn: Statement {
    let accountID: AccountID
    let id: PasskeyID

    struct Row: Sendable {
        let passkey: UsablePasskey
        let credentialRevision: Int64
        let sealedPrivateKey: [UInt8]?
        let unlockBox: [UInt8]?
    }

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT \(UsablePasskey.columns), a.credential_revision, k.unlock_key, k.unlock_box
        FROM saltern.passkeys k JOIN saltern.accounts a ON a.account_id = \(\.accountID)
        WHERE k.account_id = \(\.accountID) AND k.credential_id = \(\.id) AND k.logs_in AND a.locked_at IS NULL
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row {
        Row(
            passkey: try UsablePasskey(row: &row), credentialRevision: try row.next(),
            sealedPrivateKey: try row.next(), unlockBox: try row.next())
    }
}

/// Records the use of a passkey for the session of ``OpenSession``. Returns no row if the sign count has changed since
/// it was read. If it and ``UseChallenge`` return rows, ``InsertSession`` stores the session in the same transaction.
struct OpenSessionWithPasskey: Statement {
    let opening: OpenSession
    let id: PasskeyID
    /// The sign count that was read.
    let signCount: Int64
    let verified: Assertion.Verified

    private var newSignCount: Int64 { Int64(verified.signCount) }

    static let sql: SQL<Self> = """
        WITH \(OpenSession.account, of: \.opening), used AS (
            UPDATE saltern.passkeys k
            SET sign_count = \(\.newSignCount), backed_up = \(\.verified.isBackedUp), last_used_at = \(\.opening.now)
            FROM account a
            WHERE k.account_id = \(\.opening.accountID) AND k.credential_id = \(\.id) AND k.sign_count = \(\.signCount)
            RETURNING k.account_id
        )
        SELECT \(OpenSession.columns) FROM account a JOIN used u ON u.account_id = a.account_id
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> OpenSession.Row {
        try OpenSession.decode(&row)
    }
}
