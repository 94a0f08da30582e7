internal import HTTPCore
internal import Postgres

/// `GET /v1/account`: returns the caller's account, the plan's limits and the usage.
struct ShowAccount: AccountEndpoint {
    func respond(to request: Request, authorization: Authorization) async throws -> Response {
        let find = FindAccount(now: authorization.now, idleSince: authorization.idleSince)
        guard let account = try await authorization.read(find).first else { throw Unauthenticated() }
        return .json(capacity: 512) { writer in
            writer.object { writer in
                writer.member("accountId", authorization.accountID)
                writer.member("userid", account.userid)
                writer.member("plan", account.plan)
                writer.object("limits") { writer in account.limits.write(to: &writer) }
                writer.object("usage") { writer in
                    writer.member("items", account.items)
                    writer.member("bytes", account.bytes)
                    writer.member("deletedItems", account.deletedItems)
                    writer.member("deletedBytes", account.deletedBytes)
                    writer.member("versions", account.versions)
                    writer.member("versionBytes", account.versionBytes)
                    writer.member("sessions", account.sessions)
                    writer.member("shares", account.shares)
                    writer.member("vaults", account.vaults)
                    writer.member("memberships", account.memberships)
                }
                writer.object("secondFactor") { writer in
                    writer.member("totp", account.hasSecondFactor)
                    writer.member("recoveryCodesLeft", account.recoveryCodes)
                }
                writer.object("recovery") { writer in
                    writer.member("set", account.recoverySetAt != nil)
                    if let createdAt = account.recoverySetAt { writer.member("createdAt", createdAt) }
                }
                writer.member("createdAt", account.createdAt)
                writer.member("revisionBase", account.revisionBase)
                if let updatedAt = account.receiptUpdatedAt { writer.member("receiptUpdatedAt", updatedAt) }
            }
        }
    }
}

/// Finds the account with its plan and usage.
struct FindAccount: AccountRead {
    let now: Timestamp
    let idleSince: Timestamp

    struct Row: Sendable {
        let userid: String
        let plan: String
        let createdAt: Timestamp
        let revisionBase: Int64
        let limits: AccountPlan.Limits
        let items: Int64
        let bytes: Int64
        /// Number and sealed bytes of deleted items that can be restored.
        let deletedItems: Int64
        let deletedBytes: Int64
        /// Number and sealed bytes of older versions of items.
        let versions: Int64
        let versionBytes: Int64
        let sessions: Int64
        let shares: Int64
        let vaults: Int64
        let memberships: Int64
        let hasSecondFactor: Bool
        /// Unused recovery codes of the second factor.
        let recoveryCodes: Int64
        /// The time at which the recovery key was set. Nil without one.
        let recoverySetAt: Timestamp?
        /// Nil without a receipt.
        let receiptUpdatedAt: Timestamp?
    }

    static let sql: AccountSQL<Self> = """
        SELECT a.userid, a.plan, a.created_at, \(AccountCounter.base), \(AccountPlan.Limits.columns),
            a.item_count, a.item_bytes,
            a.kept_count, a.kept_bytes, a.version_count, a.version_bytes,
            (
                SELECT count(*) FROM saltern.sessions s
                WHERE s.account_id = \(.account)
                    AND \(SessionLiveness.isLive("s", at: "\(\.now)", idleSince: "\(\.idleSince)"))
            ), \(ShareCount.sql(of: "\(.account)", at: "\(\.now)")),
            \(MembershipCount.sql(of: "\(.account)")),
            EXISTS (SELECT FROM saltern.second_factors f WHERE f.account_id = \(.account)
                AND f.confirmed_at IS NOT NULL),
            (SELECT count(*) FROM saltern.second_factor_codes c WHERE c.account_id = \(.account)),
            (SELECT r.created_at FROM saltern.recoveries r WHERE r.account_id = \(.account)),
            (SELECT r.updated_at FROM saltern.receipts r WHERE r.account_id = \(.account))
        FROM saltern.accounts a JOIN saltern.plans p ON p.plan = a.plan
        WHERE a.account_id = \(.account)
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row {
        Row(
            userid: try row.next(), plan: try row.next(), createdAt: try row.next(), revisionBase: try row.next(),
            limits: try AccountPlan.Limits(row: &row),
            items: try row.next(), bytes: try row.next(), deletedItems: try row.next(), deletedBytes: try row.next(),
            versions: try row.next(), versionBytes: try row.next(),
            sessions: try row.next(), shares: try row.next(),
            vaults: try row.next(), memberships: try row.next(), hasSecondFactor: try row.next(),
            recoveryCodes: try row.next(), recoverySetAt: try row.next(),
            receiptUpdatedAt: try row.next())
    }
}
