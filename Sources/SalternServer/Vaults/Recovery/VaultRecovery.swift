internal import Postgres

/// The recovery of a vault after a restore of the database: its log can lack entries that members have.
///
/// Until the owner's device reports the end, members put entries back, and no new ones are appended. Entries that are
/// put back are provisional: the owner replaces them, and until the end they take rights and give none. A member that
/// was removed after the backup therefore cannot continue the log on its own.
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

/// The end of a vault's log, and its recovery.
struct VaultState: DecodableRow {
    let head: StoredHead
    /// The member that owns the vault, without provisional entries.
    private(set) var owner: MemberID
    /// The time at which the vault's recovery began, if the database was restored since then.
    private(set) var recoveryBegan: Timestamp?
    /// The number above which entries are provisional. Nil if none were put back.
    private(set) var settled: Int64?

    init(row: inout RowReader) throws(PostgresError) {
        head = StoredHead(number: try row.next(), hash: try row.next())
        owner = try row.next()
        recoveryBegan = try row.next()
        settled = try row.next()
    }

    mutating func hasRecovered(owner: MemberID) {
        self.owner = owner
        recoveryBegan = nil
        settled = nil
    }
}

struct FindVaultState: Statement {
    typealias Row = VaultState

    let vaultID: VaultID

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT a.head_number, a.head_hash, a.owner_member, \(VaultRecovery.began), a.settled_number
        FROM saltern.vaults a WHERE a.vault_id = \(\.vaultID)
        """
}

/// Records that a vault has recovered.
struct EndRecovery: Statement {
    let vaultID: VaultID
    /// The member that owns the vault.
    let owner: MemberID

    static let sql: SQL<Self> = """
        UPDATE saltern.vaults a
        SET recovered_base = \(AccountCounter.base), settled_number = NULL, owner_member = \(\.owner)
        WHERE a.vault_id = \(\.vaultID)
        """
}
