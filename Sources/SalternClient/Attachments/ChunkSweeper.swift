internal import Foundation

/// Removes the chunks of deleted attachments from the server.
///
/// In a shared vault only managers' devices do so. The server has an allowance for the deletions of a writer, and a
/// sweep would use up that of the person.
final class ChunkSweeper {
    private let scope: ItemScope
    private let store: Store
    private let plan: PlanLimits
    private let index: ManifestIndex
    private let waiting: WaitingChunks
    private let abandoned: AbandonedChunks

    init(
        _ scope: ItemScope, _ plan: PlanLimits, _ index: ManifestIndex, _ waiting: WaitingChunks,
        _ abandoned: AbandonedChunks
    ) {
        self.scope = scope
        self.plan = plan
        self.index = index
        self.waiting = waiting
        self.abandoned = abandoned
        store = scope.store
    }

    /// The largest number of chunks that a sync removes, of all owners together.
    static let sweepLimit = 200
    /// The days by which chunks of a shared vault stay longer. Another member's device can fetch a change later, and
    /// restores the previous content for a period that begins then.
    private static let daysOfOtherMembers: Int64 = 30

    /// Sweeps once a day of the store's age, if the store has chunks. When more chunks of the account are due than one
    /// sync removes, the next sync continues. A shared vault continues on the next day.
    /// - Parameters:
    ///   - age: The age of the store; nil when no clock confirms it, and then no sweep is due.
    ///   - room: The number of chunks that the sync may still remove. The sweep lowers it.
    ///   - round: Fetches the changes of other devices.
    /// - Returns: The report of the sweep's own round; nil when no sweep was due or it failed.
    func sweepWhenDue(
        at moment: Date, age: Int64?, room: inout Int, after round: () async throws(VaultError) -> SyncReport
    ) async -> SyncReport? {
        guard let age, room > 0 else { return nil }
        do {
            guard try store.hasChunks() || store.hasWaitingChunks() else { return nil }
            if let before = try store.number(.sweptAt), age - before < 86_400 { return nil }
            try store.set(.sweptAt, age)
            try waiting.forgetUnnamed(at: age)
            guard try scope.sealer.canSweep else { return nil }
            let (count, report) = try await sweep(at: moment, age: age, room: &room, after: round)
            if count > 0, room == 0, scope.owner == .account { try store.set(.sweptAt, nil) }
            return report
        } catch {
            return nil
        }
    }

    /// Removes chunks that no item names.
    /// - Parameters:
    ///   - age: The age of the store; nil for the one that the server's clock confirms.
    ///   - room: The largest number of chunks to remove. The sweep lowers it.
    ///   - round: Fetches the changes of other devices. The caller of it holds the lock.
    func sweep(
        at moment: Date, age: Int64?, room: inout Int, after round: () async throws(VaultError) -> SyncReport
    ) async throws(VaultError) -> (count: Int, report: SyncReport) {
        try await abandoned.takeAllBack()
        guard try scope.stored({ try store.hasChunks() }) else { return (0, SyncReport()) }
        let limits = try await plan.usage().limits
        await scope.serverLock.lock()
        defer { scope.serverLock.unlock() }
        // Fetches manifests that other devices have put since, before a decision.
        let report = try await round()
        guard report.isHeld == false else { throw .deletionsHeld }
        let opened = try scope.open
        // The round can have fetched another role.
        guard opened.engine.sealer.canSweep else { return (0, report) }
        let confirmed = age == nil ? try scope.confirmedAge() : age
        guard let age = confirmed else { return (0, report) }
        let unnamed = try unnamedChunks(at: age, moment, days: limits.deletedDays, opened.engine.sealer)
        var count = 0
        var left = scope.owner == .account ? room : min(room, limits.dailySweep)
        for chunk in unnamed where left > 0 {
            if Task.isCancelled { throw .unavailable(.transport(.cancelled)) }
            // An attachment that is created at the same time may use it.
            guard try scope.stored({ try store.chunk(chunk.id) }) == chunk else { continue }
            left -= 1
            room -= 1
            do throws(APIError) {
                _ = try await scope.session.syncRetries({ () throws(APIError) in
                    try await scope.api.deleteItem(chunk.id, .revision(chunk.revision), opened.token)
                })
                count += 1
            } catch {
                // The chunk was deleted or written again since.
                guard [.notFound, .preconditionFailed].contains(error.code) else { throw VaultError(error) }
                continue
            }
            try scope.stored {
                try store.forgetChunk(chunk.id)
                try store.forgetUnnamed(chunk.id)
                try store.forgetDraftChunk(chunk.id)
            }
        }
        return (count, report)
    }

