/// Judges versions of a shared vault again that were set aside, because their key, an entry of the log or a list was
/// missing.
struct SetAsideVersions {
    /// Above this number, everything is listed again instead.
    static let singleFetches = 128

    private let context: SyncContext
    private let store: Store
    private let server: any SyncServer
    private let judge: VersionJudge
    private let refused: RefusedVersions
    private let applier: VersionApplier
    /// Fetches later keys and the log of the vault.
    private let learn: () async throws -> Void

    init(
        _ context: SyncContext, _ server: any SyncServer, _ judge: VersionJudge, _ refused: RefusedVersions,
        _ applier: VersionApplier, learn: @escaping () async throws -> Void
    ) {
        self.context = context
        store = context.store
        self.server = server
        self.judge = judge
        self.refused = refused
        self.applier = applier
        self.learn = learn
    }

    private var sealer: any ItemSealing { context.sealer }

    /// Fetches the versions that were set aside, and judges them again, if the log, the keys or the lists are others
    /// than at the last time. The store has the time, so an interruption at any point is made good.
    /// - Parameter isProvisional: True while the log can have later entries, which are fetched next.
    func judgeAgain(
        _ guardian: inout DeletionGuard, isProvisional: Bool, into report: inout SyncReport
    ) async throws {
        guard let stamp = sealer.stamp, try store.fact(.judgedBy) != stamp else { return }
        let waiting = try store.itemsSetAside(limit: Self.singleFetches + 1)
        try refused.withdrawRefused(&guardian, into: &report)
        if waiting.count > Self.singleFetches {
            try store.transaction {
                try store.listSetAsideAgain()
                try store.beginListing()
                try store.set(.judgedBy, stamp)
            }
            return
        }
        for (id, revision) in waiting {
            let state = try await fetchSetAside(id)
            try judgeSetAside(id, state, isProvisional: isProvisional, into: &report)
            // The log was fetched after this version.
            if let state, state.revision == revision { try noteUnknown(state) }
        }
        if !isProvisional { try store.set(.judgedBy, stamp) }
    }

    /// Fetches the versions that were set aside of items that this device has changed. A manager may have decided that
    /// one does not count: then the change is sent over it. It is also sent over a version that names a key or an entry
    /// which the log does not have after it was fetched once more. One call fetches a limited number, and the next one
    /// continues after them.
    func settleSetAside(isProvisional: Bool, into report: inout SyncReport) async throws {
        guard sealer.isOfVault, sealer.canSeal else { return }
        let last = try store.fact(.settledTo)
        let waiting = try store.changedItemsSetAside(after: last ?? [], limit: Self.singleFetches)
        let next = waiting.count < Self.singleFetches ? nil : waiting.last?.0.bytes
        if next != last { try store.set(.settledTo, next) }
        var hasLearned = false
        for (id, revision) in waiting {
            let state = try await fetchSetAside(id)
            if !hasLearned, let state, try judge.needsEntries(state) {
                try await learn()
                hasLearned = true
            }
            // A later version may name an entry that was made after the log was fetched.
            let isSettled = hasLearned && state?.revision == revision && !sealer.isRecovering
            try judgeSetAside(id, state, isProvisional: isProvisional, isSettled: isSettled, into: &report)
        }
    }

    /// Reports a version that still names an entry or a key that the log does not have, after the log was fetched. A
    /// server can hide them.
    func noteUnknown(_ version: ItemState) throws {
        guard !sealer.isRecovering, try store.isSetAside(version.id, version.revision), try judge.needsEntries(version)
        else {
            return
        }
        try store.note(.unreadable, version.id)
    }

    /// Fetches the present version of an item of which one was set aside.
    private func fetchSetAside(_ id: ItemID) async throws -> ItemState? {
        let state = try await Result.of({ () throws(APIError) in try await server.item(id) }).get()
        try Task.checkCancellation()
        return state
    }

    /// Judges a version again that was set aside. A version that the server no longer has is none.
    private func judgeSetAside(
        _ id: ItemID, _ state: ItemState?, isProvisional: Bool, isSettled: Bool = false, into report: inout SyncReport
    ) throws {
        try store.transaction {
            guard let state, !state.isChunk, try !state.deleted || store.change(id) != nil else {
                // The pages have the tombstones, with the limit of deletions.
                return try store.forgetSetAside(id)
            }
            try applier.apply(state, isProvisional: isProvisional, isSettled: isSettled, into: &report)
        }
    }
}

