public import Postgres

/// Creates, lists and revokes invites for an operator.
public struct InviteAdministration {
    private let database: PostgresClient

    /// - Parameter database: Connects as the schema's owner, because the server's role cannot create invites.
    public init(database: PostgresClient) {
        self.database = database
    }

    /// The terms that new invites share.
    public struct Terms: Sendable {
        public var expiresAt: Timestamp
        public var plan: String?
        /// Note of 1 to ``noteLimit`` characters for the operator.
        public var note: String?

        public init(expiresAt: Timestamp, plan: String? = nil, note: String? = nil) {
            self.expiresAt = expiresAt
            self.plan = plan
            self.note = note
        }

        /// The longest note in characters.
        public static let noteLimit = 200
    }

    /// A new invite with its code, which cannot be retrieved later.
    public struct New: Sendable {
        public let id: InviteID
        public let code: InviteCode
    }

    /// Reasons to reject a command on invites.
    public enum Refusal: Error, Equatable, CustomStringConvertible {
        case noSuchPlan
        case noSuchInvite
        case used

        public var description: String {
            switch self {
            case .noSuchPlan: "there is no such plan; see saltern plan list"
            case .noSuchInvite: "there is no such invite; see saltern invite list --all"
            case .used: "the invite was used already"
            }
        }
    }

    /// Creates invites, all or none.
    ///
    /// - Parameter show: Receives the codes before the commit, because they can be shown only once. If it throws, no
    ///   invite remains.
    /// - Throws: ``Refusal/noSuchPlan``, an error of `show`, or a `PostgresError`.
    public func create(
        _ count: Int, _ terms: Terms, by signature: AuditSignature, show: ([New]) throws -> Void = { _ in }
    ) async throws -> [New] {
        try await database.withTransaction { transaction in
            if let plan = terms.plan, try await transaction.execute(KeepPlan(name: plan)).isEmpty {
                throw Refusal.noSuchPlan
            }
            let invites = (0..<count).map { _ in New(id: .random(), code: .random()) }
            for invite in invites {
                _ = try await transaction.execute(
                    InsertInvite(
                        hash: invite.code.hash, id: invite.id, now: signature.now, expiresAt: terms.expiresAt,
                        plan: terms.plan, note: terms.note))
            }
            // The rows of the audit log come last, because they delay all other records.
            try show(invites)
            for invite in invites {
                let detail = "invite \(invite.id)" + (terms.plan.map { ", plan \($0)" } ?? "")
                try await transaction.record(AppendAudit(signature, .inviteCreated, detail: detail))
            }
            return invites
        }
    }

    /// Returns invites, latest first.
    ///
    /// - Parameter includesSpent: True to include used, revoked and expired ones.
    public func invites(
        includingSpent includesSpent: Bool, limit: Int, now: Timestamp
    ) async throws(PostgresError) -> [Invite] {
        try await database.execute(FindInvites(now: now, includesSpent: includesSpent, limit: Int64(limit)))
    }

    /// Revokes an invite. A revoked one stays revoked.
    ///
    /// - Throws: ``Refusal`` or a `PostgresError`.
    public func revoke(_ id: InviteID, by signature: AuditSignature) async throws {
        try await database.withTransaction { transaction in
            guard let invite = try await transaction.execute(FindInvite(id: id)).first else {
                throw Refusal.noSuchInvite
            }
            guard try await transaction.execute(RevokeInvite(hash: invite.hash, now: signature.now)).first != nil else {
                // A registration may have used it in between.
                if try await transaction.execute(FindInvite(id: id)).first?.isUsed == true { throw Refusal.used }
                return
            }
            try await transaction.record(AppendAudit(signature, .inviteRevoked, detail: "invite \(id)"))
        }
    }
}

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