    /// Records the chunks without a name, and returns those that have had none for their period. The server must have
    /// stored them before it, too.
    /// - Parameter days: The present `deletedDays`.
    private func unnamedChunks(
        at age: Int64, _ moment: Date, days: Int, _ sealer: any ItemSealing
    ) throws(VaultError) -> [StoredChunk] {
        try scope.stored { try store.removeAgedVersions(at: age) }
        let (indexed, isIndexWhole) = try index.indexedChunks(sealer)
        guard isIndexWhole, try !scope.stored({ try index.lacksVersions() }) else { return [] }
        let due = try noteUnnamed(except: indexed, at: age, moment, days: days)
        if due.isEmpty { return [] }
        // A removed chunk is lost for all devices. Therefore all content is opened instead of using the index.
        let (named, isWhole) = try index.namedChunks(sealer)
        guard isWhole else { return [] }
        let (kept, areVersionsWhole) = try index.chunksOfReplacedVersions(sealer)
        guard areVersionsWhole else { return [] }
        try scope.stored {
            try store.transaction {
                for chunk in due where named.contains(chunk.id) { try store.forgetUnnamed(chunk.id) }
            }
        }
        return due.filter { !named.contains($0.id) && !kept.contains($0.id) }
    }

    /// - Returns: The chunks that have had no name for their period.
    private func noteUnnamed(
        except named: Set<ItemID>, at age: Int64, _ moment: Date, days: Int
    ) throws(VaultError) -> [StoredChunk] {
        let more = scope.owner == .account ? 0 : Self.daysOfOtherMembers
        return try scope.stored {
            try store.transaction {
                var periods = KeptPeriods(try store.text(.keptDays))
                periods.note(days, at: age)
                try store.set(.keptDays, Array(periods.text.utf8))
                for chunk in try store.chunks() {
                    if named.contains(chunk.id) {
                        try store.forgetDraftChunk(chunk.id)
                        try store.forgetUnnamed(chunk.id)
                    } else {
                        try store.noteUnnamed(chunk.id, at: age)
                    }
                }
                let since = try store.unnamedChunks()
                for id in since.keys where try store.chunk(id) == nil { try store.forgetUnnamed(id) }
                return try store.chunks().filter { chunk in
                    guard let since = since[chunk.id] else { return false }
                    let period = (periods.days(since: since) + more) * 86_400
                    return since <= age - period && chunk.storedAt <= moment.addingTimeInterval(-Double(period))
                }
            }
        }
    }
}

/// The days for which the server keeps deleted content, by the age of the store at which a device has seen them.
///
/// The server decides at the deletion. After a change to fewer days, it keeps earlier content for the previous number.
struct KeptPeriods {
    private struct Period {
        let age: Int64
        var days: Int64
    }

    private static let limit = 64
    private var periods: [Period]

    /// Reads the stored form.
    init(_ text: String?) {
        periods = (text ?? "").split(separator: " ").compactMap { part in
            let numbers = part.split(separator: ":").compactMap { Int64($0) }
            return numbers.count == 2 ? Period(age: numbers[0], days: numbers[1]) : nil
        }
    }

    /// The stored form: age and days of each change.
    var text: String { periods.map { "\($0.age):\($0.days)" }.joined(separator: " ") }

    /// Records the days that the server states now. A plan has ten years at most, and a hostile server may return any
    /// number.
    mutating func note(_ stated: Int, at age: Int64) {
        let days = Int64(min(max(stated, 30), 3_650))
        guard periods.last?.days != days else { return }
        periods.append(Period(age: age, days: days))
        if periods.count > Self.limit {
            let first = periods.removeFirst()
            periods[0].days = max(first.days, periods[0].days)
        }
    }

    /// Returns the days for a chunk that was noted without a name at an age. Its item was deleted at most one sweep
    /// before, so the days before a change that the same sweep has found count, too.
    func days(since age: Int64) -> Int64 {
        let later = periods.firstIndex { $0.age > age } ?? periods.endIndex
        let known = periods[..<later]
        // The oldest known days hold for what was noted before.
        guard let present = known.last else { return periods.first?.days ?? 30 }
        return present.age == age ? known.suffix(2).map(\.days).max() ?? present.days : present.days
    }
}

