internal import Postgres

/// Stores what the link of an invitation opens.
struct InsertInvitation: Statement {
    let id: InvitationID
    let vaultID: VaultID
    let tokenHash: TokenHash
    let preview: [UInt8]
    let keyBox: [UInt8]
    let expiresAt: Timestamp

    static let sql: SQL<Self> = """
        INSERT INTO saltern.vault_invitations (invitation_id, vault_id, token_hash, preview, key_box, expires_at)
            VALUES (\(\.id), \(\.vaultID), \(\.tokenHash), \(\.preview), \(\.keyBox), \(\.expiresAt))
        ON CONFLICT (invitation_id) DO NOTHING
        """
}

/// A stored invitation. The vault's log decides if it is open.
struct StoredInvitation: DecodableRow {
    let vaultID: VaultID
    let preview: [UInt8]
    let keyBox: [UInt8]

    static let columns: SQLFragment = "i.vault_id, i.preview, i.key_box"

    init(row: inout RowReader) throws(PostgresError) {
        vaultID = try row.next()
        preview = try row.next()
        keyBox = try row.next()
    }
}

/// Finds the invitation of a link that has not expired.
struct FindInvitation: Statement {
    typealias Row = StoredInvitation

    let id: InvitationID
    let tokenHash: TokenHash
    let now: Timestamp

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT \(StoredInvitation.columns) FROM saltern.vault_invitations i
        WHERE i.invitation_id = \(\.id) AND i.token_hash = \(\.tokenHash) AND i.expires_at > \(\.now)
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

/// Removes closed or expired invitations.
struct RemoveInvitations: Statement {
    let ids: [InvitationID]

    static let sql: SQL<Self> =
        "DELETE FROM saltern.vault_invitations i WHERE i.invitation_id = ANY(\(\.ids)::uuid[])"
}
