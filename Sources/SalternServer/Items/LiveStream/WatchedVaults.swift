internal import Postgres

/// The vaults of the accounts with streams on a node. Accounts without vaults are not in it.
struct WatchedVaults {
    private struct Watched {
        /// The revision of the account's list (see ``FindRevision``).
        var listRevision: Int64
        /// The vaults on the list. The position is nil until it is found.
        var vaults: [VaultID: VaultPosition?] = [:]
        var subscriptions: [LiveSubscription]
    }

    private var accounts: [AccountID: Watched] = [:]
    /// The accounts whose list must be read.
    private var due: Set<AccountID> = []
    /// The query of each tick. Nil if it must be rebuilt.
    private var query: FindMovedVaults.Query?
    private var isPolling = false
    /// The end of the pause after a query without an answer.
    private var pausedUntil: ContinuousClock.Instant?

    /// Events for streams.
    typealias News = [(LiveSubscription, VaultID, VaultPosition?)]

    /// Adds streams of an account with vaults.
    ///
    /// - Returns: The known positions, for the new streams.
    mutating func add(_ subscriptions: [LiveSubscription], of account: AccountID, listRevision: Int64) -> News {
        guard var watched = accounts[account] else {
            accounts[account] = Watched(listRevision: listRevision, subscriptions: subscriptions)
            due.insert(account)
            return []
        }
        watched.subscriptions += subscriptions
        accounts[account] = watched
        read(account, listRevision: listRevision)
        return subscriptions.flatMap { subscription in
            watched.vaults.compactMap { id, position in position.map { (subscription, id, $0) } }
        }
    }

    mutating func remove(_ subscription: LiveSubscription) {
        let account = subscription.session.accountID
        guard accounts[account] != nil else { return }
        accounts[account]?.subscriptions.removeAll { $0 === subscription }
        guard accounts[account]?.subscriptions.isEmpty == true else { return }
        accounts[account] = nil
        due.remove(account)
        query = nil
    }

    func contains(_ account: AccountID) -> Bool { accounts[account] != nil }

    /// Marks an account's list as due if its revision is another one.
    mutating func read(_ account: AccountID, listRevision: Int64) {
        guard let known = accounts[account]?.listRevision, known != listRevision else { return }
        accounts[account]?.listRevision = listRevision
        due.insert(account)
    }

    // MARK: Queries

    /// Returns true if a query is due. It then counts as running until ``end(_:hasFailed:)``.
    mutating func begin(_ now: ContinuousClock.Instant) -> Bool {
        guard !isPolling, !accounts.isEmpty, now >= pausedUntil ?? now else { return false }
        isPolling = true
        return true
    }

    /// - Parameter hasFailed: True if a query had no answer. The next one then follows after a pause.
    mutating func end(_ now: ContinuousClock.Instant, hasFailed: Bool) {
        isPolling = false
        pausedUntil = hasFailed ? now + WatchedSessions.patience : nil
    }

    /// Returns the accounts whose lists must be read.
    mutating func takeDue() -> [AccountID] {
        defer { due = [] }
        return Array(due)
    }

    /// Reads the lists of accounts again, because their query had no answer.
    mutating func setDue(_ unread: [AccountID]) { due.formUnion(unread.filter { accounts[$0] != nil }) }

    /// Stores the lists of accounts.
    mutating func note(_ rows: [FindListedVaults.Row], of read: [AccountID]) {
        let lists = Dictionary(grouping: rows, by: \.accountID)
        for account in read {
            guard let watched = accounts[account] else { continue }
            var vaults: [VaultID: VaultPosition?] = [:]
            for row in lists[account] ?? [] {
                vaults.updateValue(watched.vaults[row.vaultID] ?? nil, forKey: row.vaultID)
            }
            accounts[account]?.vaults = vaults
        }
        query = nil
    }

    /// Returns the query for all vaults. Nil if there is none.
    mutating func makeQuery() -> FindMovedVaults.Query? {
        if query == nil {
            var query = FindMovedVaults.Query()
            for (account, watched) in accounts {
                for (vault, position) in watched.vaults {
                    query.append(vault, of: account, revision: position?.revision ?? -1)
                }
            }
            self.query = query
        }
        return query.flatMap { $0.vaults.isEmpty ? nil : $0 }
    }

