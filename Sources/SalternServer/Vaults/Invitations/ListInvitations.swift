internal import HTTPCore
internal import Postgres
internal import VaultLog

/// `GET /v1/vaults/{vault}/invitations`: lists the open invitations whose links still open something, for managers.
struct ListInvitations: AccountEndpoint {
    private let database: PostgresClient

    init(_ parts: Dependencies) { database = parts.database }

    func respond(to request: Request, authorization: Authorization) async throws -> Response {
        let vaultID: VaultID = try request.parameters.require("vault")
        let find = FindSeat(vaultID: vaultID, accountID: authorization.accountID)
        guard let seat = try await authorization.read(find, in: vaultID).first else { throw Problem.notFound }
        guard seat.role >= .manager else { throw VaultProblem.roleTooLow }
        let entries = try await authorization.read(FindEntries(vaultID: vaultID), in: vaultID)
        let ids = InvitationSearch.openInvitations(in: entries)
        let found = ids.isEmpty ? [] : try await database.execute(FindOpenings(ids: ids))
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

/// Finds how often invitations were opened.
struct FindOpenings: Statement {
    let ids: [InvitationID]

    struct Row: Sendable {
        let id: InvitationID
        let openings: Int64
        let expiresAt: Timestamp
    }

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT i.invitation_id, i.openings, i.expires_at FROM saltern.vault_invitations i
        WHERE i.invitation_id = ANY(\(\.ids)::uuid[]) ORDER BY i.expires_at, i.invitation_id
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row { try row.read(Row.init) }
}
