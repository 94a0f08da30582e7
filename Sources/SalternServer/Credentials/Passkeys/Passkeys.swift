internal import Cryptography
internal import HTTPCore
internal import Postgres

/// `GET /v1/account/passkeys`: the passkeys of the account, the oldest first.
struct ListPasskeys: AccountEndpoint {
    func respond(to request: Request, authorization: Authorization) async throws -> Response {
        let passkeys = try await authorization.read(FindPasskeys())
        return .json(capacity: 64 + passkeys.count * 320) { writer in
            writer.object { writer in
                writer.array("passkeys") { writer in
                    for passkey in passkeys { passkey.write(to: &writer) }
                }
            }
        }
    }
}

/// `PATCH /v1/account/passkeys/{id}`: renames a passkey.
struct RenamePasskey: AccountEndpoint {
    func respond(to request: Request, authorization: Authorization) async throws -> Response {
        let id: PasskeyID = try request.parameters.require("id")
        let name = try JSONBody.read(request) { try $0.required("name", PasskeyName.init(json:)) }
        guard let passkey = try await authorization.write(RenameStoredPasskey(id: id, name: name)).first else {
            throw Problem.notFound
        }
        return .json { writer in passkey.write(to: &writer) }
    }
}

/// `DELETE /v1/account/passkeys/{id}`: removes a passkey, and ends the sessions that it has opened, except the
/// caller's. An absent passkey is a success too, because a retry after a lost reply finds none.
struct RemovePasskey: AccountEndpoint {
    func respond(to request: Request, authorization: Authorization) async throws -> Response {
        let id: PasskeyID = try request.parameters.require("id")
        let proven = try await authorization.prove(request)
        try await authorization.change(as: proven) { transaction in
            guard try await !transaction.execute(DeletePasskey(accountID: proven.accountID, id: id)).isEmpty else {
                return
            }
            _ = try await transaction.endSessions(
                RemoveAllSessions(
                    accountID: proven.accountID, exception: proven.tokenHash, now: proven.now, passkey: id.hash))
            try await transaction.note(
                RecordSecurityEvent(accountID: proven.accountID, kind: .passkeyRemoved, now: proven.now))
        }
        return .noContent
    }
}

/// Describes a passkey for its owner.
struct StoredPasskey: Sendable {
    let id: PasskeyID
    let name: String
    let algorithm: Int32
    let logsIn: Bool
    let isBackupEligible: Bool
    let isBackedUp: Bool
    let unlocks: Bool
    let createdAt: Timestamp
    let lastUsedAt: Timestamp?

    static let columns: SQLFragment = """
        k.credential_id, k.name, k.algorithm, k.logs_in, k.backup_eligible, k.backed_up, k.unlock_box IS NOT NULL, \
        k.created_at, k.last_used_at
        """
}

/// Identifies a passkey: the credential id, which its authenticator has chosen. Clients write it in base64url.
struct PasskeyID: Sendable, Hashable, PathParameterConvertible, PostgresValue, PostgresArrayElement {
    let bytes: [UInt8]

    /// The longest id (WebAuthn Level 3 §5.8.3).
    private static let byteLimit = 1_023

    init?(_ bytes: [UInt8]) {
        guard (1...Self.byteLimit).contains(bytes.count) else { return nil }
        self.bytes = bytes
    }

    init?(pathParameter text: String) {
        guard let bytes = Base64Text.decodeURL(text) else { return nil }
        self.init(bytes)
    }

    init(json: JSONValue) throws {
        guard let id = try PasskeyID(pathParameter: json.string()) else { throw PasskeyProblem.malformed }
        self = id
    }

    /// The mark of the sessions that the passkey opens.
    var hash: PasskeyHash { PasskeyHash(SHA256.hash(bytes)) }

    /// Base64url, as in `id` of the WebAuthn JSON forms.
    var text: String { Base64URL.encodeToString(bytes) }

    static var postgresType: PostgresType { .bytea }
    static var postgresArrayType: PostgresType { .byteaArray }

    func encode(to writer: inout ByteWriter) { bytes.encode(to: &writer) }

    static func decode(_ bytes: UnsafeRawBufferPointer?) -> PasskeyID? {
        [UInt8].decode(bytes).flatMap { PasskeyID($0) }
    }
}

/// SHA-256 of a credential id. It has a constant length, unlike the id.
struct PasskeyHash: StoredDigest {
    let digest: SHA256Digest
}

/// A user's name for a passkey: 1 to 64 characters, none of them a control character.
struct PasskeyName: Sendable {
    let string: String

    init(json: JSONValue) throws {
        // A passkey's name follows the rules of a device's name.
        guard let name = DeviceName(try json.string()) else { throw PasskeyProblem.invalidName }
        string = name.string
    }
}

/// Finds the passkeys of an account, the oldest first.
struct FindPasskeys: AccountRead {
    typealias Row = StoredPasskey

    static let sql: AccountSQL<Self> = """
        SELECT \(StoredPasskey.columns) FROM saltern.passkeys k WHERE k.account_id = \(.account)
        ORDER BY k.created_at, k.credential_id
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row { try row.read(StoredPasskey.init) }
}

/// Finds the credential ids of an account's passkeys, the oldest first.
struct FindPasskeyIDs: AccountRead {
    typealias Row = PasskeyID

    static let sql: AccountSQL<Self> = """
        SELECT k.credential_id FROM saltern.passkeys k WHERE k.account_id = \(.account)
        ORDER BY k.created_at, k.credential_id
        """
}

/// Renames a passkey. Returns no row if it is unknown.
struct RenameStoredPasskey: AccountWrite {
    typealias Row = StoredPasskey

    let id: PasskeyID
    let name: PasskeyName

    static let sql: CallerSQL<Self> = """
        UPDATE saltern.passkeys k SET name = \(\.name.string)
        WHERE k.account_id = \(.account) AND k.credential_id = \(\.id) AND \(Caller.hasLiveSession)
        RETURNING \(StoredPasskey.columns)
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row { try row.read(StoredPasskey.init) }
}

/// Removes a passkey. Returns no row if it is unknown. Requires a lock of the account's row.
struct DeletePasskey: Statement {
    typealias Row = PasskeyID

    let accountID: AccountID
    let id: PasskeyID

    static let sql: SQL<Self> = """
        DELETE FROM saltern.passkeys k WHERE k.account_id = \(\.accountID) AND k.credential_id = \(\.id)
        RETURNING k.credential_id
        """
}

/// The statements of passkeys.
extension StatementList {
    static var passkeys: [any Statement.Type] {
        [
            Owned<FindPasskeys>.self, Owned<FindPasskeyIDs>.self, InsertPasskey.self,
            Guarded<RenameStoredPasskey>.self, DeletePasskey.self, DeletePasskeys.self, StoreUnlockBox.self,
            ReplaceUnlockBox.self, UseChallenge.self, RemoveUnlockBox.self, CountUsedChallenges.self,
            ForgetExpiredChallenges.self, RecordPasskeyUse.self, Owned<FindUsablePasskey>.self, FindPasskeyLogIn.self,
            OpenSessionWithPasskey.self, FindExpiredChallenges.self, RemoveExpiredChallenges.self,
            FindDueChallenges.self, Owned<ExportPasskeys>.self,
        ]
    }
}
