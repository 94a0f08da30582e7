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
    let owners: ItemOwners
    let syncing: SyncService
    let sharing: StoreSharing
    private let sharedVaults: SharedVaultService

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
        owners = ItemOwners(session)
        syncing = SyncService(session, owners)
        sharing = StoreSharing(session, owners)
        sharedVaults = SharedVaultService(session, owners, syncing)
    }

    // MARK: Items

    /// Returns a collection, whose items are values of one type. Nothing is read or written.
    ///
    /// Example: "Settings" in docs/app.md.
    /// - Parameter schema: The schema, for a type whose older form needs a migration.
    public nonisolated func collection<Value>(
        _ name: String, of type: Value.Type = Value.self, schema: ItemSchema<Value> = ItemSchema()
    ) -> VaultCollection<Value> {
        VaultCollection(name: name, vault: self, owner: .account, schema: schema)
    }

    /// Returns the present item on this device; nil when there is none.
    ///
    /// Example: "Share" in docs/app.md.
    /// - Throws: ``VaultError/unreadable`` when the item cannot be opened. ``VaultError/locked``.
    public func item(_ id: ItemID) throws(VaultError) -> PlainItem? {
        try items.item(id)
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
        try items.version(of: id)
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
        try items.put(item, id, in: collection, over: seen)
    }

    /// Deletes an item. Its content is kept in the trash of this device for a period.
    ///
    /// If only the local change cannot be opened, the change goes to the trash instead. The server's readable version
    /// stays.
    ///
    /// Example: "Edit" in docs/app.md.
    public func delete(_ id: ItemID) throws(VaultError) {
        try items.delete(id)
    }

    /// Restores an item that was deleted on this or another device, from the trash of this device.
    ///
    /// Example: "Edit" in docs/app.md.
    /// - Throws: ``VaultError/notFound`` when the trash does not have it, ``VaultError/unreadable`` when it cannot be
    ///   opened.
    public func restore(_ id: ItemID) throws(VaultError) {
        try items.restore(id)
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
        owners.account.scope.notifySynced([])
    }

    /// The shared vaults of the account.
    public nonisolated var shared: SharedVaults { SharedVaults(vault: self) }

    // MARK: Observing

    /// Returns the ids of changed items, by this device or by others, from the moment of the call on. The sequence ends
    /// after a sign-out, like all others of the vault.
    ///
    /// ```swift
    /// for await ids in vault.changes() where ids.contains(id) {
    ///     print(try await vault.summary(of: id)?.title ?? "deleted")
    /// }
    /// ```
    public nonisolated func changes() -> AsyncStream<Set<ItemID>> { changes(of: .account) }

    // MARK: Parts

    var plan: PlanLimits { owners.account.plan }
    var items: VaultItems { owners.account.items }
    var attachments: AttachmentService { owners.account.attachments }

    /// Uses the store and the items of an owner together, and converts errors of the store.
    func perform<Result: Sendable>(
        _ owner: ItemOwner = .account, _ step: @Sendable (Store, VaultItems) throws -> Result
    ) throws(VaultError) -> Result {
        let parts = try owners.parts(of: owner)
        do { return try step(parts.scope.store, parts.items) } catch let error as VaultError { throw error } catch {
            throw VaultError(ofStore: error)
        }
    }

    /// Uses the parts of an owner.
    func use<Result: Sendable>(
        _ owner: ItemOwner, _ body: (ItemParts) async throws(VaultError) -> Result
    ) async throws(VaultError) -> Result {
        try await body(owners.parts(of: owner))
    }

    func confirmedAge() throws(VaultError) -> Int64? { try session.confirmedAge() }

    /// The state of the last sync, or of a locked or signed-out vault.
    public var state: SyncState { session.state }

    var serverVersions: ServerVersions { ServerVersions(owners.account.scope, items) }

    var rotation: KeyRotation {
        KeyRotation(session: session, plan: plan, syncing: syncing, sender: attachments.sender)
    }

    var store: Store { session.store }

    var open: VaultSession.Opened { get throws(VaultError) { try session.open } }

    func stored<Result>(_ body: () throws -> Result) throws(VaultError) -> Result { try session.stored(body) }
}

extension Vault {
    /// Syncs this device with the server. One sync runs at a time: a second call waits for the first and then syncs.
    ///
    /// Content of attachments that waits on this device is sent, and then the items that name it; ``progress()``
    /// reports it. Once a day the call also removes chunks of deleted attachments from the server (``sweepChunks()``),
    /// and on a manager's device those of shared vaults. An error of that step does not fail the sync. Shared vaults
    /// follow; errors of one are in ``SyncReport/vaultFailures``.
    ///
    /// Example: "Sync and offline" in docs/app.md.
    /// - Throws: ``VaultError/unavailable(_:)`` without a reply, ``VaultError/sessionEnded``, ``VaultError/locked``.
    ///   Edits always stay on the device.
    @discardableResult
    public func sync() async throws(VaultError) -> SyncReport {
        try await syncing.sync()
    }

    /// Approves the deletions of ``Notice/Kind/massDeletion``, and syncs. The approval is valid for this round only,
    /// even when it fails.
    ///
    /// ```swift
    /// // After the list was shown and the user has agreed:
    /// if try await !vault.heldDeletions().isEmpty { try await vault.agreeToDeletions() }
    /// ```
    /// - Parameter collection: The collection whose deletions are approved; nil for all.
    @discardableResult
    public func agreeToDeletions(in collection: String? = nil) async throws(VaultError) -> SyncReport {
        try await syncing.sync(collection.map { .collections([$0]) } ?? .all)
    }

