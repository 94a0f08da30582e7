/// Sends the changes of this device in batches, and records what the server has acknowledged.
struct ChangeSender {
    private let context: SyncContext
    private let store: Store
    private let server: any SyncServer
    private let limits: SyncLimits
    private let horizon: SyncHorizon
    private let onProgress: (SyncReport) -> Void

    /// - Parameters:
    ///   - horizon: Receives the revisions of confirmed changes.
    ///   - onProgress: Receives the report after each confirmed request.
    init(
        _ context: SyncContext, _ server: any SyncServer, _ limits: SyncLimits, _ horizon: SyncHorizon,
        onProgress: @escaping (SyncReport) -> Void
    ) {
        self.context = context
        store = context.store
        self.server = server
        self.limits = limits
        self.horizon = horizon
        self.onProgress = onProgress
    }

    private var sealer: any ItemSealing { context.sealer }

    /// Sends the changes in batches.
    /// - Parameter refused: The sequences of changes that are not sent again in this round. The server has rejected
    ///   them, they cannot be opened, or they wait for chunks.
    /// - Returns: The changes whose items differ on the server; empty when no change can be sent now.
    func push(except refused: inout Set<Int64>, into report: inout SyncReport) async throws -> [Dispute] {
        var last: Int64 = 0
        var slowdowns = 0
        while true {
            let former = try store.number(.batchBytes)
            let byteLimit = min(limits.batchBytes, former.map { Int(clamping: $0) } ?? .max)
            let changes = try store.changes(limit: limits.batch, byteLimit: byteLimit, after: last)
            guard let end = changes.last?.sequence else { return [] }
            last = end
            var sent: [LocalChange] = []
            try store.transaction {
                for change in changes where !refused.contains(change.sequence) {
                    if change.isPointless {
                        try store.forgetChange(change.id)
                    } else if try waitsForChunks(change) || waitsForVerdict(change) {
                        refused.insert(change.sequence)
                        report.unsent += 1
                    } else if let change = try sendable(change) {
                        sent.append(change)
                    } else {
                        try store.note(.unreadableChange, change.id)
                        refused.insert(change.sequence)
                        report.unsent += 1
                    }
                }
                try store.markSent(sent)
                // If the process ends before the reply, the next one starts with smaller batches.
                _ = try makeBatchesSmaller(than: sent)
            }
            if sent.isEmpty { continue }
            let disputed: [Dispute]
            do {
                disputed = try await send(sent, &refused, into: &report)
            } catch let error as APIError where error.isAboutPace && slowdowns < limits.slowdowns {
                guard try makeBatchesSmaller(than: sent) else { throw error }
                slowdowns += 1
                if let wait = error.retryAfter { try await Task.sleep(for: min(wait, .seconds(5))) }
                // Changes that have arrived are no longer stored.
                last = (changes.first?.sequence ?? 1) - 1
                continue
            } catch let error as APIError where error.hasOtherReason {
                try limitBatches(to: former)
                throw error
            }
            slowdowns = 0
            try makeBatchesLarger(again: byteLimit)
            guard disputed.isEmpty else { return disputed }
            try Task.checkCancellation()
        }
    }

    /// Records that a batch is, or may be, too long for the connection.
    /// - Returns: False when it cannot be made smaller.
    private func makeBatchesSmaller(than batch: [LocalChange]) throws -> Bool {
        let size = batch.reduce(0) { $0 + $1.operation.sealedByteCount }
        guard batch.count > 1, size > limits.smallestBatchBytes else { return false }
        try store.set(.batchBytes, Int64(max(size / 2, limits.smallestBatchBytes)))
        return true
    }

    /// Doubles the size of batches after a success, because the connection may be faster now.
    private func makeBatchesLarger(again byteLimit: Int) throws {
        let next = byteLimit * 2 < limits.batchBytes ? Int64(byteLimit * 2) : nil
        if try store.number(.batchBytes) != next { try limitBatches(to: next) }
    }

    private func limitBatches(to byteCount: Int64?) throws {
        try store.set(.batchBytes, byteCount.map { Array(String($0).utf8) })
    }

