internal import Cryptography
internal import HTTPCore
internal import Postgres
internal import VaultLog

/// `POST /v1/vaults/{vault}/invitations`: appends an `invite` entry, and stores what its link opens.
struct CreateInvitation: AccountEndpoint {
    func respond(to request: Request, authorization: Authorization) async throws -> Response {
        let vaultID: VaultID = try request.parameters.require("vault")
        try await authorization.seat(in: vaultID, atLeast: .manager)
        let (entry, tokenHash, preview, keyBox) = try JSONBody.read(request) { members in
            (
                try members.entry(), try members.required("tokenHash", Self.tokenHash),
                try members.required("preview", KeyBox.content), try members.required("keyBox", KeyBox.content)
            )
        }
        guard case .invite(let terms) = entry.payload else { throw VaultProblem.otherRoute }
        let insert = InsertInvitation(
            id: InvitationID(terms.id.bytes), vaultID: vaultID, tokenHash: tokenHash, preview: preview, keyBox: keyBox,
            now: authorization.now, expiresAt: Timestamp(entryTime: terms.expiry))
        let revision = try await authorization.transaction(
            onLogOf: vaultID, atLeast: .manager, pace: request.pace
        ) { transaction, seat, log in
            let revision = try await AppendEntry.append(entry, to: log, seat)
            // The id is public, so an invitation to another vault can have it.
            if revision != nil, try await transaction.execute(insert).isEmpty {
                throw VaultProblem.refused(.repeatedID)
            }
            return revision
        }
        return AppendEntry.reply(revision == nil ? .ok : .created, entry, vault: nil, revision: revision)
    }

    private static func tokenHash(_ json: JSONValue) throws -> TokenHash {
        guard let bytes = Base64Text.decode(try json.text()), let digest = SHA256Digest(bytes) else {
            throw Problem(
                .unprocessableContent, "invalid_token_hash", detail: "`tokenHash` must be 32 bytes in base64.")
        }
        return TokenHash(digest)
    }
}

extension Timestamp {
    /// Converts the time of an entry.
    init(entryTime: EntryTime) {
        let since2000 = Int64(entryTime.seconds) - 946_684_800
        self.init(microsecondsSince2000: since2000 * 1_000_000)
    }
}

/// The token that a link contains: `slv_` and base64url of 32 bytes. Only its hash is stored.
enum InvitationToken {
    static let prefix = "slv_"
    static let secretByteCount = 32

    /// Reads `Authorization: Bearer slv_…`. Nil if the field is absent, repeated or malformed.
    static func presented(_ fields: RequestFields) -> TokenHash? {
        BearerSecret.read(fields, prefix: prefix, byteCount: secretByteCount) { TokenHash(SHA256.hash($0)) }
    }

    /// Reads the member `token` of a request with a session.
    static func hash(_ json: JSONValue) throws -> TokenHash {
        guard let secret = Base64Text.decodeSecure(try json.text()) else {
            throw Problem(.unprocessableContent, "invalid_token", detail: "`token` must be base64.")
        }
        return TokenHash(SHA256.hash(secret))
    }
}

/// `GET /v1/vaults/{vault}/invitations`: lists the open invitations whose links still open something, for managers.
struct ListInvitations: AccountEndpoint {
    private let database: PostgresClient

    init(_ parts: Dependencies) { database = parts.database }

    func respond(to request: Request, authorization: Authorization) async throws -> Response {
        let vaultID: VaultID = try request.parameters.require("vault")
        try await authorization.seat(in: vaultID, atLeast: .manager)
        let log = try await authorization.log(of: vaultID, pace: request.pace)
        let ids = log.openInvitations.map { InvitationID($0.terms.id.bytes) }
        let found = ids.isEmpty ? [] : try await database.execute(FindOpenings(vaultID: vaultID, ids: ids))
        return .json(capacity: 64 + found.count * 128) { writer in
            writer.object { writer in
                writer.array("invitations") { writer in
                    for invitation in found where invitation.expiresAt > authorization.now {
                        writer.object { writer in
                            writer.member("id", invitation.id)
                            writer.member("openings", invitation.openings)
                            writer.member("expiresAt", invitation.expiresAt)
                        }
                    }
                }
            }
        }
    }
}

