internal import Cryptography
internal import HTTPCore
internal import Postgres
internal import WebAuthn

/// The requests that accept an assertion in place of the password key, by their operation in `openapi.yaml`.
enum ProvenRequest: String, Sendable, CaseIterable {
    case changeCredential
    case changeUserid
    case deleteAccount
    case exportAccount
    case beginTOTP
    case renewRecoveryCodes

    init(json: JSONValue) throws {
        guard let request = ProvenRequest(rawValue: try json.string()) else {
            throw Problem(
                .unprocessableContent, "invalid_purpose",
                detail: "`purpose` must be one of \(Self.allCases.map(\.rawValue).joined(separator: ", ")).")
        }
        self = request
    }
}

/// The proof that a dangerous request comes from the account's owner, and not only from a session.
enum CallerProof: Sendable {
    case passwordKey(PasswordKey)
    case assertion(RequestAssertion)
}

/// An assertion whose challenge belongs to one request: to its account, session, purpose and body.
struct RequestAssertion: Sendable {
    let response: AuthenticationResponse
    let request: ProvenRequest
    /// SHA-256 of the request's body.
    let bodyHash: SHA256Digest
    private let verifier: PasskeyVerifier

    /// The field of the request that contains the assertion, in base64url of JSON.
    static let field = "Passkey-Assertion"

    /// Reads the field. Nil if the request has none.
    init?(_ request: Request, for purpose: ProvenRequest, _ verifier: PasskeyVerifier) throws {
        guard let text = request.head.fields[Self.field] else { return nil }
        guard let bytes = try? Base64URL.decode([UInt8](text.utf8)),
            let json = try? JSONParser(depthLimit: 8, valueLimit: JSONParser.standardValueLimit).parse(bytes)
        else { throw PasskeyProblem.malformed }
        response = try AuthenticationResponse(json: json)
        self.request = purpose
        self.verifier = verifier
        let body = request.takeBody()
        bodyHash = body.withUnsafeBytes { SHA256.hash($0) }
        request.body?.fill(with: body)
    }

    /// - Throws: ``WrongPasskey``.
    func verify(by caller: Caller, _ passkey: UsablePasskey?) throws -> PasskeyUse {
        let purpose = PasskeyChallenge.Purpose.request(caller.accountID, caller.tokenHash, request, bodyHash)
        guard verifier.relyingParty != nil else {
            throw WrongPasskey(accountID: caller.accountID, failure: nil, isInSession: true)
        }
        let passkey = passkey.flatMap { $0.logsIn ? $0 : nil }
        let (challenge, verified) = try verifier.verify(
            response, of: caller.accountID, passkey, for: purpose, .inSession, now: caller.now)
        guard let passkey else { throw WrongPasskey(accountID: caller.accountID, failure: nil, isInSession: true) }
        return PasskeyUse(passkey: passkey, challenge: challenge, verified: verified)
    }
}

/// A verified assertion whose use is not yet recorded.
struct PasskeyUse: Sendable {
    let passkey: UsablePasskey
    let challenge: PasskeyChallenge
    let verified: Assertion.Verified
}

/// Reads the proof of requests of one kind.
struct ProofReader: Sendable {
    private let request: ProvenRequest
    private let verifier: PasskeyVerifier

    init(_ parts: Dependencies, for request: ProvenRequest) {
        self.request = request
        verifier = PasskeyVerifier(parts.configuration)
    }

    /// Reads a body with an optional `currentPasswordKey` and the members that `read` takes.
    ///
    /// - Returns: The proof, or nil without any, and the value of `read`.
    /// - Throws: Errors of the body, also 422 `conflicting_members` for a password key beside an assertion.
    func read<Value>(
        _ request: Request, _ read: (inout JSONMembers) throws -> Value
    ) throws -> (proof: CallerProof?, value: Value) {
        let assertion = try RequestAssertion(request, for: self.request, verifier)
        let (key, value) = try JSONBody.read(request) { members in
            (try members.optional("currentPasswordKey", PasswordKey.init(json:)), try read(&members))
        }
        if key != nil, assertion != nil {
            throw Problem(
                .unprocessableContent, "conflicting_members",
                detail: "Send either `currentPasswordKey` or the field `\(RequestAssertion.field)`.",
                field: "currentPasswordKey")
        }
        return (assertion.map(CallerProof.assertion) ?? key.map(CallerProof.passwordKey), value)
    }

    /// Reads the proof of a request that has no other members.
    func read(_ request: Request) throws -> CallerProof {
        let (proof, _) = try read(request) { _ in }
        guard let proof else { throw CurrentKeyMissing() }
        return proof
    }
}

/// `POST /v1/account/passkeys/options`: returns a challenge for one request, whose body the client has already written.
/// The assertion then replaces the password key in that request. Stores nothing.
struct BeginPasskeyAssertion: AccountEndpoint {
    private let verifier: PasskeyVerifier

    init(_ parts: Dependencies) {
        verifier = PasskeyVerifier(parts.configuration)
    }

    func respond(to request: Request, authorization: Authorization) async throws -> Response {
        let (purpose, bodyHash) = try JSONBody.read(request) { members in
            (
                try members.required("purpose", ProvenRequest.init(json:)),
                try members.required("bodySHA256", Self.digest(json:))
            )
        }
        let passkeys = try await authorization.read(FindPasskeys())
        guard let relyingParty = verifier.relyingParty else { throw PasskeyProblem.off }
        let allowed = passkeys.filter(\.logsIn).map(\.id)
        guard !allowed.isEmpty else { throw PasskeyProblem.noneLogsIn }
        let challenge = verifier.challenges.make(
            for: .request(authorization.accountID, authorization.tokenHash, purpose, bodyHash), now: authorization.now)
        return .json(.created, capacity: 1_024) { writer in
            writer.object { writer in
                writer.name("publicKey")
                writer.value(PasskeyOptions.request(challenge, relyingParty, allowed: allowed, verifiesUser: true))
            }
        }
    }

    private static func digest(json: JSONValue) throws -> SHA256Digest {
        guard let bytes = try Base64Text.decode(json.text()), let digest = SHA256Digest(bytes) else {
            throw Problem(
                .unprocessableContent, "invalid_digest",
                detail: "`bodySHA256` must be base64 of the 32 bytes of SHA-256 of the request's body.")
        }
        return digest
    }
}

/// Records the use of a passkey without a new session. Returns no row if the passkey does not log in, or its sign count
/// has changed since it was read.
struct RecordPasskeyUse: Statement {
    typealias Row = AccountID

    let accountID: AccountID
    let use: PasskeyUse
    let now: Timestamp

    private var newSignCount: Int64 { Int64(use.verified.signCount) }

    static let sql: SQL<Self> = """
        UPDATE saltern.passkeys k
        SET sign_count = \(\.newSignCount), backed_up = \(\.use.verified.isBackedUp), last_used_at = \(\.now)
        WHERE k.account_id = \(\.accountID) AND k.credential_id = \(\.use.passkey.id) AND k.logs_in
            AND k.sign_count = \(\.use.passkey.signCount)
        RETURNING k.account_id
        """
}
