public import Postgres

/// Stores an invite. Requires the rights of the schema's owner.
struct InsertInvite: Statement {
    let hash: InviteHash
    let id: InviteID
    let now: Timestamp
    let expiresAt: Timestamp
    let plan: String?
    let note: String?

    static let sql: SQL<Self> = """
        INSERT INTO saltern.invites (code_hash, invite_id, created_at, expires_at, plan, note)
        VALUES (\(\.hash), \(\.id), \(\.now), \(\.expiresAt), \(\.plan), \(\.note))
        """
}

/// Uses an invite up. Returns no row if it is unknown, used, revoked or expired. Of concurrent uses, the first to
/// commit succeeds.
struct ConsumeInvite: Statement {
    let hash: InviteHash
    let now: Timestamp

    struct Row: Sendable {
        let id: InviteID
        let plan: String?
    }

    static let sql: SQL<Self> = """
        UPDATE saltern.invites SET used_at = \(\.now)
        WHERE code_hash = \(\.hash) AND used_at IS NULL AND revoked_at IS NULL AND expires_at > \(\.now)
        RETURNING invite_id, plan
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row { try row.read(Row.init) }
}

/// Finds an invite by its code, in any state.
struct FindInviteOfCode: Statement {
    typealias Row = InviteID

    let hash: InviteHash

    static let isReadOnly = true
    static let sql: SQL<Self> = "SELECT invite_id FROM saltern.invites WHERE code_hash = \(\.hash)"
}

/// Finds the invite that an account registered with.
struct FindInviteOfAccount: Statement {
    typealias Row = InviteID?

    let accountID: AccountID

    static let isReadOnly = true
    static let sql: SQL<Self> = "SELECT a.invite_id FROM saltern.accounts a WHERE a.account_id = \(\.accountID)"
}

/// Finds invites, latest first.
struct FindInvites: Statement {
    typealias Row = Invite

    let now: Timestamp
    /// True to include used, revoked and expired ones.
    let includesSpent: Bool
    let limit: Int64

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT invite_id, created_at, expires_at, plan, note, used_at, revoked_at FROM saltern.invites
        WHERE \(\.includesSpent) OR (used_at IS NULL AND revoked_at IS NULL AND expires_at > \(\.now))
        ORDER BY created_at DESC, invite_id LIMIT \(\.limit)
        """
}

/// Finds the code's hash of an invite by its id.
struct FindInvite: Statement {
    let id: InviteID

    struct Row: Sendable {
        let hash: InviteHash
        let isUsed: Bool
    }

    static let isReadOnly = true
    static let sql: SQL<Self> = "SELECT code_hash, used_at IS NOT NULL FROM saltern.invites WHERE invite_id = \(\.id)"

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row { try row.read(Row.init) }
}

/// Revokes an invite. Returns no row if it is used or already revoked.
struct RevokeInvite: Statement {
    typealias Row = InviteID

    let hash: InviteHash
    let now: Timestamp

    static let sql: SQL<Self> = """
        UPDATE saltern.invites SET revoked_at = \(\.now)
        WHERE code_hash = \(\.hash) AND used_at IS NULL AND revoked_at IS NULL
        RETURNING invite_id
        """
}

extension Invite: DecodableRow {
    public init(row: inout RowReader) throws(PostgresError) {
        id = try row.next()
        createdAt = try row.next()
        expiresAt = try row.next()
        plan = try row.next()
        note = try row.next()
        usedAt = try row.next()
        revokedAt = try row.next()
    }
}