/// Takes back the chunks of an abandoned attachment at once. No item names them, and until a sweep they would use room
/// of the plan.
///
/// Another device with the same content at the same position of the attachment uses the same chunk. A device that finds
/// an existing chunk writes it again. Its creator takes it back only at the revision of the creation: see
/// ``ChunkSender/send(_:_:_:_:)``.
final class AbandonedChunks {
    private let scope: ItemScope
    private let store: Store
    private let index: ManifestIndex
    private let running: RunningAttachments
    private let sender: ChunkSender
    private let waiting: WaitingChunks

    init(
        _ scope: ItemScope, _ index: ManifestIndex, _ running: RunningAttachments, _ sender: ChunkSender,
        _ waiting: WaitingChunks
    ) {
        self.scope = scope
        self.index = index
        self.running = running
        self.sender = sender
        self.waiting = waiting
        store = scope.store
    }

    /// Removes the chunks of a draft from the server, except those in `kept`.
    func takeBack(_ attachment: ItemID, except kept: [ItemID] = []) async throws(VaultError) {
        try waiting.forget(of: attachment, except: kept)
        let hasAny = try scope.stored {
            try store.transaction {
                try store.abandonDraft(attachment, except: kept)
                return try !store.abandonedChunks(of: attachment).isEmpty
            }
        }
        if !hasAny { return }
        await scope.serverLock.lock()
        defer { scope.serverLock.unlock() }
        try await removeAbandoned(of: attachment)
    }

    /// Takes back a draft after an error or cancellation. Chunks that cannot be taken back now are taken back later.
    func giveUp(_ draft: AttachmentDraft, isolation: isolated (any Actor)? = #isolation) async {
        await Task {
            _ = isolation
            try? await takeBack(draft.id)
        }.value
    }

    /// Completes a draft with these chunks, and takes back chunks of an earlier state of its content.
    func settle(_ draft: AttachmentDraft, _ chunks: [ItemID]) async {
        if draft.isResumable {
            try? await takeBack(draft.id, except: chunks)
        } else {
            try? scope.stored {
                try store.transaction {
                    try store.forgetDraft(draft.id)
                    try store.settleWaiting(of: draft.id)
                }
            }
        }
    }

    /// Takes back the remaining chunks of abandoned attachments.
    func takeAllBack() async throws(VaultError) {
        await scope.serverLock.lock()
        defer { scope.serverLock.unlock() }
        try await removeAbandoned()
    }

    /// Removes the chunks of abandoned attachments. The caller holds the vault's lock.
    func removeAbandoned() async throws(VaultError) {
        for attachment in try scope.stored({ try store.abandonedDrafts() }) {
            try await removeAbandoned(of: attachment)
        }
    }

    private func removeAbandoned(of attachment: ItemID) async throws(VaultError) {
        // Another call is sending the attachment.
        guard !running.contains(attachment) else { return }
        let opened = try scope.open
        var named: Set<ItemID> = []
        // A chunk's name is derived from its attachment, so manifests of other attachments do not contain it.
        let isWhole = try index.forEachManifest(of: attachment, opened.engine.sealer) { _, _, manifest in
            named.formUnion(manifest.chunks)
        }
        // An item that cannot be opened may be a manifest.
        guard isWhole, try !index.mayLackManifests() else { return }
        for chunk in try scope.stored({ try store.abandonedChunks(of: attachment) }) {
            // Another call may have put its manifest since.
            guard try scope.stored({ try store.draftChunk(chunk.id) }) != nil else { continue }
            let isGone = named.contains(chunk.id) ? false : try await remove(chunk, opened)
            try scope.stored {
                try store.transaction {
                    if isGone { try store.forgetChunk(chunk.id) }
                    try store.forgetDraftChunk(chunk.id)
                }
            }
        }
    }

    /// Deletes a chunk at the revision of its creation.
    /// - Returns: True when it is deleted. False when another device has written it, which may name it.
    private func remove(_ chunk: DraftChunk, _ opened: ItemScope.Opened) async throws(VaultError) -> Bool {
        var created = chunk.revision
        if created == nil {
            guard let state = try await sender.state(ofChunk: chunk.id, opened), let content = state.content else {
                return true
            }
            guard chunk.hasSent(content) else { return false }
            created = state.revision
        }
        guard let created else { return false }
        do throws(APIError) {
            _ = try await scope.session.syncRetries({ () throws(APIError) in
                try await scope.api.deleteItem(chunk.id, .revision(created), opened.token)
            })
            return true
        } catch {
            guard case .problem(let problem) = error, [.notFound, .preconditionFailed].contains(problem.code) else {
                throw VaultError(error)
            }
            return problem.current?.deleted ?? true
        }
    }
}