/// Withdraws accepted versions of a shared vault that the lists of managers do not have, and sends the versions again
/// that take their place.
struct RefusedVersions {
    private let context: SyncContext
    private let store: Store
    private let judge: VersionJudge

    init(_ context: SyncContext, _ judge: VersionJudge) {
        self.context = context
        store = context.store
        self.judge = judge
    }

    private var sealer: any ItemSealing { context.sealer }

    /// Withdraws accepted versions that the lists of managers do not have. The latest replaced version that counts
    /// takes the place, as on a device that has never accepted the other one. A change of a user stays, and so does an
    /// item whose deletion waits for approval. Many withdrawals that leave no version wait for approval, too.
    func withdrawRefused(_ guardian: inout DeletionGuard, into report: inout SyncReport) throws {
        let sealer = sealer
        guard sealer.hasSealLists else { return }
        let listing = try store.number(.listing) ?? 0
        try store.transaction {
            var leaving: [(id: ItemID, collection: String)] = []
            try store.forEachChange { change in
                // The accepted item follows below.
                if try forgetRefusedForm(change) { return }
                guard let content = change.content, try isRefused(change.id), try !store.holdsRefusal(of: change.id)
                else { return }
                if try store.item(change.id) != nil { return try withdraw(change.id, into: &report) }
                leaving.append((change.id, content.collection))
            }
            try store.forEachAccepted { item in
                guard judge.hasGivenWay(item), try store.change(item.id) == nil, try !store.holdsDeletion(of: item.id),
                    try !store.holdsRefusal(of: item.id)
                else { return }
                guard let former = try formerVersion(of: item) else {
                    return leaving.append((item.id, item.content.collection))
                }
                try store.put(former, listing: listing)
                try store.setBehind(item.id, item.revision)
                try store.note(.unreadable, item.id)
                if sealer.rejection(of: item)?.mayPass ?? false { try store.setAside(item.id, item.revision) }
                report.changed.insert(item.id)
            }
            let held = try guardian.held(withdrawing: leaving)
            for (id, _) in leaving {
                if held.contains(id) {
                    let revision = try store.item(id)?.revision ?? store.change(id)?.base ?? Revision(0)
                    try store.hold(id, revision, listing: listing, isRefusal: true)
                } else {
                    try withdraw(id, into: &report)
                }
            }
        }
    }

    /// Returns true when the lists of managers do not have the present version of an item, or the edit of another
    /// member that waits as a change.
    func isRefused(_ id: ItemID) throws -> Bool {
        if let change = try store.change(id) {
            return change.content.flatMap { sealer.rejection(ofChange: $0, id) }.map { !$0.isOpen } ?? false
        }
        return try store.item(id).map { !$0.isSealed && judge.hasGivenWay($0) } ?? false
    }

    /// Moves a refused version to the trash.
    func withdraw(_ id: ItemID, into report: inout SyncReport) throws {
        let item = try store.item(id)
        if let change = try store.change(id) {
            guard let content = change.content else { return }
            let revision = change.base ?? Revision(0)
            try store.trash(
                StoredItem(id: id, revision: revision, content: content, edit: change.edit), at: context.moment)
            try store.forgetChange(id)
            // A folder would upload the file of an unknown item again.
            if item == nil { try store.storeTombstone(id, revision, at: context.moment) }
        } else if let item {
            // A folder removes the file, too: as a new item it would be an edit of this member.
            try store.trash(item, at: context.moment)
            // An honest edit can have a lower number.
            try store.removeItem(id)
            try store.storeTombstone(id, item.revision, at: context.moment)
            if sealer.rejection(of: item)?.mayPass ?? false { try store.setAside(id, item.revision) }
        } else {
            return
        }
        try store.note(.refused, id)
        report.changed.insert(id)
    }

    /// Returns those refused versions of a complete listing's missing items that wait for approval.
    func heldRefusals(among missing: [StoredItem], _ guardian: inout DeletionGuard) throws -> Set<ItemID> {
        guard sealer.isOfVault else { return [] }
        var held: Set<ItemID> = []
        var leaving: [(id: ItemID, collection: String)] = []
        for item in missing where try !item.isSealed && judge.hasGivenWay(item) && store.change(item.id) == nil {
            if try store.holdsRefusal(of: item.id) {
                held.insert(item.id)
            } else {
                leaving.append((item.id, item.content.collection))
            }
        }
        return try held.union(guardian.held(withdrawing: leaving))
    }