    /// Returns a change in the form in which it may be sent; nil when it may not. Unreadable content must not replace
    /// readable content. If the server has no version, it is safer there than here.
    private func sendable(_ change: LocalChange) throws -> LocalChange? {
        guard let content = change.content else { return change }
        switch sealer.unsentForm(of: content, change.id, wasSent: change.wasSent) {
        case .none: return nil
        case .present: break
        case .other(let content, let edit):
            var next = change
            next.content = content
            next.edit = edit
            try store.write(next, isSame: true)
            return next
        }
        if (try? sealer.open(content, change.id)) != nil { return change }
        return try change.base == nil && store.item(change.id) == nil ? change : nil
    }

    /// Sends changes together. If the server rejects their number of deletions, it sends them in halves.
    private func send(
        _ changes: [LocalChange], _ refused: inout Set<Int64>, into report: inout SyncReport
    ) async throws -> [Dispute] {
        let head = sealer.head
        switch await Result.of({ () throws(APIError) in
            try await server.write(changes.map(\.operation), head: head)
        }) {
        case .success(let revisions):
            try acknowledge(changes, revisions, at: head, into: &report)
            return []
        case .failure(.problem(let problem)) where problem.code == .batchConflict:
            return try disputes(problem, changes)
        case .failure(.problem(let problem)) where problem.code == .batchTooLarge && changes.count > 1:
            let half = changes.count / 2
            let disputed = try await send(Array(changes[..<half]), &refused, into: &report)
            guard disputed.isEmpty else { return disputed }
            return try await send(Array(changes[half...]), &refused, into: &report)
        case .failure(.problem(let problem)) where problem.isRefusal && !problem.isAboutMembership:
            return try await pushAlone(changes, &refused, into: &report)
        case .failure(let error): throw error
        }
    }

    /// Sends changes separately after a batch was rejected, so that one change does not block others.
    private func pushAlone(
        _ changes: [LocalChange], _ refused: inout Set<Int64>, into report: inout SyncReport
    ) async throws -> [Dispute] {
        // Deletions release room, so they come first.
        for change in changes.filter({ $0.content == nil }) + changes.filter({ $0.content != nil }) {
            let head = sealer.head
            switch await Result.of({ () throws(APIError) in
                try await server.write([change.operation], head: head)
            }) {
            case .success(let revisions): try acknowledge([change], revisions, at: head, into: &report)
            case .failure(.problem(let problem)) where problem.code == .batchConflict:
                return try disputes(problem, [change])
            case .failure(.problem(let problem)) where problem.isRefusal && !problem.isAboutMembership:
                try store.note(problem.code == .quotaExceeded ? .quotaExceeded : .refused, change.id)
                refused.insert(change.sequence)
                report.unsent += 1
            case .failure(let error): throw error
            }
        }
        return []
    }

    /// Returns true when a change names chunks that the server does not have yet. It is sent after them.
    private func waitsForChunks(_ change: LocalChange) throws -> Bool {
        guard let content = change.content, try store.hasWaitingChunks(),
            let opened = try? sealer.open(content, change.id)
        else { return false }
        return try Attachment.all(in: opened.item.body).found.contains { attachment in
            try attachment.chunks.contains { try store.isWaiting($0) }
        }
    }

    /// Returns true for a change whose item has a version on the server that may count later, and for an edit of
    /// another member that itself does not count now.
    private func waitsForVerdict(_ change: LocalChange) throws -> Bool {
        guard sealer.isOfVault else { return false }
        if try store.isSetAside(change.id) { return true }
        return change.content.map { sealer.rejection(ofChange: $0, change.id) != nil } ?? false
    }

    /// Withdraws the unsent changes where the account may no longer write.
    func retireChangesOfReader(into report: inout SyncReport) throws {
        if sealer.isOfVault, !sealer.canWrite, !sealer.isStopped { try retireChanges(into: &report) }
    }

    /// Counts the changes that a fruitless round of a shared vault has left.
    func countUnsent(into report: inout SyncReport) throws {
        if sealer.isOfVault { report.unsent = try max(report.unsent, store.changeCount()) }
    }

    /// Withdraws the unsent changes. Their content stays on this device, in the trash or among the replaced versions.
    func retireChanges(into report: inout SyncReport) throws {
        try store.transaction {
            try store.forEachChange { change in
                let item = try store.item(change.id)
                if change.content == nil, item != nil {
                    // The item is no longer deleted.
                    try store.removeFromTrash(change.id)
                } else if let content = change.content, item != nil {
                    try store.keepReplaced(change.id, content, edit: change.edit)
                } else if let content = change.content {
                    try store.trash(
                        StoredItem(id: change.id, revision: Revision(0), content: content, edit: change.edit),
                        at: context.moment)
                }
                try store.forgetChange(change.id)
                try store.note(.refused, change.id)
                report.changed.insert(change.id)
                // Conflicts with them have ended.
                try store.set(.judgedBy, nil)
            }
        }
    }

