internal import Postgres

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
        WHERE i.invitation_id = ANY(\(\.ids)::uuid[]) AND i.expires_at <= \(\.now)
        """
}
