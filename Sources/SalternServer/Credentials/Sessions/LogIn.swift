internal import HTTPCore
internal import Postgres

/// `POST /v1/sessions`: opens a session with the userid's password key.
///
/// An unknown userid, a wrong key and a locked account take the same statements and response time, and receive the same
/// reply. Only a request with the right key reveals if the account has a second factor.
struct LogIn: OpenEndpoint {
    private let database: PostgresClient
    private let kdf: KDFPolicy
    private let sessions: SessionPolicy
    private let attempts: Attempts
    private let tally: SessionTally
    private let secondFactor: SecondFactorCheck
    private let outbox: Outbox
    private let decoyVerifier = Verifier.decoy()

    init(_ parts: Dependencies) {
        database = parts.database
        kdf = parts.configuration.kdf
        sessions = parts.configuration.sessions
        attempts = parts.attempts
        tally = parts.nodeState.sessions
        outbox = parts.outbox
        secondFactor = SecondFactorCheck(
            masterKey: parts.configuration.masterKey, passkeys: PasskeyVerifier(parts.configuration), outbox: outbox)
    }

    private struct Body {
        let userid: Userid
        let passwordKey: PasswordKey
        let device: DeviceClaim
        let proof: SecondFactorProof?

        init(_ request: Request) throws {
            self = try JSONBody.readResponse(request) { try Body(&$0) }
        }

        private init(_ members: inout JSONMembers) throws {
            userid = try members.required("userid", Userid.init(json:))
            passwordKey = try members.required("passwordKey", PasswordKey.init(json:))
            device = try DeviceClaim(from: &members)
            let code = try members.optional("totp", SecondFactorCode.init(optional:)) ?? nil
            let passkey = try members.optional("passkey", AuthenticationResponse.init(json:))
            guard code == nil || passkey == nil else {
                throw Problem(
                    .unprocessableContent, "conflicting_members", detail: "Send either `totp` or `passkey`.",
                    field: "passkey")
            }
            proof = passkey.map(SecondFactorProof.passkey) ?? code.map(SecondFactorProof.code)
        }
    }

    /// The result of a right key.
    private struct Opened: Sendable {
        let login: FindLogin.Row
        let session: NewSession
        let opening: OpenSession
        let account: OpenSession.Row
        let device: KnownDevice
        let duty: SessionTally.Duty
    }

    func respond(to request: Request) async throws -> Response {
        let body = try Body(request)
        let attempt = attempts.attempt(body.userid, body.device, from: request.client)
        let opened = try await attempt.run { check in try await open(body, check) }
        if opened.duty == .after {
            // An error is ignored, because the log-in has succeeded. The next log-in tries again.
            try? await trim(opened.opening)
        }
        return .json(.created, capacity: 512 + (opened.account.keyring?.count ?? 0) * 4 / 3) { writer in
            writer.object { writer in
                writer.member("accountId", opened.opening.accountID)
                opened.session.write(to: &writer)
                attempts.devices.write(opened.device, to: &writer)
                writer.member("kdfUpgradeRequired", kdf.isOutdated(opened.login.kdfIterations))
                guard let keyring = opened.account.keyring else { return }
                writer.member("keyring", base64: keyring)
                writer.member("keyringRevision", opened.account.keyringRevision)
            }
        }
    }

    private func open(_ body: Body, _ check: SecretCheck) async throws -> CheckResult<Opened> {
        let isRightKey = body.passwordKey.verifier == check.login?.verifier ?? decoyVerifier
        let isPermitted = isRightKey && check.login != nil
        let accountID = check.login?.accountID ?? .random()
        let session = NewSession(accountID: accountID, now: check.now, policy: sessions)
        let opening = OpenSession(
            accountID: accountID, tokenHash: session.token.hash, sessionID: session.id,
            deviceName: body.device.name, now: check.now, idleSince: check.now - sessions.idleTimeout,
            expiresAt: session.expiresAt, isPermitted: isPermitted,
            credentialRevision: check.login?.credentialRevision ?? 0)
        // The tally counts only right keys: attempts with wrong keys neither change it nor take another path.
        let duty = isPermitted ? tally.begin(accountID) : .never
        let result = try await open(opening, body.proof, duty, check)
        guard let login = check.login, isPermitted else { return .wrong(.passwordKey, WrongCredentials()) }
        switch result {
        case .right(let account):
            if duty == .within { tally.counted(accountID, before: true) }
            return .right(
                Opened(
                    login: login, session: session, opening: opening, account: account,
                    device: check.device ?? .new(of: accountID, generation: login.deviceGeneration), duty: duty))
        case .wrong(let kind, let error):
            tally.undo(accountID)
            return .wrong(kind, error)
        case .undecided(let error):
            tally.undo(accountID)
            return .undecided(error)
        }
    }

