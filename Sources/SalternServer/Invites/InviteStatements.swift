internal import Postgres

/// Makes an invite. Needs the rights of the schema's owner.
struct InsertInvite: Statement {
    let hash: InviteHash
    let id: InviteID
    let now: Timestamp
    let expiresAt: Timestamp
    let plan: String?
    let note: String?

    static let sql = """
        INSERT INTO saltern.invites (code_hash, invite_id, created_at, expires_at, plan, note)
        VALUES ($1, $2, $3, $4, $5, $6)
        """

    func bind(to parameters: inout Parameters) {
        parameters.append(hash)
        parameters.append(id)
        parameters.append(now)
        parameters.append(expiresAt)
        parameters.append(plan)
        parameters.append(note)
    }
}

/// Uses an invite up; no row when it is unknown, used, revoked or expired. Of several at once the first to commit has it.
struct ConsumeInvite: Statement {
    let hash: InviteHash
    let now: Timestamp

    struct Row: Sendable {
        let id: InviteID
        let plan: String?
    }

    static let sql = """
        UPDATE saltern.invites SET used_at = $2
        WHERE code_hash = $1 AND used_at IS NULL AND revoked_at IS NULL AND expires_at > $2
        RETURNING invite_id, plan
        """

    func bind(to parameters: inout Parameters) {
        parameters.append(hash)
        parameters.append(now)
    }

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row {
        Row(id: try row.next(), plan: try row.next())
    }
}

/// An invite by its code, whatever has become of it.
struct FindInviteOfCode: Statement {
    let hash: InviteHash

    static let isReadOnly = true
    static let sql = "SELECT invite_id FROM saltern.invites WHERE code_hash = $1"

    func bind(to parameters: inout Parameters) { parameters.append(hash) }

    static func decode(_ row: inout RowReader) throws(PostgresError) -> InviteID { try row.next() }
}

/// The invite that an account came with.
struct FindInviteOfAccount: Statement {
    let accountID: AccountID

    static let isReadOnly = true
    static let sql = "SELECT a.invite_id FROM saltern.accounts a WHERE a.account_id = $1"

    func bind(to parameters: inout Parameters) { parameters.append(accountID) }

    static func decode(_ row: inout RowReader) throws(PostgresError) -> InviteID? { try row.next() }
}

/// Invites, latest first.
struct FindInvites: Statement {
    let now: Timestamp
    /// Also those that are used, revoked or expired.
    let includesSpent: Bool
    let limit: Int64

    static let isReadOnly = true
    static let sql = """
        SELECT invite_id, created_at, expires_at, plan, note, used_at, revoked_at FROM saltern.invites
        WHERE $2 OR (used_at IS NULL AND revoked_at IS NULL AND expires_at > $1)
        ORDER BY created_at DESC, invite_id LIMIT $3
        """

    func bind(to parameters: inout Parameters) {
        parameters.append(now)
        parameters.append(includesSpent)
        parameters.append(limit)
    }

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Invite { try Invite(row: &row) }
}

/// The code's hash of the invite with a name.
struct FindInvite: Statement {
    let id: InviteID

    struct Row: Sendable {
        let hash: InviteHash
        let isUsed: Bool
    }

    static let isReadOnly = true
    static let sql = "SELECT code_hash, used_at IS NOT NULL FROM saltern.invites WHERE invite_id = $1"

    func bind(to parameters: inout Parameters) { parameters.append(id) }

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row {
        Row(hash: try row.next(), isUsed: try row.next())
    }
}

/// Takes an invite back; no row when it is used, or was taken back before.
struct RevokeInvite: Statement {
    let hash: InviteHash
    let now: Timestamp

    static let sql = """
        UPDATE saltern.invites SET revoked_at = $2
        WHERE code_hash = $1 AND used_at IS NULL AND revoked_at IS NULL
        RETURNING invite_id
        """

    func bind(to parameters: inout Parameters) {
        parameters.append(hash)
        parameters.append(now)
    }

    static func decode(_ row: inout RowReader) throws(PostgresError) -> InviteID { try row.next() }
}

extension Invite {
    fileprivate init(row: inout RowReader) throws(PostgresError) {
        id = try row.next()
        createdAt = try row.next()
        expiresAt = try row.next()
        plan = try row.next()
        note = try row.next()
        usedAt = try row.next()
        revokedAt = try row.next()
    }
}