    /// Returns the items that other devices have deleted and that are kept until the user approves
    /// (``agreeToDeletions(in:)``), by collection and title.
    ///
    /// ```swift
    /// for deletion in try await vault.heldDeletions() { print(deletion.title ?? "untitled") }
    /// ```
    public func heldDeletions() throws(VaultError) -> [HeldDeletion] {
        try items.heldDeletions()
    }

    /// Syncs now and after each change on the server or here, until the task is cancelled or the session ends. While
    /// the server is unreachable, attempts are repeated after waits that double.
    ///
    /// Example: "Sync and offline" in docs/app.md.
    /// - Throws: Permanent errors, such as another key or an untrusted certificate.
    public func keepInSync() async throws(VaultError) {
        try await syncing.keepInSync()
    }

    // MARK: State

    /// Returns a sequence with the present state and each later one. A slow reader receives only the last state.
    ///
    /// ```swift
    /// for await state in await vault.states() {
    ///     if case .failed(let error, _) = state { print(error.localizedDescription) }
    /// }
    /// ```
    public func states() -> AsyncStream<SyncState> { observers.states.add(keeping: 1, beginningWith: state) }

    /// Returns the progress of syncs, rotations, exports, imports and folders, from the moment of the call on. A slow
    /// reader misses some.
    ///
    /// ```swift
    /// for await progress in vault.progress() {
    ///     if case .sent(let count, let total) = progress { print("\(count) of \(total)") }
    /// }
    /// ```
    public nonisolated func progress() -> AsyncStream<VaultProgress> { observers.progress.add() }

    /// The properties of a ``VaultModel``.
    func overview() -> (SyncState, unsentCount: Int, [Notice]) {
        (state, (try? stored { try store.changeCountOfAll() }) ?? 0, (try? notices()) ?? [])
    }

    /// The number of times that the vault was opened.
    var openings: Int { session.openings }

    func waitForOpening(after seen: Int) async -> Bool { await syncing.waitForOpening(after: seen) }

    /// - Throws: The errors of ``keepInSync()``.
    func listen(_ onChange: @Sendable () -> Void) async throws(VaultError) { try await syncing.listen(onChange) }

    func sync(_ agreement: DeletionAgreement, of owner: ItemOwner) async throws(VaultError) -> SyncReport {
        try await syncing.sync(agreement, of: owner)
    }

    func fetch(
        _ agreement: DeletionAgreement, of owner: ItemOwner, learns: Bool = true
    ) async throws(VaultError) -> SyncReport {
        try await syncing.fetch(agreement, of: owner, learns: learns)
    }
}

/// Several processes of an app with one store: a share extension, a widget.
///
/// One process at a time has the store. A process that opens a vault waits for ``VaultSettings/storePatience``, in the
/// order of arrival. It has the store until the last reference to its vault is released. The app itself lets others use
/// the store while it does not need it.
///
/// ```swift
/// // The app, when it enters the background and the foreground:
/// following.cancel()
/// try await vault.lendStore()
/// …
/// try await vault.takeBackStore()
///
/// // The share extension:
/// settings.storePatience = .seconds(5)
/// guard let vault = try await Vault.resume(settings) else { return askForLogIn() }
/// try await vault.collection("notes", of: Note.self).put(note)
/// ```
///
/// All processes need the same ``VaultSettings/folder`` (an app group's container) and a ``VaultSettings/deviceKey``
/// that each of them can read (a shared keychain access group).
extension Vault {
    /// Lets other processes use the store until ``takeBackStore()``. Until then, calls that read or write it throw
    /// ``VaultError/store(_:)`` with ``StoreError/inUse``. Repeated calls have no effect.
    ///
    /// ```swift
    /// case .background: try await vault.lendStore()
    /// ```
    /// - Throws: ``VaultError/store(_:)`` with ``StoreError/inUse`` while an attachment is being sent or a folder is
    ///   syncing, with nothing changed. A running sync ends first: after an error it repeats no request.
    public func lendStore() async throws(VaultError) {
        try await sharing.lendUntilTakenBack()
    }

    /// Opens the store again, after the processes that wait for it or use it. ``changes()`` reports their changes.
    /// Without an earlier ``lendStore()`` the call has no effect.
    ///
    /// ```swift
    /// case .active: try await vault.takeBackStore()
    /// ```
    /// - Returns: True when another process has written to the store.
    /// - Throws: ``VaultError/store(_:)`` with ``StoreError/inUse`` when no process has released the store for 30
    ///   seconds; it then stays closed. ``VaultError/locked`` when another process has locked or signed out the vault,
    ///   ``VaultError/otherAccount`` when it has logged another account in: the vault is then locked.
    @discardableResult
    public func takeBackStore() async throws(VaultError) -> Bool {
        try await sharing.takeBack()
    }

    /// Opens the store, after other processes that use it.
    static func opening(_ settings: VaultSettings) async throws(VaultError) -> Vault {
        if settings.storePatience <= .zero { return try Vault(settings) }
        do {
            return try await StoreTicket.waiting(in: settings.folder, atMost: settings.storePatience) {
                try Vault(settings)
            }
        } catch {
            throw error as? VaultError ?? .cancelled
        }
    }

    func beginLending() { sharing.begin() }

    func reclaimStore(isPatient: Bool = true) async throws(VaultError) -> Int {
        try await sharing.reclaim(isPatient: isPatient)
    }

    func giveWay() async throws(VaultError) -> Int { try await sharing.giveWay() }

    func endStoreUse() async { await sharing.endUse() }
}