    private func disputes(_ problem: Problem, _ sent: [LocalChange]) throws -> [Dispute] {
        let disputes = (problem.conflicts ?? []).compactMap { conflict in
            sent.first { $0.id == conflict.id }.map { Dispute(change: $0, revision: conflict.revision) }
        }
        guard !disputes.isEmpty else { throw APIError.unexpectedReply }
        return disputes
    }

    /// - Parameter head: The number of the vault's log that the request has named.
    private func acknowledge(
        _ sent: [LocalChange], _ revisions: [Revision], at head: Int64?, into report: inout SyncReport
    ) throws {
        guard sent.count == revisions.count else { throw APIError.unexpectedReply }
        let listing = try store.number(.listing) ?? 0
        try store.transaction {
            for (change, revision) in zip(sent, revisions) {
                if let content = change.content {
                    try store.put(
                        StoredItem(
                            id: change.id, revision: revision, content: content, edit: change.edit,
                            judgedAt: head.map { min($0, sealer.judgedAt(ofSent: content, change.id) ?? $0) }),
                        listing: listing)
                } else {
                    try store.storeTombstone(change.id, revision, at: context.moment)
                }
                try store.noteConfirmation(of: change, at: revision, listing: listing)
                try goOn(from: change, at: revision)
                try store.forgetRefusals(of: change.id)
            }
        }
        for change in sent { sealer.noteReplaced(change.id) }
        for revision in revisions.sorted() { horizon.confirm(revision) }
        report.sent += sent.count
        onProgress(report)
    }

    /// Removes the sent change. A later change of the item continues from its revision.
    private func goOn(from change: LocalChange, at revision: Revision) throws {
        guard var later = try store.change(change.id) else { return }
        if later.sequence == change.sequence { return try store.forgetChange(change.id) }
        later.base = change.content == nil ? nil : revision
        later.baseContent = change.content.map { ($0.title?.bytes, $0.body.bytes) }
        later.sent = nil
        try store.write(later)
    }
}

/// An operation that the server rejected because the item has another revision than the change's base.
struct Dispute {
    let change: LocalChange
    /// The item's revision on the server; nil when it never had the item.
    let revision: Revision?
}

/// An edit or a deletion that the server has acknowledged, and that no listing has contained since.
struct Confirmation: Hashable, Sendable {
    var item: ItemID
    /// The revision that the server has assigned to it.
    var revision: Revision
    /// The previous revision on the server; nil when it had none.
    var base: Revision?
    /// The digest of the acknowledged content; nil for a deletion.
    var digest: [UInt8]?
}

/// Acknowledged changes, until a listing contains them.
extension Store {
    /// Records that the server has acknowledged a change. A deletion with a tombstone in the store is not
    /// recorded, because no listing contains it again.
    ///
    /// Of edits that follow each other before a listing ends, the first one's base counts.
    func noteConfirmation(of change: LocalChange, at revision: Revision, listing: Int64) throws {
        try database.execute(
            """
            INSERT INTO confirmations (item, revision, base, digest, listing)
            SELECT ?1, ?2, ?3, ?4, ?5
            WHERE ?4 IS NOT NULL OR NOT EXISTS (SELECT 1 FROM held_deletions WHERE id = ?1 AND revision = ?2)
            ON CONFLICT (item) DO UPDATE SET
                base = CASE WHEN digest IS NULL OR excluded.digest IS NULL THEN excluded.base ELSE base END,
                revision = excluded.revision, digest = excluded.digest, listing = excluded.listing
            """, .blob(change.id.bytes), .integer(revision.number), .optional(change.base?.number),
            .optional(change.content?.digest), .integer(listing))
    }

    /// Returns true when acknowledged changes are still missing in listings.
    fileprivate func hasConfirmations() throws -> Bool {
        try !database.rows("SELECT 1 FROM confirmations LIMIT 1", decode: { _ in true }).isEmpty
    }

    /// Removes and returns the acknowledged change of an item.
    fileprivate func takeConfirmation(of id: ItemID) throws -> Confirmation? {
        try database.rows(
            "DELETE FROM confirmations WHERE item = ? RETURNING item, revision, base, digest", .blob(id.bytes),
            decode: Self.confirmation
        ).first
    }

