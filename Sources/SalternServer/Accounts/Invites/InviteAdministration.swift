public import Postgres

/// What an operator does with invites.
public struct InviteAdministration {
    private let database: PostgresClient

    /// - Parameter database: Connects as the schema's owner: the server's role makes no invites.
    public init(database: PostgresClient) {
        self.database = database
    }

    /// What new invites have in common.
    public struct Terms: Sendable {
        public var expiresAt: Timestamp
        public var plan: String?
        /// 1 to ``noteLimit`` characters, for the operator.
        public var note: String?

        public init(expiresAt: Timestamp, plan: String? = nil, note: String? = nil) {
            self.expiresAt = expiresAt
            self.plan = plan
            self.note = note
        }

        /// The longest note in characters.
        public static let noteLimit = 200
    }

    /// An invite with the code that nobody can ask for again.
    public struct New: Sendable {
        public let id: InviteID
        public let code: InviteCode
    }

    /// Why nothing was done.
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

    /// Makes invites, all or none.
    /// - Parameter show: Takes the codes before they are committed, because they can be shown once only: what it throws
    ///   leaves no invite.
    /// - Throws: ``Refusal/noSuchPlan``, what `show` throws, or a `PostgresError`.
    public func create(
        _ count: Int, _ terms: Terms, by signature: AuditSignature, show: ([New]) throws -> Void = { _ in }
    ) async throws -> [New] {
        try await database.withTransaction { transaction in
            if let plan = terms.plan, try await !transaction.execute(FindPlans()).contains(where: { $0.name == plan }) {
                throw Refusal.noSuchPlan
            }
            let invites = (0..<count).map { _ in New(id: .random(), code: .random()) }
            for invite in invites {
                _ = try await transaction.execute(
                    InsertInvite(
                        hash: invite.code.hash, id: invite.id, now: signature.now, expiresAt: terms.expiresAt,
                        plan: terms.plan, note: terms.note))
            }
            // The rows of the log come last: they hold up everything else that is recorded.
            try show(invites)
            for invite in invites {
                let detail = "invite \(invite.id)" + (terms.plan.map { ", plan \($0)" } ?? "")
                try await transaction.record(AppendAudit(signature, .inviteCreated, detail: detail))
            }
            return invites
        }
    }

    /// Invites, latest first.
    /// - Parameter includesSpent: Also those that are used, revoked or expired.
    public func invites(
        includingSpent includesSpent: Bool, limit: Int, now: Timestamp
    ) async throws(PostgresError) -> [Invite] {
        try await database.execute(FindInvites(now: now, includesSpent: includesSpent, limit: Int64(limit)))
    }

    /// Takes an invite back. One that was taken back already stays so.
    /// - Throws: ``Refusal`` or a `PostgresError`.
    public func revoke(_ id: InviteID, by signature: AuditSignature) async throws {
        try await database.withTransaction { transaction in
            guard let invite = try await transaction.execute(FindInvite(id: id)).first else {
                throw Refusal.noSuchInvite
            }
            guard try await transaction.execute(RevokeInvite(hash: invite.hash, now: signature.now)).first != nil else {
                // Somebody may have used it in between.
                if try await transaction.execute(FindInvite(id: id)).first?.isUsed == true { throw Refusal.used }
                return
            }
            try await transaction.record(AppendAudit(signature, .inviteRevoked, detail: "invite \(id)"))
        }
    }
}
