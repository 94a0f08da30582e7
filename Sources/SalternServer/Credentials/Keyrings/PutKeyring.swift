internal import Cryptography
internal import HTTPCore
internal import Postgres

/// `PUT /v1/account/keyring`: creates or replaces the caller's sealed data keys, and in the same transaction what the
/// recovery code opens.
struct PutKeyring: AccountEndpoint {
    private struct Body {
        let keyring: Keyring
        let recovery: RecoveryChange

        init(_ request: Request) throws {
            self = try JSONBody.read(request) { try Body(&$0) }
        }

        private init(_ members: inout JSONMembers) throws {
            keyring = try members.required("keyring", Keyring.init(json:))
            recovery = try RecoveryChange(&members)
        }
    }

    func respond(to request: Request, authorization: Authorization) async throws -> Response {
        let precondition = try Precondition(request.head.fields, allowsAbsent: true)
        let body = try Body(request)
        let write = WriteKeyring(
            precondition: precondition, keyring: body.keyring, coversRecovery: body.recovery.isSaid)
        let (written, hasRecovery) = try await Self.carryOut(write, body.recovery, authorization)
        let fields: HTTPFields = ["ETag": EntityTag.text(of: written.revision)]
        return .json(written.outcome == .created ? .created : .ok, fields: fields) { writer in
            writer.object { writer in
                writer.member("revision", written.revision)
                RecoveryChange.write(isSet: hasRecovery, to: &writer)
            }
        }
    }

    /// - Returns: What was written, and whether there is a recovery key now.
    private static func carryOut(
        _ write: WriteKeyring, _ recovery: RecoveryChange, _ authorization: Authorization
    ) async throws -> (WriteKeyring.Row, Bool) {
        guard recovery.isSaid else {
            guard let written = try await authorization.write(write).first else { throw Unauthenticated() }
            try written.requireAcceptance()
            return (written, written.hasRecovery)
        }
        return try await authorization.transaction { transaction in
            let guarded = Guarded(caller: authorization.caller, write: write)
            guard let written = try await transaction.execute(guarded).first else { throw Unauthenticated() }
            try written.requireAcceptance()
            // A retry: by now another device may have set another code.
            if written.outcome == .unchanged, write.precondition != .revision(written.revision) {
                return (written, written.hasRecovery)
            }
            let hasRecovery = try await recovery.apply(
                transaction, to: authorization.accountID, hasRecovery: written.hasRecovery, now: authorization.now)
            return (written, hasRecovery)
        }
    }
}

extension WriteKeyring.Row {
    /// - Throws: ``KeyringProblem`` or ``RecoveryProblem/keyringRequired`` when nothing was done.
    func requireAcceptance() throws {
        switch outcome {
        case .created, .updated, .unchanged: break
        case .preconditionFailed: throw KeyringProblem.preconditionFailed(current: current, revision: revision)
        case .recoveryNotCovered: throw RecoveryProblem.keyringRequired
        }
    }
}

/// Why the keyring was not changed.
enum KeyringProblem: ProblemConvertible {
    /// The precondition does not hold; what is there now, if anything.
    case preconditionFailed(current: [UInt8]?, revision: Int64)

    var problem: Problem {
        switch self {
        case .preconditionFailed(let current, let revision):
            var problem = Problem(
                .preconditionFailed, "precondition_failed", detail: "The keyring is not what the precondition says.")
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
