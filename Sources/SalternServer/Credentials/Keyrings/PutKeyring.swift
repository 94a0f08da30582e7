internal import Cryptography
internal import HTTPCore
internal import Postgres

/// `PUT /v1/account/keyring`: creates or replaces the caller's keyring and, in the same transaction, the recovery
/// keyring.
///
/// The removal of the recovery requires the present password key, as `DELETE /v1/account/recovery` does. Replaced
/// keyrings are kept for a time (``KeptKeyring``), with an event in the security log.
struct PutKeyring: AccountEndpoint {
    private struct Body {
        let keyring: Keyring
        let recovery: RecoveryChange
        let currentKey: PasswordKey?

        init(_ request: Request) throws {
            self = try JSONBody.read(request) { try Body(&$0) }
        }

        private init(_ members: inout JSONMembers) throws {
            keyring = try members.required("keyring", Keyring.init(json:))
            recovery = try RecoveryChange(&members)
            currentKey = try members.optional("currentPasswordKey", PasswordKey.init(json:))
            if case .removed = recovery, currentKey == nil { throw CurrentKeyMissing() }
        }
    }

    func respond(to request: Request, authorization: Authorization) async throws -> Response {
        var preconditions = try Preconditions(request.head.fields, allowsAbsent: true)
        let body = try Body(request)
        var proven: ProvenCaller?
        if let key = body.currentKey { proven = try await authorization.prove(key) }
        while true {
            let write = WriteKeyring(
                precondition: preconditions.current, keyring: body.keyring, coversRecovery: body.recovery.isSpecified)
            let written: (row: WriteKeyring.Row, hasRecovery: Bool)
            if let proven {
                written = try await authorization.change(as: proven) { transaction in
                    try await Self.carryOut(write, body.recovery, isProven: true, authorization, transaction)
                }
            } else {
                written = try await authorization.transaction { transaction in
                    try await Self.carryOut(write, body.recovery, isProven: false, authorization, transaction)
                }
            }
            if written.row.outcome == .preconditionFailed, preconditions.move(to: written.row.revision) { continue }
            try written.row.requireAcceptance()
            let fields: HTTPFields = ["ETag": EntityTag.text(of: written.row.revision)]
            return .json(written.row.outcome == .created ? .created : .ok, fields: fields) { writer in
                writer.object { writer in
                    writer.member("revision", written.row.revision)
                    RecoveryChange.write(isSet: written.hasRecovery, to: &writer)
                }
            }
        }
    }

    /// - Returns: The result of the write, and true if there is a recovery key after it.
    private static func carryOut(
        _ write: WriteKeyring, _ recovery: RecoveryChange, isProven: Bool, _ authorization: Authorization,
        _ transaction: Transaction
    ) async throws -> (row: WriteKeyring.Row, hasRecovery: Bool) {
        let (accountID, now) = (authorization.accountID, authorization.now)
        let before = try await transaction.replaceableKeyrings(of: accountID, now: now)
        let guarded = Guarded(caller: authorization.caller, write: write)
        guard let written = try await transaction.execute(guarded).first else { throw Unauthenticated() }
        guard written.isAccepted else { return (written, written.hasRecovery) }
        // A repeated request: another device may have set another code since.
        let isRetry = written.outcome == .unchanged && write.precondition != .revision(written.revision)
        let appliesRecovery = recovery.isSpecified && !isRetry
        let replacesRecovery = appliesRecovery && recovery.replacesKeyring && written.hasRecovery
        if written.outcome == .updated || replacesRecovery {
            if let before { try await transaction.keep(before, of: accountID, isProven: isProven, now: now) }
            try await transaction.note(
                RecordSecurityEvent(accountID: accountID, kind: .keyringChanged, now: now))
        }
        guard appliesRecovery else { return (written, written.hasRecovery) }
        let hasRecovery = try await recovery.apply(
            transaction, to: accountID, hasRecovery: written.hasRecovery, now: now)
        return (written, hasRecovery)
    }
}

extension WriteKeyring.Row {
    /// True if the account has the keyring of the request.
    var isAccepted: Bool {
        switch outcome {
        case .created, .updated, .unchanged: true
        case .preconditionFailed, .recoveryNotCovered: false
        }
    }

    /// - Throws: ``KeyringProblem`` or ``RecoveryProblem/keyringRequired`` if nothing was changed.
    func requireAcceptance() throws {
        switch outcome {
        case .created, .updated, .unchanged: break
        case .preconditionFailed: throw KeyringProblem.preconditionFailed(current: current, revision: revision)
        case .recoveryNotCovered: throw RecoveryProblem.keyringRequired
        }
    }
}

/// Reasons to reject a change of the keyring.
enum KeyringProblem: ProblemConvertible {
    /// The precondition fails. Contains the present keyring, if any.
    case preconditionFailed(current: [UInt8]?, revision: Int64)

    var problem: Problem {
        switch self {
        case .preconditionFailed(let current, let revision):
            var problem = Problem(
                .preconditionFailed, "precondition_failed",
                detail: "The keyring does not match the precondition: see `current`.")
            guard let current else {
                problem.members = [(name: "current", value: .null)]
                return problem
            }
            let keyring = JSONValue.string(JSONString(ascii: Base64.encode(current)))
            problem.members = [
                (name: "current", value: ["keyring": keyring, "revision": .integer(revision)])
            ]
            problem.responseFields = ["ETag": EntityTag.text(of: revision)]
            return problem
        }
    }
}

/// An account's sealed data keys.
struct Keyring: Sendable {
    let bytes: [UInt8]

    /// Maximum length in bytes.
    static let byteLimit = 65_536
    /// Maximum body of a request with a keyring, in bytes: base64 with line breaks and other members.
    static let requestLimit = 98_304
    /// Maximum body of a request that also has a recovery keyring and unlock boxes of passkeys, in bytes.
    static let requestLimitWithRecovery = 2 * requestLimit + PasskeyBoxes.requestLimit

    /// Reads base64 of sealed bytes of any format.
    init(json: JSONValue) throws {
        let sealed = try SealedBytes(base64: json.text(), format: .opaque)
        guard sealed.bytes.count <= Self.byteLimit else { throw SealedRefusal.tooLong(limit: Self.byteLimit) }
        bytes = sealed.bytes
    }
}
