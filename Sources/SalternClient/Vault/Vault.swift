internal import Cryptography
internal import Foundation

/// An account's encrypted items on this device: read and written offline, synced with the server.
///
/// ```swift
/// let vault = try await Vault.logIn(settings, userid: "ada@example.org", password: Password(typed))
/// let notes = vault.collection("notes", of: Note.self)
/// try await notes.put(Note(text: "Buy salt."))
/// try await vault.sync()
/// ```
public actor Vault {
    let settings: VaultSettings
    nonisolated let observers: VaultObservers
    let session: VaultSession
    let plan: PlanLimits
    let attachments: AttachmentService
    let syncing: SyncService
    let sharing: StoreSharing

    init(_ settings: VaultSettings) throws(VaultError) {
        do throws(StretchingRule.Refusal) { try settings.stretching.check(settings.transport) } catch {
            throw .untrustworthy(error)
        }
        let store: Store
        do {
            try FileManager.default.createDirectory(
                at: settings.folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
            let file = settings.folder.appending(path: "store.sqlite").path
            store = try Store(path: file)
            DeviceSecrets(store, settings.deviceKey).repair()
            // On a full disk the next opening repeats it.
            try? store.noteFile(at: file)
        } catch CocoaError.fileWriteVolumeReadOnly {
            throw .store(.readOnly)
        } catch {
            throw .store(error as? StoreError ?? .unusable)
        }
        self.init(settings, store)
    }

    /// Creates a vault with an open store.
    init(_ settings: VaultSettings, _ store: Store) {
        self.settings = settings
        observers = VaultObservers()
        session = VaultSession(settings, store, observers)
        plan = PlanLimits(session)
        attachments = AttachmentService(session, plan)
        let syncing = SyncService(session, plan, attachments)
        let sharing = StoreSharing(session, attachments)
        self.syncing = syncing
        self.sharing = sharing
        syncing.settleKeys = { [weak self] () async throws(VaultError) in try await self?.settleKeys() }
        sharing.reopen = { [weak self] () async throws(VaultError) in try await self?.reopen() }
    }

    // MARK: Items

    /// Returns the present item on this device; nil when there is none.
    ///
    /// Example: "Share" in docs/app.md.
    /// - Throws: ``VaultError/unreadable`` when the item cannot be opened. ``VaultError/locked``.
    public func item(_ id: ItemID) throws(VaultError) -> PlainItem? {
        let sealer = try self.sealer
        guard let content = try stored({ try store.current(id) }) else { return nil }
        guard let opened = try? sealer.open(content, id) else { throw .unreadable }
        return opened.item
    }

    /// Returns the items of a collection that can be opened, by id, and the ids of the others.
    func items(
        _ collection: String
    ) throws(VaultError) -> (opened: [ItemID: (item: PlainItem, version: ItemVersion)], sealed: Set<ItemID>) {
        let sealer = try self.sealer
        var items: [ItemID: (item: PlainItem, version: ItemVersion)] = [:]
        var sealed: Set<ItemID> = []
        try stored {
            try store.forEachCurrent(in: collection) { id, content, _ in
                if let opened = try? sealer.open(content, id) {
                    items[id] = (opened.item, ItemVersion(of: content))
                } else {
                    sealed.insert(id)
                }
            }
        }
        return (items, sealed)
    }

    /// Returns the ids of a collection's items, in the order of the ids.
    ///
    /// ```swift
    /// for id in try await vault.ids("notes") { print(id) }
    /// ```
    public func ids(_ collection: String) throws(VaultError) -> [ItemID] {
        try stored { try store.currentIDs(collection) }
    }

    /// Returns the present version of an item on this device; nil when there is no item.
    ///
    /// Example: "Edit" in docs/app.md.
    public func version(of id: ItemID) throws(VaultError) -> ItemVersion? {
        try stored { try store.current(id) }.map { ItemVersion(of: $0) }
    }

    /// Writes an item. It is on this device's disk when this returns, and sent by the next ``sync()``.
    ///
    /// ```swift
    /// let note = PlainItem(title: "Shopping", body: try await vault.body(holding: AttachmentSource(file: file)))
    /// try await vault.put(note, id, in: "files")
    /// ```
    /// - Parameter seen: The version that the user has changed. If another version has arrived since, both are kept:
    ///   this one under another id, with a ``Notice/Kind/conflict``. Without `seen`, any present version is replaced.
    /// - Returns: The id under which it was written.
    /// - Throws: ``VaultError/noRoom(_:)`` for an item that is longer than the last known limit of the plan.
    ///   ``VaultError/invalidCollection(_:)`` for an invalid name of a collection.
    @discardableResult
    public func put(
        _ item: PlainItem, _ id: ItemID, in collection: String, over seen: ItemVersion? = nil
    ) throws(VaultError) -> ItemID {
        try plan.refuseTooLong(item)
        return try putUnbounded(item, id, in: collection, over: seen)
    }

    /// Writes a file's item, whose manifest was within the plan's limit when it was created.
    @discardableResult
    func putUnbounded(
        _ item: PlainItem, _ id: ItemID, in collection: String, over seen: ItemVersion? = nil
    ) throws(VaultError) -> ItemID {
        guard CollectionName.isValid(collection) else { throw .invalidCollection(collection) }
        let sealer = try self.sealer
        let before = try stored { try store.current(id) }
        if let before, let seen, ItemVersion(of: before) != seen {
            guard let opened = try? sealer.open(before, id) else { throw .unreadable }
            if opened.item == item && before.collection == collection { return id }
            let copy = ItemID.random()
            try write(item, copy, collection, .first, sealer, conflictWith: id)
            return copy
        }
        let edit: SealedBox.Edit
        if let before {
            guard let opened = try? sealer.open(before, id) else { throw .unreadable }
            if opened.item == item && before.collection == collection { return id }
            // An edit that was never sent is replaced without a new number.
            let isReplaced = try stored { try store.change(id).map { !$0.wasSent } ?? false }
            edit = isReplaced && !opened.edit.isCopy ? opened.edit : opened.edit.next(after: before.body.bytes)
        } else {
            edit = try nextEdit(ofRemoved: id, sealer)
        }
        try write(item, id, collection, edit, sealer)
        return id
    }

    private func write(
        _ item: PlainItem, _ id: ItemID, _ collection: String, _ edit: SealedBox.Edit, _ sealer: Sealer,
        conflictWith other: ItemID? = nil
    ) throws(VaultError) {
        guard let content = try? sealer.seal(item, id, collection: collection, edit) else { throw .unreadable }
        try stored {
            try store.transaction {
                try store.record(id, content: content, edit: edit.number, opened: item.body)
                for attachment in Attachment.all(in: item.body).found {
                    try store.forgetDraftChunks(of: attachment)
                }
                if let other { try store.note(.conflict, other, other: id) }
            }
        }
        notify([id])
    }

    private func nextEdit(ofRemoved id: ItemID, _ sealer: Sealer) throws(VaultError) -> SealedBox.Edit {
        // The trash may have an unsent edit of the server's item, or an older one.
        let last = try stored { try [store.trashed(id), store.item(id)] }.compactMap(\.self).max { $0.edit < $1.edit }?
            .content
        let deletion = try stored { try store.tombstone(id) }?.deletion
        guard let last, let opened = try? sealer.open(last, id) else {
            var edit = SealedBox.Edit.first
            if let deletion { edit.number += SealedBox.Edit.floor(of: deletion) }
            return edit
        }
        return opened.edit.creating(after: last.body.bytes, deletedAt: deletion)
    }

    /// Deletes an item. Its content is kept in the trash of this device for a period.
    ///
    /// If only the local change cannot be opened, the change goes to the trash instead. The server's readable version
    /// stays.
    ///
    /// Example: "Edit" in docs/app.md.
    public func delete(_ id: ItemID) throws(VaultError) {
        let sealer = try sealer
        try stored {
            try store.transaction {
                guard let content = try store.current(id) else { return }
                let change = try store.change(id)
                let item = try store.item(id)
                let edit = change?.edit ?? item?.edit ?? 0
                try store.trash(
                    StoredItem(id: id, revision: item?.revision ?? Revision(0), content: content, edit: edit),
                    at: Date())
                let hidesReadable =
                    if let item, change != nil {
                        (try? sealer.open(content, id)) == nil && (try? sealer.open(item.content, id)) != nil
                    } else { false }
                if hidesReadable || item == nil && change?.sent == nil {
                    // The second case: the server has never received it.
                    try store.forgetChange(id)
                } else {
                    try store.record(id, content: nil, edit: edit)
                }
            }
        }
        notify([id])
    }

    /// Restores an item that was deleted on this or another device, from the trash of this device.
    ///
    /// Example: "Edit" in docs/app.md.
    /// - Throws: ``VaultError/notFound`` when the trash does not have it, ``VaultError/unreadable`` when it cannot be
    ///   opened.
    public func restore(_ id: ItemID) throws(VaultError) {
        let sealer = try self.sealer
        guard let item = try stored({ try store.trashed(id) }) else { throw .notFound }
        guard let opened = try? sealer.open(item.content, id) else { throw .unreadable }
        try put(opened.item, id, in: item.content.collection)
        try stored { try store.removeFromTrash(id) }
    }

    /// Returns the events for the user, such as conflicts.
    ///
    /// Example: "Conflicts" in docs/app.md.
    public func notices() throws(VaultError) -> [Notice] { try stored { try store.notices() } }

    /// Removes a notice that the user has seen. One that lasts (``Notice/Kind/isLasting``) stays.
    ///
    /// Example: "Conflicts" in docs/app.md.
    public func forget(_ notice: Notice) throws(VaultError) {
        if notice.kind.isLasting { return }
        try stored { try store.forgetNotice(notice.number) }
        // No item has changed, but models show notices.
        session.notifySynced([])
    }

    // MARK: Observing

    /// Returns the ids of changed items, by this device or by others, from the moment of the call on. The sequence ends
    /// after a sign-out, like all others of the vault.
    ///
    /// ```swift
    /// for await ids in vault.changes() where ids.contains(id) {
    ///     print(try await vault.summary(of: id)?.title ?? "deleted")
    /// }
    /// ```
    public nonisolated func changes() -> AsyncStream<Set<ItemID>> { observers.items.add { $0.ids } }

    // MARK: Parts

    /// The state of the last sync, or of a locked or signed-out vault.
    public var state: SyncState { session.state }

    var api: SalternAPI { session.api }

    var store: Store { session.store }

    var serverLock: AsyncMutex { session.serverLock }

    var opened: VaultSession.Opened? {
        get { session.opened }
        set { session.opened = newValue }
    }

    var open: VaultSession.Opened { get throws(VaultError) { try session.open } }

    var engine: SyncEngine { get throws(VaultError) { try session.engine } }

    var sealer: Sealer { get throws(VaultError) { try session.sealer } }

    func stored<Result>(_ body: () throws -> Result) throws(VaultError) -> Result { try session.stored(body) }

    func transaction<Result>(_ body: () throws -> Result) throws(VaultError) -> Result {
        try session.transaction(body)
    }

    func call<Result: Sendable>(
        _ body: (SalternAPI) async throws(APIError) -> Result
    ) async throws(VaultError) -> Result { try await session.call(body) }

    func notify(_ ids: Set<ItemID>) { session.notify(ids) }
}