    // MARK: Former versions

    /// Returns the latest version of the server that an accepted one has replaced on this device, and that no list has
    /// refused.
    private func formerVersion(of item: StoredItem) throws -> StoredItem? {
        var found: StoredItem?
        try store.forEachReplaced(of: item.id) { version in
            guard found == nil, let former = stored(version), former.revision < item.revision,
                !judge.hasGivenWay(former)
            else { return }
            found = former
        }
        return found
    }

    /// Returns a replaced version of the server as an item.
    private func stored(_ version: ReplacedContent) -> StoredItem? {
        guard let revision = version.revision, let edit = try? sealer.open(version.content, version.item).edit else {
            return nil
        }
        return StoredItem(
            id: version.item, revision: revision, content: version.content, edit: edit.number,
            judgedAt: version.judgedAt)
    }

    /// Sends versions again that have taken the place of refused ones. Otherwise the server would keep the refused
    /// ones, and a new device would show nothing.
    ///
    /// An edit of this member follows the version. The version itself would be earlier than the refused one, and a
    /// device that does not have the list yet would send that one again.
    func sendFormerVersions() throws {
        guard sealer.isOfVault, sealer.canSeal, sealer.hasSealLists else { return }
        try store.transaction {
            for (id, revision) in try store.itemsBehind() {
                guard try store.change(id) == nil, let item = try store.item(id), !item.isSealed,
                    sealer.stillCounts(item), let edit = try refusedEdit(after: item, at: revision),
                    let own = try? sealer.open(item.content, id)
                else { continue }
                // A user's change of the version has the number after it. The gap distinguishes this edit.
                let number = SealedBox.Edit.number(after: max(edit, SealedBox.Edit.number(after: item.edit)))
                let previous = sealer.next(own.edit, after: item.content, id).previous
                let sealed = try? sealer.seal(
                    own.item, id, collection: item.content.collection,
                    SealedBox.Edit(number: number, previous: previous))
                guard let sealed else { continue }
                try store.forgetSetAside(id)
                try store.write(
                    LocalChange(
                        id: id, sequence: try store.nextSequence(), base: revision, content: sealed, edit: number,
                        baseContent: (item.content.title?.bytes, item.content.body.bytes)), isSame: true)
            }
        }
    }

    /// Removes a change that ``sendFormerVersions()`` has made, if the server has another version now. No user has made
    /// it, so it neither conflicts with an edit nor keeps an item from a deletion.
    func forgetFormerVersion(before server: ItemState) throws {
        guard sealer.isOfVault, let change = try store.change(server.id), change.base != server.revision,
            let item = try store.item(server.id), isOfFormerVersion(change, item)
        else { return }
        try store.forgetChange(server.id)
    }

    /// Removes such a change, if the version that it repeats is refused, too. Returns true if it has removed it.
    private func forgetRefusedForm(_ change: LocalChange) throws -> Bool {
        guard let item = try store.item(change.id), judge.hasGivenWay(item), isOfFormerVersion(change, item) else {
            return false
        }
        try store.forgetChange(change.id)
        return true
    }

    private func isOfFormerVersion(_ change: LocalChange, _ item: StoredItem) -> Bool {
        guard change.edit > SealedBox.Edit.number(after: item.edit), let content = change.content,
            let own = try? sealer.open(content, change.id)
        else { return false }
        return judge.isPushedBack(own, content.collection, item)
    }

    /// Returns the number of a refused edit that the server has in the place of a version; nil unless this device has
    /// all edits between them, and all of them are refused. Another device can have one between them that counts.
    private func refusedEdit(after item: StoredItem, at revision: Revision) throws -> UInt64? {
        var last: StoredItem?
        var refused: [[UInt8]: [UInt8]] = [:]
        try store.forEachReplaced(of: item.id) { version in
            guard let former = stored(version), judge.hasGivenWay(former),
                let hash = sealer.hash(of: former.content, item.id)
            else { return }
            refused[hash] = try? sealer.open(former.content, item.id).edit.previous
            if former.revision == revision { last = former }
        }
        guard let last, var hash = sealer.hash(of: last.content, item.id) else { return nil }
        let start = sealer.hash(of: item.content, item.id)
        while let previous = refused.removeValue(forKey: hash) {
            if previous == start { return last.edit }
            hash = previous
        }
        return nil
    }
}

