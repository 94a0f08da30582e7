internal import HTTPCore
internal import Postgres
internal import WebAuthn

/// `POST /v1/account/passkeys`: returns the options with which a client creates a passkey. Stores nothing.
struct BeginPasskey: AccountEndpoint {
    private let relyingParty: RelyingParty?
    private let service: String
    private let challenges: PasskeyChallenges

    init(_ parts: Dependencies) {
        relyingParty = parts.configuration.passkeys
        service = parts.configuration.name
        challenges = PasskeyChallenges(parts.configuration.masterKey)
    }

    func respond(to request: Request, authorization: Authorization) async throws -> Response {
        let (key, logsIn) = try JSONBody.read(request) { members in
            (
                try members.required("currentPasswordKey", PasswordKey.init(json:)),
                try members.optional("logsIn") { try $0.bool() } ?? false
            )
        }
        let proven = try await authorization.prove(key)
        guard let relyingParty else { throw PasskeyProblem.off }
        let present = try await authorization.read(FindPasskeyIDs())
        guard present.count < PasskeyProblem.limit else { throw PasskeyProblem.tooMany }
        let challenge = challenges.make(for: .registration(proven.accountID, proven.tokenHash), now: proven.now)
        let options = PasskeyOptions.creation(
            challenge, relyingParty, service: service, accountID: proven.accountID, userid: proven.userid,
            logsIn: logsIn,
            excluded: present)
        return .json(.created, capacity: 1_024) { writer in
            writer.object { writer in
                writer.name("publicKey")
                writer.value(options)
            }
        }
    }
}

/// `POST /v1/account/passkeys/confirm`: verifies the authenticator's response, and stores the passkey. From then on
/// log-ins with the password key require a second factor.
///
/// The same response sent again, after a lost reply, returns the stored passkey.
struct FinishPasskey: AccountEndpoint {
    /// The longest body, in bytes. Unrequested attestation statements may contain certificates.
    static let requestLimit = 65_536

    private let relyingParty: RelyingParty?
    private let challenges: PasskeyChallenges

    init(_ parts: Dependencies) {
        relyingParty = parts.configuration.passkeys
        challenges = PasskeyChallenges(parts.configuration.masterKey)
    }

    private struct Body {
        let currentKey: PasswordKey
        let response: RegistrationResponse
        let name: PasskeyName
        let logsIn: Bool

        init(_ members: inout JSONMembers) throws {
            currentKey = try members.required("currentPasswordKey", PasswordKey.init(json:))
            response = try members.required("credential", RegistrationResponse.init(json:))
            name = try members.required("name", PasskeyName.init(json:))
            logsIn = try members.bool("logsIn")
        }
    }

    func respond(to request: Request, authorization: Authorization) async throws -> Response {
        let body = try JSONBody.readResponse(request) { try Body(&$0) }
        let proven = try await authorization.prove(body.currentKey)
        guard let relyingParty else { throw PasskeyProblem.off }
        let (challenge, passkey) = try verify(body, for: relyingParty, proven)
        let id = body.response.id
        let insert = InsertPasskey(
            accountID: proven.accountID, id: id, passkey: passkey, name: body.name, logsIn: body.logsIn, now: proven.now
        )
        let stored = try await authorization.change(as: proven) { transaction in
            let find = Owned(accountID: proven.accountID, read: FindPasskeys())
            let before = try await transaction.execute(find)
            guard try await transaction.spend(challenge, of: proven.accountID, now: proven.now) else {
                guard try await transaction.has(insert) else { throw PasskeyProblem.refused(.wrongChallenge) }
                return before.first { $0.id == id }
            }
            guard before.count < PasskeyProblem.limit else { throw PasskeyProblem.tooMany }
            guard try await !transaction.execute(insert).isEmpty else { throw PasskeyProblem.exists }
            try await transaction.note(
                RecordSecurityEvent(accountID: proven.accountID, kind: .passkeyAdded, now: proven.now))
            return try await transaction.execute(find).first { $0.id == id }
        }
        return .json(.created) { writer in stored?.write(to: &writer) }
    }

    /// - Throws: ``PasskeyProblem/refused(_:)``.
    private func verify(
        _ body: Body, for relyingParty: RelyingParty, _ proven: ProvenCaller
    ) throws(PasskeyProblem) -> (PasskeyChallenge, PasskeyRegistration.Passkey) {
        do throws(WebAuthnFailure) {
            let registration = try body.response.registration()
            let purpose = PasskeyChallenge.Purpose.registration(proven.accountID, proven.tokenHash)
            guard
                let challenge = challenges.challenge(registration.clientData.challenge, for: purpose, now: proven.now)
            else { throw .wrongChallenge }
            let passkey = try registration.verify(
                for: relyingParty, challenge: challenge.bytes, requiresUserVerification: body.logsIn)
            return (challenge, passkey)
        } catch {
            throw .refused(error)
        }
    }
}

extension Transaction {
    /// Returns true if the account has a passkey with this key and use.
    fileprivate func has(_ insert: InsertPasskey) async throws(PostgresError) -> Bool {
        let find = Owned(accountID: insert.accountID, read: FindUsablePasskey(id: insert.id))
        guard let stored = try await execute(find).first else { return false }
        return stored.publicKey == insert.passkey.key.bytes && stored.logsIn == insert.logsIn
            && Int(stored.algorithm) == insert.passkey.key.algorithm.rawValue
    }
}

extension StoredPasskey {
    func write(to writer: inout JSONWriter) { writer.object { writer in writeMembers(to: &writer) } }

    func writeMembers(to writer: inout JSONWriter) {
        writer.member("id", id.text)
        writer.member("name", name)
        writer.member("algorithm", Int(algorithm))
        writer.member("logsIn", logsIn)
        // Nothing attests it.
        writer.member("deviceBound", !isBackupEligible)
        writer.member("backedUp", isBackedUp)
        writer.member("unlocks", unlocks)
        writer.member("createdAt", createdAt)
        if let lastUsedAt { writer.member("lastUsedAt", lastUsedAt) }
    }
}

/// Stores a new passkey. Returns no row if the account already has it. Requires a lock of the account's row.
struct InsertPasskey: Statement {
    typealias Row = PasskeyID

    let accountID: AccountID
    let id: PasskeyID
    let passkey: PasskeyRegistration.Passkey
    let name: PasskeyName
    let logsIn: Bool
    let now: Timestamp

    private var algorithm: Int32 { Int32(passkey.key.algorithm.rawValue) }
    private var signCount: Int64 { Int64(passkey.signCount) }

    static let sql: SQL<Self> = """
        INSERT INTO saltern.passkeys (account_id, credential_id, algorithm, public_key, sign_count, backup_eligible,
            backed_up, name, logs_in, created_at)
        VALUES (\(\.accountID), \(\.id), \(\.algorithm), \(\.passkey.key.bytes), \(\.signCount),
            \(\.passkey.isBackupEligible), \(\.passkey.isBackedUp), \(\.name.string), \(\.logsIn), \(\.now))
        ON CONFLICT (account_id, credential_id) DO NOTHING
        RETURNING credential_id
        """
}