/// Finds how often invitations of a vault were opened.
struct FindOpenings: Statement {
    let vaultID: VaultID
    let ids: [InvitationID]

    struct Row: Sendable {
        let id: InvitationID
        let openings: Int64
        let expiresAt: Timestamp
    }

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT i.invitation_id, i.openings, i.expires_at FROM saltern.vault_invitations i
        WHERE i.invitation_id = ANY(\(\.ids)::uuid[]) AND i.vault_id = \(\.vaultID)
            AND \(StoredInvitation.isOfThisDatabase)
        ORDER BY i.expires_at, i.invitation_id
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row { try row.read(Row.init) }
}

/// Stores what the link of an invitation opens. Returns no row if there is an invitation with this id.
struct InsertInvitation: Statement {
    typealias Row = InvitationID

    let id: InvitationID
    let vaultID: VaultID
    let tokenHash: TokenHash
    let preview: [UInt8]
    let keyBox: [UInt8]
    let now: Timestamp
    let expiresAt: Timestamp

    static let sql: SQL<Self> = """
        INSERT INTO saltern.vault_invitations
            (invitation_id, vault_id, token_hash, preview, key_box, created_at, expires_at)
            VALUES (\(\.id), \(\.vaultID), \(\.tokenHash), \(\.preview), \(\.keyBox), \(\.now), \(\.expiresAt))
        ON CONFLICT (invitation_id) DO NOTHING
        RETURNING invitation_id
        """
}

/// A stored invitation. The vault's log decides if it is open.
struct StoredInvitation: DecodableRow {
    let vaultID: VaultID
    let preview: [UInt8]
    let keyBox: [UInt8]

    static let columns: SQLFragment = "i.vault_id, i.preview, i.key_box"

    /// The condition that the database was not restored since the invitation `i` was stored. An earlier one stays
    /// closed: it may have been used or revoked since the backup.
    static let isOfThisDatabase: SQLFragment = """
        i.created_at > coalesce(
            (SELECT b.base_moved_at FROM saltern.installation b WHERE b.singleton), '-infinity')
        """

    init(row: inout RowReader) throws(PostgresError) {
        vaultID = try row.next()
        preview = try row.next()
        keyBox = try row.next()
    }
}

/// Finds the invitation of a link that has not expired. With `coalesce` the planner cannot choose the index by expiry,
/// and read the invitations of all vaults.
struct FindInvitation: Statement {
    typealias Row = StoredInvitation

    let id: InvitationID
    let tokenHash: TokenHash
    let now: Timestamp

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT \(StoredInvitation.columns) FROM saltern.vault_invitations i
        WHERE i.invitation_id = \(\.id) AND i.token_hash = \(\.tokenHash)
            AND coalesce(i.expires_at, 'infinity') > \(\.now)
            AND \(StoredInvitation.isOfThisDatabase)
        """
}

/// Counts an opening of an invitation.
struct CountOpening: Statement {
    let id: InvitationID

    static let sql: SQL<Self> = """
        UPDATE saltern.vault_invitations i SET openings = i.openings + 1 WHERE i.invitation_id = \(\.id)
        """
}

/// Finds expired invitations, earliest expiry first.
struct FindExpiredInvitations: Statement {
    typealias Row = InvitationID

    let now: Timestamp
    let limit: Int64

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT i.invitation_id FROM saltern.vault_invitations i WHERE i.expires_at <= \(\.now)
        ORDER BY i.expires_at LIMIT \(\.limit)
        """
}

/// Removes closed invitations of a vault. The log of another vault can name their ids.
struct RemoveInvitations: Statement {
    let vaultID: VaultID
    let ids: [InvitationID]

    static let sql: SQL<Self> = """
        DELETE FROM saltern.vault_invitations i
        WHERE i.invitation_id = ANY(\(\.ids)::uuid[]) AND i.vault_id = \(\.vaultID)
        """
}

/// Removes expired invitations.
struct RemoveExpiredInvitations: Statement {
    let ids: [InvitationID]
    let now: Timestamp

    static let sql: SQL<Self> = """
        DELETE FROM saltern.vault_invitations i
        WHERE i.invitation_id = ANY(\(\.ids)::uuid[]) AND coalesce(i.expires_at, 'infinity') <= \(\.now)
        """
}
