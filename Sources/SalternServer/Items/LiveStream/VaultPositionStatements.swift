internal import Postgres

/// A vault's revision and the latest entry of its log.
struct VaultPosition: Sendable, Equatable {
    let revision: Int64
    let headNumber: Int64
    let headHash: [UInt8]
}

/// Finds the vaults on the lists of accounts. An account may no longer be a member of some.
struct FindListedVaults: Statement {
    let accounts: [UUID]

    struct Row: Sendable {
        let accountID: AccountID
        let vaultID: VaultID
    }

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT m.account_id, m.vault_id FROM saltern.memberships m WHERE m.account_id = ANY(\(\.accounts)::uuid[])
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row { try row.read(Row.init) }
}

/// Checks all vaults of the streams on a node: returns the number of live memberships, and the positions of vaults
/// whose revision differs from the node's. If fewer memberships are live than were sent, ``FindLiveMemberships``
/// identifies them.
///
/// Like ``FindMovedRevisions`` it is sent for all of them at a tick, and reads two rows for each membership.
struct FindMovedVaults: Statement {
    let query: Query

    /// Memberships with the last revision of each one's vault, as columns for the statement.
    struct Query: Sendable {
        var accounts: [UUID] = []
        var vaults: [UUID] = []
        var revisions: [Int64] = []

        mutating func append(_ vault: VaultID, of account: AccountID, revision: Int64) {
            accounts.append(account.uuid)
            vaults.append(vault.uuid)
            revisions.append(revision)
        }

        /// Splits the query by parts, given one part for each membership in order.
        func split(by parts: [Int32]) -> [Query] {
            var pieces: [Int32: Query] = [:]
            for (place, part) in parts.enumerated() {
                pieces[part, default: Query()].append(
                    VaultID(vaults[place]), of: AccountID(accounts[place]), revision: revisions[place])
            }
            return Array(pieces.values)
        }
    }

    struct Row: Sendable {
        let liveCount: Int64
        /// The memberships whose vault has changed, counted from 1, and the vaults' positions.
        let places: [Int64]
        let revisions: [Int64]
        let headNumbers: [Int64]
        let headHashes: [[UInt8]]
    }

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT count(live.vault_id), \(moved("w.position")), \(moved(head)), \(moved("a.head_number")),
            \(moved("a.head_hash"))
        \(memberships)
        """
    /// Equals ``AccountCounter/head(_:)``; a cluster aggregates nothing over a nested query.
    private static let head: SQLFragment = "greatest(a.revision, b.revision_base)"

    private static func moved(_ column: SQLFragment) -> SQLFragment {
        "coalesce(array_agg(\(column)) FILTER (WHERE live.vault_id IS NOT NULL AND \(head) <> w.revision), '{}')"
    }

    /// Returns a row for each membership whose vault exists; `live` is null unless the account is a member.
    static let memberships: SQL<Self> = """
        FROM unnest(\(\.query.accounts)::uuid[], \(\.query.vaults)::uuid[], \(\.query.revisions)::bigint[])
            WITH ORDINALITY AS w (holder, vault_id, revision, position)
        JOIN saltern.vaults a ON a.vault_id = w.vault_id AND a.vault_id = ANY(\(\.query.vaults)::uuid[])
        LEFT JOIN saltern.vault_members live ON live.vault_id = a.vault_id AND live.holder = w.holder AND live.role > 0
            AND live.vault_id = ANY(\(\.query.vaults)::uuid[])
        JOIN saltern.installation b ON b.singleton
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row { try row.read(Row.init) }
}

/// Finds the live memberships of a query, counted from 1.
struct FindLiveMemberships: Statement {
    typealias Row = Int64

    let find: FindMovedVaults

    static let isReadOnly = true
    static let sql: SQL<Self> =
        "SELECT w.position \(FindMovedVaults.memberships, of: \.find) WHERE live.vault_id IS NOT NULL"
}