    /// Stores the positions of vaults.
    ///
    /// - Parameter found: The position by place in the query. Nil for an ended membership.
    /// - Returns: The events for the streams.
    mutating func note(_ found: [Int64: VaultPosition?], of asked: FindMovedVaults.Query) -> News {
        if found.isEmpty { return [] }
        query = nil
        var news: News = []
        for (place, position) in found {
            let account = AccountID(asked.accounts[Int(place) - 1])
            let vault = VaultID(asked.vaults[Int(place) - 1])
            guard let watched = accounts[account], let known = watched.vaults[vault] else { continue }
            if let position {
                accounts[account]?.vaults.updateValue(position, forKey: vault)
            } else {
                accounts[account]?.vaults.removeValue(forKey: vault)
                // The list keeps vaults that the account left earlier.
                if known == nil { continue }
            }
            for subscription in watched.subscriptions { news.append((subscription, vault, position)) }
        }
        return news
    }
}

/// Queries the positions of vaults for a ``RevisionWatcher``.
struct VaultPoller: Sendable {
    let database: PostgresClient
    /// Receives the position by place in the query. Nil for an ended membership.
    let report: @Sendable ([Int64: VaultPosition?], FindMovedVaults.Query) -> Void

    /// - Returns: False if the query failed.
    func poll(_ query: FindMovedVaults.Query) async -> Bool {
        let find = FindMovedVaults(query: query)
        do throws(PostgresError) {
            guard let row = try await database.execute(find).first else { return true }
            var found: [Int64: VaultPosition?] = [:]
            for (index, place) in row.places.enumerated() {
                found[place] = VaultPosition(
                    revision: row.revisions[index], headNumber: row.headNumbers[index],
                    headHash: row.headHashes[index])
            }
            if row.liveCount < query.vaults.count {
                let memberships = try await database.execute(FindLiveMemberships(find: find))
                let live = Set(memberships.filter(\.isLive).map(\.position))
                for place in 1...Int64(query.vaults.count) where !live.contains(place) {
                    found.updateValue(nil, forKey: place)
                }
            }
            report(found, query)
            return true
        } catch {
            return false
        }
    }

    /// Queries the vaults of each hash part separately: a missing node of a cluster must not prevent events for vaults
    /// on other nodes.
    func pollInPieces(_ query: FindMovedVaults.Query) async {
        guard let parts = try? await database.execute(FindHashParts(accounts: query.vaults)) else { return }
        for piece in query.split(by: parts.map(\.part)).shuffled() { _ = await poll(piece) }
    }
}

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
    ///
    /// The ids are a condition on `a` only. As one on `live`, the planner could search each member in all vaults. The
    /// numbers are as in ``FindMovedRevisions/sessions``.
    static let memberships: SQL<Self> = """
        FROM ROWS FROM (unnest(\(\.query.accounts)::uuid[]), unnest(\(\.query.vaults)::uuid[]),
            unnest(\(\.query.revisions)::bigint[]), generate_series(1::bigint, cardinality(\(\.query.vaults)::uuid[])))
            AS w (holder, vault_id, revision, position)
        JOIN saltern.vaults a ON a.vault_id = w.vault_id AND a.vault_id = ANY(\(\.query.vaults)::uuid[])
        LEFT JOIN saltern.vault_members live ON live.vault_id = a.vault_id AND live.holder = w.holder AND live.role > 0
        JOIN saltern.installation b ON b.singleton
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row { try row.read(Row.init) }
}

/// Finds which memberships of a query are live, counted from 1. As a condition this would ask all nodes of a cluster.
struct FindLiveMemberships: Statement {
    let find: FindMovedVaults

    struct Row: Sendable {
        let position: Int64
        let isLive: Bool
    }

    static let isReadOnly = true
    static let sql: SQL<Self> =
        "SELECT w.position, live.vault_id IS NOT NULL \(FindMovedVaults.memberships, of: \.find)"

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row { try row.read(Row.init) }
}