    /// Opens the session, with the second factor if the account requires one.
    private func open(
        _ opening: OpenSession, _ proof: SecondFactorProof?, _ duty: SessionTally.Duty, _ check: SecretCheck
    ) async throws -> CheckResult<OpenSession.Row> {
        if duty == .within {
            return try await secondFactor.open(opening, nil, proof, check) { try await $0.trim(opening) }
        }
        guard
            let (account, isStored) = try await check.open(
                opening, kind: .passwordKey, reporting: outbox.gets(.sessionOpened))
        else {
            return .wrong(.passwordKey, WrongCredentials())
        }
        guard account.needsSecondFactor else {
            // A second factor that was confirmed between the two statements is required like any other.
            return isStored ? .right(account) : .undecided(SecondFactorProblem.required)
        }
        return try await secondFactor.open(opening, account, proof, check)
    }

    /// Counts the account's sessions after one was opened, and ends those beyond the plan's limit.
    private func trim(_ opening: OpenSession) async throws {
        let id = opening.accountID
        if let surplus = try await database.execute(CountSessions(opening: opening)).first?.surplus(of: opening) {
            try await database.withTransaction(key: .account(id)) { transaction in
                let (_, found) = try await transaction.execute(LockAccount(accountID: id), surplus)
                transaction.end(found, of: surplus)
            }
        }
        tally.counted(id, before: false)
    }
}

extension Transaction {
    /// Counts and ends sessions in the transaction that opens the session. Concurrent ones of the account wait for its
    /// end.
    func trim(_ opening: OpenSession) async throws {
        let (_, counts) = try await execute(
            LockAccount(accountID: opening.accountID), CountSessions(opening: opening))
        guard let surplus = counts.first?.surplus(of: opening) else { return }
        end(try await execute(surplus), of: surplus)
    }

    /// Ends the given sessions together with the transaction's next statement.
    fileprivate func end(_ tokenHashes: [TokenHash], of surplus: FindSurplusSessions) {
        if tokenHashes.isEmpty { return }
        let removal = TrimSessions(
            accountID: surplus.accountID, now: surplus.now, idleSince: surplus.idleSince, tokenHashes: tokenHashes)
        enqueue(RecordSessionEnds(removal: removal))
        enqueue(removal)
    }
}

extension CountSessions {
    fileprivate init(opening: OpenSession) {
        self.init(accountID: opening.accountID, now: opening.now, idleSince: opening.idleSince)
    }
}

extension CountSessions.Row {
    /// Returns the statement that finds surplus sessions other than the one just opened. Nil if there are none.
    fileprivate func surplus(of opening: OpenSession) -> FindSurplusSessions? {
        if stored == live && live <= limit { return nil }
        let kept = live <= limit ? limit : SessionLimit.kept(of: limit)
        return FindSurplusSessions(
            accountID: opening.accountID, now: opening.now, idleSince: opening.idleSince,
            tokenHash: opening.tokenHash, otherSessions: max(kept - 1, 0))
    }
}

/// The error of an unknown userid, a wrong key or a locked account. Clients do not receive the reason.
struct WrongCredentials: ProblemConvertible {
    var problem: Problem {
        Problem(
            .unauthorized, "wrong_credentials", detail: "The userid or the password key is wrong.",
            responseFields: ["WWW-Authenticate": "Bearer"])
    }
}

/// A session that is about to be stored, with its token, which only this reply contains.
struct NewSession {
    let id: SessionID
    let token: SessionToken
    let expiresAt: Timestamp

    init(accountID: AccountID, now: Timestamp, policy: SessionPolicy) {
        id = SessionID.random()
        token = SessionToken(for: accountID)
        expiresAt = now + policy.lifetime
    }

    /// Writes the member `session`.
    func write(to writer: inout JSONWriter) {
        writer.object("session") { writer in
            writer.member("id", id)
            token.write("token", to: &writer)
            writer.member("expiresAt", expiresAt)
        }
    }
}
