internal import Foundation

extension Vault {
    /// Returns the items on this device, in the order of their ids.
    ///
    /// ```swift
    /// for item in try await vault.items(in: "notes") { print(item.title ?? "untitled", item.isUnsent) }
    /// ```
    /// - Parameter collection: Nil for all collections.
    public func items(in collection: String? = nil) throws(VaultError) -> [ItemSummary] {
        try items.items(in: collection)
    }

    /// Returns the summary of one item; nil when there is none.
    ///
    /// ```swift
    /// if let summary = try await vault.summary(of: id) { print(summary.title ?? "untitled") }
    /// ```
    public func summary(of id: ItemID) throws(VaultError) -> ItemSummary? {
        try items.summary(of: id)
    }

    /// Returns the deleted items that this device can restore, the latest first.
    ///
    /// ```swift
    /// if let last = try await vault.deletedItems().first { try await vault.restore(last.id) }
    /// ```
    public func deletedItems() throws(VaultError) -> [ItemSummary] {
        try items.deletedItems()
    }

    /// Returns the number of items of each collection on this device.
    ///
    /// ```swift
    /// for (collection, count) in try await vault.collectionCounts() { print(collection, count) }
    /// ```
    public func collectionCounts() throws(VaultError) -> [String: Int] {
        try stored { try store.collectionCounts() }.filter { !CollectionName.isHidden($0.key) }
    }

    // MARK: Unsent changes

    /// Returns the number of changes that the server has not confirmed.
    ///
    /// Example: "Sync and offline" in docs/app.md.
    public func unsentCount() throws(VaultError) -> Int { try stored { try store.changeCount() } }

    /// Returns true when deletions wait for the user's approval. They are of other devices (``agreeToDeletions(in:)``),
    /// or of files according to the last round of a folder (``FolderSettings/allowsDeletions``).
    ///
    /// ```swift
    /// if try await vault.areDeletionsHeld() { print(try await vault.heldDeletions().count) }
    /// ```
    public func areDeletionsHeld() throws(VaultError) -> Bool { try stored { try store.holdsDeletions() } }

    /// Returns the items whose present version the server does not have, in the order of sending, without deletions.
    ///
    /// ```swift
    /// for item in try await vault.unsentItems(limit: 20) { print(item.title ?? "untitled", item.shortage ?? "waits") }
    /// ```
    /// - Parameter limit: The maximum number of items to return.
    public func unsentItems(limit: Int = .max) throws(VaultError) -> [ItemSummary] {
        try items.unsentItems(limit: limit)
    }

    /// Discards the unsent change of an item. The item returns to its last received state of the server, if there is
    /// one. The discarded content goes to the trash of this device. If the item exists, the content gets another id
    /// there.
    ///
    /// Content that was sent without a confirmation may be on the server. The next ``sync()`` then fetches it.
    ///
    /// ```swift
    /// for item in try await vault.unsentItems() where item.shortage != nil { try await vault.discardChange(item.id) }
    /// ```
    /// - Throws: ``VaultError/notFound`` when the item has no unsent change.
    public func discardChange(_ id: ItemID) throws(VaultError) {
        try items.discardChange(id)
    }

    /// The maximum number of sealed bytes of an item that any plan and any batch allow.
    package static let longestItemByteCount = Int(PlanRoom.itemByteLimit)

    /// Rejects a body that is too long, before it is read.
    package func refuseTooLong(bodyOf byteCount: Int64) async throws(VaultError) {
        try await plan.refuseTooLong(bodyOf: byteCount)
    }
}

/// Replaced versions are kept like deleted items: on this device, for 30 days. Versions that were replaced in quick
/// succession are thinned out. Each item keeps at most 32 of them, with 64 MiB.
extension Vault {
    /// Returns the replaced versions of an item, the latest first. Edits here, received versions and merges replace
    /// versions.
    ///
    /// Example: "Edit" in docs/app.md.
    /// - Parameter id: Nil for all items, including deleted ones.
    public func replacedVersions(of id: ItemID? = nil) throws(VaultError) -> [ReplacedVersion] {
        try items.replacedVersions(of: id)
    }

    /// Returns the content of a replaced version.
    ///
    /// ```swift
    /// for version in try await vault.replacedVersions(of: id) {
    ///     print(try await vault.item(id, replaced: version.number).title ?? "untitled")
    /// }
    /// ```
    /// - Throws: ``VaultError/notFound`` when the item has no such version.
    public func item(_ id: ItemID, replaced number: Int64) throws(VaultError) -> PlainItem {
        try items.item(id, replaced: number)
    }

    /// Makes a replaced version the present one again, even of a deleted item. The replaced content is kept as a
    /// version.
    ///
    /// ```swift
    /// if let version = try await vault.replacedVersions(of: id).first {
    ///     try await vault.restore(id, replaced: version.number)
    /// }
    /// ```
    /// - Throws: ``VaultError/notFound`` when the item has no such version.
    public func restore(_ id: ItemID, replaced number: Int64) throws(VaultError) {
        try items.restore(id, replaced: number)
    }

    // MARK: Versions on the server

