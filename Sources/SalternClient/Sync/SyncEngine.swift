internal import Foundation

/// Syncs the store with the server in rounds, and composes their parts.
///
/// A round fetches pages (``ChangeFetcher``), applies them (``ListingApplier``, ``VersionApplier``), sends changes
/// (``ChangeSender``) and compares later pages with the acknowledged changes (``Confirmations``).
///
/// It is not `Sendable`: it runs on the actor of its owner. Between two awaits each function runs one transaction.
/// Users can edit during a sync, and the next round continues after a crash at any point.
final class SyncEngine {
    /// Fetches later keys and uses them: a keyring, or the log of a shared vault.
    let learn: () async throws -> Void
    private let context: SyncContext
    private let limits: SyncLimits
    private let horizon = SyncHorizon()
    private let fetcher: ChangeFetcher
    private let sender: ChangeSender
    private let refusedVersions: RefusedVersions
    private let setAside: SetAsideVersions

    /// - Parameters:
    ///   - learn: Fetches later keys and uses them: a keyring, or the log of a shared vault.
    ///   - merge: Merges two versions; nil keeps both.
    ///   - onProgress: Receives the progress of a round.
    init(
        _ context: SyncContext, server: any SyncServer, limits: SyncLimits, learn: @escaping () async throws -> Void,
        merge: MergeRule?, onProgress: @escaping (SyncReport) -> Void
    ) {
        self.learn = learn
        self.context = context
        self.limits = limits
        let judge = VersionJudge(context)
        let copies = VersionCopies(context)
        refusedVersions = RefusedVersions(context, judge)
        let applier = VersionApplier(context, judge, copies, refusedVersions, merge: merge)
        setAside = SetAsideVersions(context, server, judge, refusedVersions, applier, learn: learn)
        let listing = ListingApplier(context, judge, copies, refusedVersions, applier)
        fetcher = ChangeFetcher(
            context, server, limits, horizon, listing, applier, setAside, judge, learn: learn, onProgress: onProgress)
        sender = ChangeSender(context, server, limits, horizon, onProgress: onProgress)
    }

    var sealer: any ItemSealing { context.sealer }

    /// Runs one round: fetches, then sends, until both sides have no new changes. Waiting deletions do not block other
    /// changes.
    /// - Parameters:
    ///   - report: The changes on this device, including those before an error.
    ///   - agreement: The deletions that the user has approved, in any number.
    ///   - sends: False to fetch only.
    ///   - learns: False to judge by the known log of a shared vault: no entry is taken during the round.
    func round(
        into report: inout SyncReport, _ agreement: DeletionAgreement = .none, sends: Bool = true, learns: Bool = true
    ) async throws {
        // True while the log of a shared vault can have later entries, which are fetched next.
        let isProvisional = !learns
        var guardian = DeletionGuard(context.store, limits, agreement, at: context.moment)
        var progress = PullProgress(limits)
        var disputed: [Dispute] = []
        var refused: Set<Int64> = []
        var fruitless = 0
        for _ in 0..<limits.rounds {
            if sends { try sender.retireChangesOfReader(into: &report) }
            try await setAside.judgeAgain(&guardian, isProvisional: isProvisional, into: &report)
            try await fetcher.pull(&guardian, agreement, &progress, learns: learns, into: &report)
            if !sends { return }
            if sealer.isStopped { return try sender.countUnsent(into: &report) }
            if !sealer.canWrite { return try sender.retireChangesOfReader(into: &report) }
            // After a restore of the server, no change is sent before all of its items were compared.
            if report.isHeld, try context.store.number(.comparing) != nil { return }
            try await fetcher.settle(disputed, isProvisional: isProvisional, into: &report)
            if fruitless == 0 { try await setAside.settleSetAside(isProvisional: isProvisional, into: &report) }
            if sealer.isStopped { return try sender.countUnsent(into: &report) }
            try refusedVersions.sendFormerVersions()
            do {
                disputed = try await sender.push(except: &refused, into: &report)
                if disputed.isEmpty { return }
            } catch APIError.problem(let problem) where problem.isAboutMembership {
                // An entry of the log has changed the keys or the roles since. The next push seals the changes again.
                disputed = []
                let before = sealer.stamp
                // An entry that cuts a writer off judges only the items that come after it.
                if sealer.isOfVault {
                    try await fetcher.pull(&guardian, agreement, &progress, learns: false, into: &report)
                }
                try await learn()
                fruitless = sealer.stamp == before ? fruitless + 1 : 0
                if fruitless > 1 { break }
            }
            try Task.checkCancellation()
        }
        try sender.countUnsent(into: &report)
    }

    // MARK: Other calls

    /// Withdraws the unsent changes. Their content stays on this device, in the trash or among the replaced versions.
    func retireChanges(into report: inout SyncReport) throws { try sender.retireChanges(into: &report) }

