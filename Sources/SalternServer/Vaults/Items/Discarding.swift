internal import Postgres

/// The allowance of writers for deletions. Deleted contents of all members share the vault's budget, so the junk of one
/// writer would otherwise remove those of the others.
enum Discarding {
    /// The period of an allowance.
    static let period = Duration.seconds(7 * 86_400)
    /// The allowance is the vault's limit of bytes divided by this number.
    static let divisor: Int64 = 4
}

/// Measures items that a writer is about to delete. Returns no row if they exceed its allowance.
struct MeasureDiscarded: Statement {
    let vaultID: VaultID
    let memberID: MemberID
    let items: [ItemID]
    /// The start of the latest period that has ended by now.
    let since: Timestamp

    struct Row: Sendable {
        let bytes: Int64
        /// The vault's revision before the deletion.
        let revision: Int64
    }

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT d.bytes, a.revision
        FROM saltern.vaults a JOIN saltern.vault_members m ON m.vault_id = a.vault_id
        JOIN saltern.plans p ON p.plan = a.plan CROSS JOIN (
            SELECT coalesce(sum(\(SealedSize.bytes(of: "i"))), 0)::bigint AS bytes FROM saltern.vault_items i
            WHERE i.vault_id = \(\.vaultID) AND i.item_id = ANY(\(\.items)::uuid[]) AND NOT i.deleted
        ) d
        WHERE a.vault_id = \(\.vaultID) AND m.vault_id = \(\.vaultID) AND m.member_id = \(\.memberID)
            AND (p.deleted_days = 0 OR d.bytes = 0 OR p.vault_bytes / \(Discarding.divisor) >= d.bytes
                + CASE WHEN m.discarded_since > \(\.since) THEN m.discarded_bytes ELSE 0 END)
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row { try row.read(Row.init) }
}

/// Counts deleted items for a writer's allowance, if the vault's revision shows that they were deleted.
struct CountDiscarded: Statement {
    let measured: MeasureDiscarded
    let found: MeasureDiscarded.Row
    let now: Timestamp

    static let sql: SQL<Self> = """
        UPDATE saltern.vault_members m
        SET discarded_bytes = \(\.found.bytes)
                + CASE WHEN m.discarded_since > \(\.measured.since) THEN m.discarded_bytes ELSE 0 END,
            discarded_since =
                CASE WHEN m.discarded_since > \(\.measured.since) THEN m.discarded_since ELSE \(\.now) END
        FROM saltern.vaults a
        WHERE m.vault_id = \(\.measured.vaultID) AND m.member_id = \(\.measured.memberID)
            AND a.vault_id = \(\.measured.vaultID) AND a.revision > \(\.found.revision)
        """
}
