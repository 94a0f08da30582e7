internal import Postgres

/// The recovery of a vault after a restore of the database: its log can lack entries that members have.
///
/// Until the owner's device reports the end, members put entries back, and no new ones are appended. A member that was
/// removed after the backup therefore cannot continue the log on its own.
enum VaultRecovery {
    /// The longest recovery, which ends without a report.
    static let period = Duration.seconds(7 * 86_400)

    /// The time of the restore, or null if the vault `a` was founded or has recovered since then.
    static let began: SQLFragment = """
        (SELECT b.base_moved_at FROM saltern.installation b WHERE b.singleton AND b.revision_base > a.recovered_base)
        """

    /// Returns the end of a recovery that is under way.
    static func end(began: Timestamp?, now: Timestamp) -> Timestamp? {
        guard let began, began + period > now else { return nil }
        return began + period
    }
}

/// Finds the time of the restore from which a vault recovers.
struct FindVaultRecovery: Statement {
    let vaultID: VaultID

    static let isReadOnly = true
    static let sql: SQL<Self> = "SELECT \(VaultRecovery.began) FROM saltern.vaults a WHERE a.vault_id = \(\.vaultID)"

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Timestamp? { try row.next() }
}

/// Records that a vault has recovered.
struct EndRecovery: Statement {
    let vaultID: VaultID

    static let sql: SQL<Self> = """
        UPDATE saltern.vaults a SET recovered_base = \(AccountCounter.base) WHERE a.vault_id = \(\.vaultID)
        """
}