    /// Lists the versions of an item on the server, the latest first; empty for an item that it does not have.
    ///
    /// ```swift
    /// if let version = try await vault.serverVersions(of: id).first {
    ///     try await vault.restore(id, serverRevision: version.revision)
    /// }
    /// ```
    /// - Throws: ``APIError/unexpectedReply`` in ``VaultError/unavailable(_:)`` for a list that is not in order or does
    ///   not end.
    public func serverVersions(of id: ItemID) async throws(VaultError) -> [VersionHeader] {
        try await serverVersions.list(of: id)
    }

    /// Returns the content of a version on the server.
    ///
    /// ```swift
    /// if let version = try await vault.serverVersions(of: id).first {
    ///     print(try await vault.item(id, serverRevision: version.revision).title ?? "untitled")
    /// }
    /// ```
    /// - Throws: ``VaultError/notFound`` when there is no such version. ``VaultError/unreadable`` when the version
    ///   cannot be opened. ``APIError/unexpectedReply`` in ``VaultError/unavailable(_:)`` when it is another one.
    public func item(_ id: ItemID, serverRevision revision: Revision) async throws(VaultError) -> PlainItem {
        try await serverVersions.item(id, at: revision)
    }

    /// Makes a version of the server the present one, as a new edit of this device. The replaced content is kept as a
    /// version.
    ///
    /// ```swift
    /// if let version = try await vault.serverVersions(of: id).first {
    ///     try await vault.restore(id, serverRevision: version.revision)
    /// }
    /// ```
    /// - Throws: The errors of ``item(_:serverRevision:)``.
    public func restore(_ id: ItemID, serverRevision revision: Revision) async throws(VaultError) {
        try await serverVersions.restore(id, at: revision)
    }

    /// Fetches the versions of an item that this device does not have. They are stored with the versions that were
    /// replaced on this device, as far as the same limits leave room for them, and listed by ``replacedVersions(of:)``.
    /// They remove no other version: the server may never have had it.
    ///
    /// ```swift
    /// try await vault.fetchVersions(of: id)
    /// for version in try await vault.replacedVersions(of: id) { print(version.replacedAt) }
    /// ```
    @discardableResult
    public func fetchVersions(of id: ItemID) async throws(VaultError) -> VersionReport {
        try await serverVersions.fetch(of: id)
    }
}

extension Vault {
    /// Returns the ids of a collection's items that have changed, as ``changes()`` does for all collections. They were
    /// written, deleted, moved into the collection or out of it, by this device or by others. The sequence ends after a
    /// sign-out.
    ///
    /// ```swift
    /// for await ids in await vault.changes(in: "notes") {
    ///     for id in ids { show(try await notes[id]) }  // nil for a note that was deleted
    /// }
    /// ```
    public func changes(in collection: String) -> AsyncStream<Set<ItemID>> { changes(in: collection, of: .account) }

    func changes(in collection: String, of owner: ItemOwner) -> AsyncStream<Set<ItemID>> {
        let (stream, continuation) = AsyncStream.makeStream(
            of: Set<ItemID>.self, bufferingPolicy: .bufferingNewest(256))
        let filter = makeFilter(of: collection, owner)
        let id = observers.items.add(
            { changes in
                let ids = filter.concerned(changes)
                if !ids.isEmpty { continuation.yield(ids) }
            }, onEnd: { continuation.finish() })
        continuation.onTermination = { [observers] _ in observers.items.remove(id) }
        return stream
    }

    /// Returns the ids of an owner's changed items.
    nonisolated func changes(of owner: ItemOwner) -> AsyncStream<Set<ItemID>> {
        let (stream, continuation) = AsyncStream.makeStream(
            of: Set<ItemID>.self, bufferingPolicy: .bufferingNewest(256))
        let id = observers.items.add(
            { changes in if changes.owner == owner { continuation.yield(changes.ids) } },
            onEnd: { continuation.finish() })
        continuation.onTermination = { [observers] _ in observers.items.remove(id) }
        return stream
    }

    /// Returns a sequence with a value now, after each change in a collection, and each time the vault is locked or
    /// unlocked. Unread values are merged into one.
    /// - Parameter collection: Nil for all collections and every change of the ``state``.
    func nudges(in collection: String? = nil, of owner: ItemOwner = .account) -> AsyncStream<Void> {
        let (stream, nudge) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        nudge.yield()
        let filter = collection.map { makeFilter(of: $0, owner) }
        let change = observers.items.add(
            { changes in if filter?.concerned(changes).isEmpty != true { nudge.yield() } }, onEnd: { nudge.finish() })
        let state = observers.states.add(
            { state in if filter == nil || state.isAboutOpening { nudge.yield() } }, onEnd: { nudge.finish() })
        nudge.onTermination = { [observers] _ in
            observers.items.remove(change)
            observers.states.remove(state)
        }
        return stream
    }

    private func makeFilter(of collection: String, _ owner: ItemOwner) -> CollectionFilter {
        let known = (try? owners.parts(of: owner).scope.store.currentIDs(collection)).map { Set($0) }
        return CollectionFilter(collection, of: owner, known: known)
    }
}

extension SyncState {
    /// True for the state of a vault that was just locked, unlocked or signed out.
    fileprivate var isAboutOpening: Bool {
        switch self {
        case .idle, .locked, .signedOut: true
        case .syncing, .inStep, .failed: false
        }
    }
}
