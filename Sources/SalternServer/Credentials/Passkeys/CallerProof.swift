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