    /// Returns true when an event of the server has new changes, which then need a fetch.
    func isNews(_ revision: Int64) -> Bool { horizon.isNews(revision) }
}

extension Result where Failure == APIError {
    /// Returns the result of an API call.
    static func of(_ call: () async throws(APIError) -> Success) async -> Self {
        do throws(APIError) { return .success(try await call()) } catch { return .failure(error) }
    }
}

/// The items of one owner on this device, for all parts of a sync.
struct SyncContext {
    let store: Store
    let newID: () -> ItemID
    private let sealing: () -> any ItemSealing
    private let now: () -> Date

    /// - Parameter sealing: Returns the present keys of the owner. Another call can replace them between two
    ///   transactions.
    init(
        _ store: Store, sealing: @escaping () -> any ItemSealing, newID: @escaping () -> ItemID = { .random() },
        now: @escaping () -> Date = Date.init
    ) {
        self.store = store
        self.newID = newID
        self.sealing = sealing
        self.now = now
    }

    var sealer: any ItemSealing { sealing() }

    var moment: Date { now() }
}

/// The limits of a round.
struct SyncLimits: Sendable {
    var page = 200
    var batch = 200
    var batchBytes = 8 << 20
    /// The smallest size of a batch, in bytes, to which failing batches are divided.
    var smallestBatchBytes = 64 << 10
    /// The maximum number of times in a row that a push makes its batches smaller.
    var slowdowns = 5
    var rounds = 16
    /// The maximum number of complete listings that one round starts.
    var beginnings = 4
    /// The maximum number of changes of one round, beside one for each opened item of this device.
    var changes = 4_000_000
    /// More deletions than this, or than a third of at least ten items, need the user's approval.
    var deletions = 25
}

/// The result of a sync.
public struct SyncReport: Sendable {
    /// The items that were written or removed on this device.
    public internal(set) var changed: Set<ItemID> = []
    /// Those of them that were deleted by other devices: ``Vault/restore(_:)`` restores them.
    public internal(set) var removed: Set<ItemID> = []
    /// The number of changes of other devices that were fetched.
    public internal(set) var fetched = 0
    /// The number of changes of this device that were sent and confirmed.
    public internal(set) var sent = 0
    /// The number of changes that the server rejects at present; see ``Vault/notices()``.
    public internal(set) var unsent = 0
    /// True when deletions wait for the user's approval: see ``Vault/heldDeletions()``.
    public internal(set) var isHeld = false
    /// The reports of the shared vaults.
    public internal(set) var vaults: [SharedVaultID: SyncReport] = [:]
    /// The shared vaults that were not synced, with the reasons. Everything else was synced.
    public internal(set) var vaultFailures: [SharedVaultID: VaultError] = [:]

    /// Adds the report of a later round.
    mutating func add(_ later: SyncReport) {
        removed.subtract(later.changed)
        removed.formUnion(later.removed)
        changed.formUnion(later.changed)
        fetched += later.fetched
        sent += later.sent
        unsent = later.unsent
        isHeld = later.isHeld
        for id in later.vaults.keys { vaultFailures[id] = nil }
        vaultFailures.merge(later.vaultFailures) { _, later in later }
        vaults.merge(later.vaults) { earlier, later in
            var sum = earlier
            sum.add(later)
            return sum
        }
    }
}

/// The revision of the account up to which a device has everything, as far as it can be inferred.
///
/// The server reports the account's revision after each change, also after a change by this device. An event with the
/// horizon's revision has no new changes. Every other event can have some, even with a lower revision: the server may
/// have been restored from a backup.
final class SyncHorizon {
    /// Nil until a revision is known.
    private(set) var revision: Int64?
    /// The last revision that the server has reported and that no fetch has been started for.
    private var reported: Int64?

    /// The state at the beginning of a fetch.
    struct Beginning {
        fileprivate let reported: Int64?
        fileprivate(set) var last: Int64?

        /// Records a fetched change.
        mutating func take(_ revision: Revision) { last = max(last ?? 0, revision.number) }
    }

    /// Returns true when an event has new changes, which then need a fetch.
    func isNews(_ revision: Int64) -> Bool {
        if revision == self.revision { return false }
        reported = revision
        return true
    }

    /// Starts a fetch. Events that arrive during it belong to the next one.
    func begin() -> Beginning {
        defer { reported = nil }
        return Beginning(reported: reported)
    }

    /// Ends a fetch at the end of the listing.
    func end(_ fetching: Beginning) {
        guard let last = [fetching.reported, fetching.last].compactMap(\.self).max() else { return }
        let wentBack = fetching.reported.map { $0 < revision ?? 0 } ?? false
        revision = wentBack ? last : max(revision ?? 0, last)
    }

    /// Records a confirmed change of this device. If another device has made a change in between, the horizon stays.
    func confirm(_ revision: Revision) {
        if let known = self.revision, known < .max, revision.number == known + 1 { self.revision = revision.number }
    }
}
