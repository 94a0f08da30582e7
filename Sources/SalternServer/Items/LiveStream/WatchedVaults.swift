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
