internal import Cryptography
internal import HTTPCore
internal import Postgres

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

/// `GET /v1/account/keyring`: returns the caller's keyring, 304 if the client has this revision, or 412 if the
/// precondition names another one.
struct ShowKeyring: AccountEndpoint {
    func respond(to request: Request, authorization: Authorization) async throws -> Response {
        guard let found = try await authorization.read(FindKeyring()).first, let keyring = found.keyring else {
            throw Problem.notFound
        }
        let fields: HTTPFields = ["ETag": EntityTag.text(of: found.revision)]
        switch ReadCondition(request.head.fields, revision: found.revision) {
        case .met: break
        case .failed: throw KeyringProblem.preconditionFailed(current: keyring, revision: found.revision)
        case .notModified: return Response(status: .notModified, fields: fields)
        }
        return .json(fields: fields, capacity: 64 + keyring.count * 4 / 3) { writer in
            writer.object { writer in
                writer.member("keyring", base64: keyring)
                writer.member("revision", found.revision)
            }
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

/// Finds the account's keyring, if any, and its revision.
struct FindKeyring: AccountRead {
    struct Row: Sendable {
        let keyring: [UInt8]?
        /// 0 before the first keyring.
        let revision: Int64
    }

    static let sql: AccountSQL<Self> =
        "SELECT a.keyring, a.keyring_revision FROM saltern.accounts a WHERE a.account_id = \(.account)"

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row { try row.read(Row.init) }
}

/// Finds the holders of the account's data keys. A request that changes the keys must cover each.
struct FindKeyHolders: AccountRead {
    struct Row: Sendable {
        /// The revision of the account's keyring. Nil without one.
        let keyringRevision: Int64?
        let hasRecovery: Bool
        /// The passkeys that have an unlock box.
        let unlockingPasskeys: [PasskeyID]
    }

    static let sql: AccountSQL<Self> = """
        SELECT CASE WHEN a.keyring IS NOT NULL THEN a.keyring_revision END,
            EXISTS (SELECT FROM saltern.recoveries r WHERE r.account_id = \(.account)),
            ARRAY(
                SELECT k.credential_id FROM saltern.passkeys k
                WHERE k.account_id = \(.account) AND k.unlock_box IS NOT NULL ORDER BY k.created_at, k.credential_id)
        FROM saltern.accounts a WHERE a.account_id = \(.account)
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row { try row.read(Row.init) }
}

/// The statements of keyrings.
extension StatementList {
    static var keyrings: [any Statement.Type] {
        [
            Owned<FindKeyring>.self, Guarded<WriteKeyring>.self, MoveKeyringRevision.self,
        ]
    }
}
