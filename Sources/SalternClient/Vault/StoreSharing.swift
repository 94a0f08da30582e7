internal import Foundation

/// The sharing of a store between rounds of watched folders and other processes.
struct StoreLending {
    /// The number of rounds that use the store.
    var users = 0
    /// The number of those rounds that are paused, so that another process can use the store.
    var resting = 0
    /// True while one of them releases the store, or waits for its return.
    var isExchanging = false
    /// The number of times that the store was reopened.
    var returns = 0
    /// The number of those times at which another process had written to it.
    var outsideWrites = 0
    /// The state of the store's file when it was released.
    var file: StoreFileState?
    /// The account of the store when it was released.
    var account: AccountID?
}

/// A store that other processes use between the rounds of watched folders, and during long rounds.
///
/// A round pauses before each step while a process waits for the store. When all rounds of this process have paused or
/// ended, one of them closes the store, and reopens it after the waiting processes. Then all continue.
final class StoreSharing {
    private let session: VaultSession
    private let store: Store
    private let owners: ItemOwners
    private(set) var lending = StoreLending()
    /// The versions of all items when the store was released.
    private var lentStamps: [ItemOwner: [ItemID: StoreStamp]] = [:]
    /// ``StoreLending/outsideWrites`` when the app released the store; nil while the app has it.
    private var lentWrites: Int?

    init(_ session: VaultSession, _ owners: ItemOwners) {
        self.session = session
        self.owners = owners
        store = session.store
    }

    private static let pause = Duration.milliseconds(20)

    /// Prepares sharing. The first round of a watched folder uses the open store.
    func begin() {
        session.demand.share()
        let sharing = WeakReference(self)
        owners.beforePiece = { () async throws(VaultError) in _ = try await sharing.object?.giveWay() }
    }

    /// Opens the store for a round, after the processes that wait for it or use it. Each call that returns needs
    /// ``endUse()``.
    /// - Parameter isPatient: False to throw when another process uses the store for long.
    /// - Returns: The number of times that another process has written to the store so far.
    /// - Throws: ``VaultError/locked`` when another process has logged out or has locked the vault.
    func reclaim(isPatient: Bool = true) async throws(VaultError) -> Int {
        lending.users += 1
        do throws(VaultError) {
            if mustRest { try await rest(isPatient) }
            return lending.outsideWrites
        } catch {
            lending.users -= 1
            throw error
        }
    }

    /// Lets waiting processes use the store, within a round.
    /// - Returns: The number of times that another process has written to the store so far.
    func giveWay() async throws(VaultError) -> Int {
        if lending.users > 0, mustRest { try await rest(true) }
        return lending.outsideWrites
    }

    /// True when a round has to pause before its next step.
    private var mustRest: Bool {
        store.isLent || lending.isExchanging || StoreTicket.isAwaited(session.settings.folder)
    }

    /// Waits until the other processes have used the store, or none waits.
    private func rest(_ isPatient: Bool) async throws(VaultError) {
        let wasOpen = session.opened != nil
        let returns = lending.returns
        lending.resting += 1
        defer { lending.resting -= 1 }
        while store.isLent || lending.returns == returns {
            if !lending.isExchanging {
                guard mustRest else { break }
                if store.isLent || lending.resting == lending.users && !session.serverLock.isLocked {
                    do throws(VaultError) { try await exchange() } catch .store(.inUse) where isPatient { continue }
                    break
                }
            }
            do { try await Task.sleep(for: Self.pause) } catch { throw .cancelled }
        }
        if wasOpen && session.opened == nil { throw .locked }
    }

    /// Closes the store, and reopens it after the waiting processes.
    private func exchange() async throws(VaultError) {
        lending.isExchanging = true
        defer { lending.isExchanging = false }
        if !store.isLent { lend() }
        let wasWritten: Bool
        do {
            wasWritten = try await StoreTicket.waiting(in: session.settings.folder) {
                do { try store.takeBack() } catch { throw VaultError(ofStore: error) }
                return store.fileState != lending.file
            }
        } catch let error as VaultError {
            throw error
        } catch {
            throw .cancelled
        }
        lending.returns += 1
        guard wasWritten else { return }
        lending.outsideWrites += 1
        try session.keys.reopen(lending.account)
    }

    /// Closes the store for other processes, when no round needs it.
    func endUse() async {
        lending.users -= 1
        guard lending.users == 0 else { return }
        await session.serverLock.lock()
        defer { session.serverLock.unlock() }
        if lending.users == 0 && !owners.areAttaching { lend() }
    }

    private func lend() {
        if store.isLent { return }
        lending.account = try? session.keys.knownAccount()
        lending.file = store.lend()
    }

    // MARK: The app

    /// Lets other processes use the store until ``takeBack()``.
    func lendUntilTakenBack() async throws(VaultError) {
        await session.demand.lending { await session.serverLock.lock() }
        defer { session.serverLock.unlock() }
        if store.isLent || store.isClosed { return }
        guard lending.users == 0, !owners.areAttaching else { throw .store(.inUse) }
        lentStamps = try session.stored { try owners.stamps() }
        lentWrites = lending.outsideWrites
        lend()
    }

    /// Opens the store again, after the processes that wait for it or use it.
    /// - Returns: True when another process has written to the store.
    func takeBack() async throws(VaultError) -> Bool {
        // A round of a watched folder can have opened it since.
        guard let before = lentWrites ?? (store.isLent ? lending.outsideWrites : nil) else { return false }
        let wasWritten = try await reclaim(isPatient: false) != before
        lending.users -= 1
        lentWrites = nil
        if wasWritten { notifyOtherProcesses() }
        return wasWritten
    }

    /// Reports the items that another process has changed.
    private func notifyOtherProcesses() {
        guard let stamps = try? owners.stamps() else { return }
        for (owner, now) in stamps {
            let before = lentStamps[owner] ?? [:]
            let ids = Set(now.keys).union(before.keys).filter { now[$0] != before[$0] }
            // This process also sends the other process's unsent changes.
            if !ids.isEmpty { try? owners.parts(of: owner).scope.notify(ids) }
        }
        lentStamps = [:]
    }
}

/// Identifies the present version of an item.
struct StoreStamp: Hashable, Sendable {
    var collection: String
    var revision: Int64?
    var sequence: Int64?
}

extension Store {
    /// Returns the present version of each item, without reading its content.
    func stamps() throws -> [ItemID: StoreStamp] {
        let stamps = try database.rows(
            """
            SELECT id, collection, revision, NULL FROM items i WHERE NOT EXISTS (SELECT 1 FROM changes c WHERE c.id = i.id)
            UNION ALL
            SELECT c.id, c.collection, i.revision, c.sequence FROM changes c LEFT JOIN items i ON i.id = c.id
            WHERE c.collection IS NOT NULL
            """
        ) { row in
            (
                try Self.id(row, 0),
                StoreStamp(collection: row.text(1) ?? "", revision: row.integer(2), sequence: row.integer(3))
            )
        }
        return Dictionary(stamps) { _, last in last }
    }
}