/// The items of a shared vault of which the server has a version that this device has not accepted yet.
extension Store {
    /// Records a version, unless the server has a later one that was set aside.
    /// - Parameters:
    ///   - author: The member whose seal decides about the version.
    ///   - held: The version, and the number of the log's head at which this device had it and could not judge it.
    func setAside(
        _ id: ItemID, _ revision: Revision, awaitingSealOf author: [UInt8]? = nil,
        held: (version: ItemContent, since: Int64)? = nil
    ) throws {
        try database.execute(
            """
            INSERT INTO set_aside (id, revision, author, digest, held_at) VALUES (?, ?, ?, ?, ?)
            ON CONFLICT (id) DO NOTHING
            """, .blob(id.bytes), .integer(revision.number), .optional(author),
            .optional(held?.version.digest), .optional(held?.since))
    }

    /// Returns the number of the log's head at which this device had a version that it could not judge; nil for other
    /// content.
    func heldSince(_ id: ItemID, _ version: ItemContent) throws -> Int64? {
        try database.rows("SELECT digest, held_at FROM set_aside WHERE id = ? AND digest IS NOT NULL", .blob(id.bytes))
        { row in row.blob(0) == version.digest ? row.integer(1) : nil }.first ?? nil
    }

    /// The authors of versions that wait for their author's seal: this device did not have them before the cut.
    func authorsAwaitingSeals() throws -> Set<[UInt8]> {
        Set(
            try database.rows("SELECT DISTINCT author FROM set_aside WHERE author IS NOT NULL") { row in
                row.blob(0) ?? []
            })
    }

    /// The items with a version that waits for the seal of its author.
    func itemsAwaitingSeal(of author: [UInt8]) throws -> [ItemID] {
        try database.rows("SELECT id FROM set_aside WHERE author = ? ORDER BY id", .blob(author)) { row in
            try Self.id(row, 0)
        }
    }

    func itemsSetAside(limit: Int) throws -> [(ItemID, Revision)] {
        try database.rows(
            "SELECT id, revision FROM set_aside WHERE revision IS NOT NULL ORDER BY revision, id LIMIT ?",
            .integer(Int64(limit))
        ) { (try Self.id($0, 0), Revision($0.integer(1) ?? 0)) }
    }

    func isSetAside(_ id: ItemID, _ revision: Revision) throws -> Bool {
        try !database.rows(
            "SELECT 1 FROM set_aside WHERE id = ? AND revision = ?", .blob(id.bytes), .integer(revision.number)
        ) { $0.integer(0) }.isEmpty
    }

    /// Returns changed items of which versions were set aside: those after an id, and then those before it.
    func changedItemsSetAside(after last: [UInt8], limit: Int) throws -> [(ItemID, Revision)] {
        try database.rows(
            """
            SELECT s.id, s.revision FROM set_aside s
            WHERE s.revision IS NOT NULL AND EXISTS (SELECT 1 FROM changes c WHERE c.id = s.id)
            ORDER BY s.id <= ?, s.id LIMIT ?
            """, .blob(last), .integer(Int64(limit))
        ) { (try Self.id($0, 0), Revision($0.integer(1) ?? 0)) }
    }

    func isSetAside(_ id: ItemID) throws -> Bool {
        try !database.rows("SELECT 1 FROM set_aside WHERE id = ?", .blob(id.bytes), decode: { _ in true }).isEmpty
    }

    func hasItemsSetAside() throws -> Bool {
        try !database.rows("SELECT 1 FROM set_aside LIMIT 1", decode: { _ in true }).isEmpty
    }

    func forgetSetAside(_ id: ItemID) throws {
        try database.execute("DELETE FROM set_aside WHERE id = ?", .blob(id.bytes))
    }

    /// Leaves the versions to a complete listing. Until then the rest about them stays.
    func listSetAsideAgain() throws { try database.execute("UPDATE set_aside SET revision = NULL") }

    /// Forgets the versions that a complete listing did not have.
    func forgetUnlistedSetAside() throws { try database.execute("DELETE FROM set_aside WHERE revision IS NULL") }
}