    /// Returns the acknowledged changes after which no other complete listing has begun.
    func confirmations(since listing: Int64) throws -> [Confirmation] {
        try database.rows(
            "SELECT item, revision, base, digest FROM confirmations WHERE listing = ?", .integer(listing),
            decode: Self.confirmation)
    }

    func forgetConfirmations() throws { try database.execute("DELETE FROM confirmations") }

    private static func confirmation(_ row: SQLiteRow) throws -> Confirmation {
        guard let revision = row.integer(1) else { throw StoreError.damaged }
        return Confirmation(
            item: try id(row, 0), revision: Revision(revision), base: row.integer(2).map(Revision.init),
            digest: row.blob(3))
    }
}

/// A listing contradicts acknowledgements of the server.
struct BrokenConfirmations: Error {
    var confirmations: [Confirmation]
}

/// Compares listings with acknowledged changes. The next listing must contain each item with that revision or a later
/// one.
struct Confirmations {
    private let store: Store

    init(_ store: Store) { self.store = store }

    /// Compares a page with the acknowledged changes of its items, and removes their records.
    /// - Throws: ``BrokenConfirmations``.
    func check(against changes: [ItemState]) throws {
        guard try store.hasConfirmations() else { return }
        let broken = try changes.compactMap { change in
            try store.takeConfirmation(of: change.id).flatMap { change.shows($0) ? nil : $0 }
        }
        if !broken.isEmpty { throw BrokenConfirmations(confirmations: broken) }
    }

    /// Checks at the end of a listing that it contained all earlier acknowledged changes.
    ///
    /// A complete listing can lack an item that another device has deleted long ago; ``Store/unlisted(_:)`` returns
    /// those.
    /// - Throws: ``BrokenConfirmations``.
    func endListing() throws {
        guard try store.hasConfirmations() else { return }
        let hidden = try store.confirmations(since: store.number(.listing) ?? 0)
        if !hidden.isEmpty { throw BrokenConfirmations(confirmations: hidden) }
        try store.forgetConfirmations()
    }

    /// Revokes acknowledgements: the changes are unsent again. A complete listing starts, because the server may have
    /// hidden more.
    func revoke(_ confirmations: [Confirmation]) throws {
        try store.transaction {
            for confirmation in confirmations { try revoke(confirmation) }
            try store.beginListing()
        }
    }

    private func revoke(_ confirmation: Confirmation) throws {
        let id = confirmation.item
        _ = try store.takeConfirmation(of: id)
        if var later = try store.change(id) {
            guard later.content != nil, confirmation.digest != nil, later.base == confirmation.revision else { return }
            later.base = confirmation.base
            return try store.write(later, isSame: true)
        }
        let item = try store.item(id)
        var change = LocalChange(
            id: id, sequence: try store.nextSequence(), base: confirmation.base, content: item?.content,
            edit: item?.edit ?? 0)
        if confirmation.digest == nil {
            guard item == nil else { return }
            change.edit = try store.tombstone(id)?.edit ?? 0
        } else {
            guard item?.revision == confirmation.revision else { return }
        }
        change.sent = change.sending
        try store.write(change)
    }
}

extension APIError {
    /// True when the batch failed for a reason other than its length.
    fileprivate var hasOtherReason: Bool { !isCancelled && !isAboutPace }
}

extension Problem {
    /// True when the server will reject the same request again, unless other conditions change.
    fileprivate var isRefusal: Bool { (400..<500).contains(status) && ![401, 408, 429].contains(status) }
}

extension LocalChange {
    /// True when it deletes an item that the server does not have. The item was deleted before its creation was
    /// confirmed, and later listings did not contain it.
    fileprivate var isPointless: Bool { content == nil && base == nil }

    /// The operation of a request. An item that the server does not have has revision 0.
    var operation: BatchOperation {
        let base = base ?? Revision(0)
        return content.map { .put(id, $0, ifRevision: base) } ?? .delete(id, ifRevision: base)
    }
}

extension ItemState {
    /// Returns true when this is the acknowledged state, or a later one.
    fileprivate func shows(_ confirmation: Confirmation) -> Bool {
        // An edited item does not become a chunk, and an item that is not deleted has content.
        guard revision >= confirmation.revision, deleted || !isChunk && content != nil else { return false }
        return revision > confirmation.revision || content?.digest == confirmation.digest
    }
}
