internal import HTTPCore
internal import Postgres
internal import VaultLog

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
