public import Cryptography
package import Foundation

/// The items of one owner, with the functions that ``Vault`` has for those of the account. ``SharedVault/items`` has
/// those of a shared vault.
///
/// ```swift
/// for shared in try await vault.shared.all() where try await !shared.items.heldDeletions().isEmpty {
///     try await shared.items.agreeToDeletions()
/// }
/// ```
public struct OwnedItems: Sendable {
    package let vault: Vault
    package let owner: ItemOwner

    package init(_ vault: Vault, of owner: ItemOwner = .account) {
        self.vault = vault
        self.owner = owner
    }

    /// Uses the store and the items together.
    ///
    /// Swift 6.3 crashes at a closure that does not escape and is passed on to an actor.
    func perform<Result: Sendable>(
        _ step: @escaping @Sendable (Store, VaultItems) throws -> Result
    ) async throws(VaultError) -> Result {
        try await vault.perform(owner, step)
    }

    // MARK: Items

    /// Returns the present item on this device; nil when there is none.
    public func item(_ id: ItemID) async throws(VaultError) -> PlainItem? {
        try await perform { _, items in try items.item(id) }
    }

    /// Returns the present version of an item on this device; nil when there is no item.
    public func version(of id: ItemID) async throws(VaultError) -> ItemVersion? {
        try await perform { _, items in try items.version(of: id) }
    }

    /// Writes an item; see ``Vault/put(_:_:in:over:)``.
    @discardableResult
    public func put(
        _ item: PlainItem, _ id: ItemID, in collection: String, over seen: ItemVersion? = nil
    ) async throws(VaultError) -> ItemID {
        try await perform { _, items in try items.put(item, id, in: collection, over: seen) }
    }

    /// Deletes an item. Its content is kept in the trash of this device for a period.
    public func delete(_ id: ItemID) async throws(VaultError) {
        try await perform { _, items in try items.delete(id) }
    }

    /// Restores a deleted item from the trash of this device.
    public func restore(_ id: ItemID) async throws(VaultError) {
        try await perform { _, items in try items.restore(id) }
    }

    /// Discards the unsent change of an item; see ``Vault/discardChange(_:)``.
    public func discardChange(_ id: ItemID) async throws(VaultError) {
        try await perform { _, items in try items.discardChange(id) }
    }

    // MARK: Lists

    /// Returns the items on this device, in the order of their ids.
    public func items(in collection: String? = nil) async throws(VaultError) -> [ItemSummary] {
        try await perform { _, items in try items.items(in: collection) }
    }

    /// Returns the summary of one item; nil when there is none.
    public func summary(of id: ItemID) async throws(VaultError) -> ItemSummary? {
        try await perform { _, items in try items.summary(of: id) }
    }

    /// Returns the content of a deleted item, from the trash of this device.
    public func deletedItem(_ id: ItemID) async throws(VaultError) -> PlainItem {
        try await perform { _, items in try items.deletedItem(id) }
    }

    /// Returns the deleted items that this device can restore, the latest first.
    public func deletedItems() async throws(VaultError) -> [ItemSummary] {
        try await perform { _, items in try items.deletedItems() }
    }

    /// Returns the items whose present version the server does not have, in the order of sending, without deletions.
    public func unsentItems(limit: Int = .max) async throws(VaultError) -> [ItemSummary] {
        try await perform { _, items in try items.unsentItems(limit: limit) }
    }

    /// Returns the number of changes that the server has not confirmed.
    public func unsentCount() async throws(VaultError) -> Int {
        try await perform { store, _ in try store.changeCount() }
    }

    /// Returns the number of changes of the account and of all shared vaults that the server has not confirmed.
    package func unsentCountOfAll() async throws(VaultError) -> Int {
        try await perform { store, _ in try store.changeCountOfAll() }
    }

    /// Returns the owners with deletions that wait for the user's approval, of items or of files in a folder.
    package func ownersHoldingDeletions() async throws(VaultError) -> Set<ItemOwner> {
        try await perform { store, _ in try store.ownersHoldingDeletions() }
    }

    /// Returns the deletions by other members that wait for approval; see ``Vault/heldDeletions()``.
    public func heldDeletions() async throws(VaultError) -> [HeldDeletion] {
        try await perform { _, items in try items.heldDeletions() }
    }

    /// Returns the events for the user, such as conflicts.
    public func notices() async throws(VaultError) -> [Notice] {
        try await perform { store, _ in try store.notices() }
    }

    /// Marks a notice as read.
    public func forget(_ notice: Notice) async throws(VaultError) {
        if notice.kind.isLasting { return }
        try await perform { store, _ in try store.forgetNotice(notice.number) }
    }

    /// Returns the replaced versions of an item on this device, the latest first; without an id, of all items.
    public func replacedVersions(of id: ItemID? = nil) async throws(VaultError) -> [ReplacedVersion] {
        try await perform { _, items in try items.replacedVersions(of: id) }
    }

    /// Returns the content of a replaced version.
    public func item(_ id: ItemID, replaced number: Int64) async throws(VaultError) -> PlainItem {
        try await perform { _, items in try items.item(id, replaced: number) }
    }

    /// Makes a replaced version the present one again, even of a deleted item.
    public func restore(_ id: ItemID, replaced number: Int64) async throws(VaultError) {
        try await perform { _, items in try items.restore(id, replaced: number) }
    }

    @discardableResult
    package func fetchVersions(of id: ItemID) async throws(VaultError) -> VersionReport {
        try await vault.use(owner) { (parts) async throws(VaultError) in
            try await ServerVersions(parts.scope, parts.items).fetch(of: id)
        }
    }

    // MARK: Sync

    /// Syncs the account and all shared vaults, and carries out the deletions of the owner's items.
    /// - Returns: The report of the account, with those of the shared vaults.
    package func syncAll(agreeingToDeletionsIn collection: String?) async throws(VaultError) -> SyncReport {
        try await vault.sync(collection.map { .collections([$0]) } ?? .all, of: owner)
    }

    /// Syncs the whole vault.
    /// - Returns: The report of the owner's items.
    /// - Throws: The failure of this vault. Failures of other vaults are not thrown.
    @discardableResult
    func sync(_ agreement: DeletionAgreement = .none) async throws(VaultError) -> SyncReport {
        let report = try await vault.sync(agreement, of: owner)
        guard case .vault(let id) = owner else { return report }
        if let failure = report.vaultFailures[id] { throw failure }
        return report.vaults[id] ?? SyncReport()
    }

    /// Carries out the deletions that wait for approval, of one collection or of all, and syncs.
    @discardableResult
    public func agreeToDeletions(in collection: String? = nil) async throws(VaultError) -> SyncReport {
        try await sync(collection.map { .collections([$0]) } ?? .all)
    }

    /// - Parameter learns: False to judge by the known log of a shared vault, and to send nothing for it.
    func fetch(_ agreement: DeletionAgreement, learns: Bool = true) async throws(VaultError) -> SyncReport {
        try await vault.fetch(agreement, of: owner, learns: learns || owner == .account)
    }

    /// Returns the items that other devices have deleted since the last call.
    func takeRemoved() async throws(VaultError) -> Set<ItemID> {
        try await vault.use(owner) { (parts) async throws(VaultError) in parts.takeRemoved() }
    }

    // MARK: Attachments

    func attach(
        _ source: AttachmentSource, _ draft: AttachmentDraft, properties: [String: String],
        progress: @Sendable (AttachmentProgress) -> Void = { _ in }
    ) async throws(VaultError) -> Attachment {
        try await vault.use(owner) { (parts) async throws(VaultError) in
            try await parts.attachments.attach(source, draft, properties: properties, progress: progress)
        }
    }

    /// Creates an attachment's manifest, and sends long content to the server; see
    /// ``Vault/attach(_:id:properties:progress:)``.
    public func attach(
        _ source: AttachmentSource, id: ItemID? = nil, properties: [String: String] = [:],
        progress: @Sendable (AttachmentProgress) -> Void = { _ in }
    ) async throws(VaultError) -> Attachment {
        try await attach(source, AttachmentDraft(id), properties: properties, progress: progress)
    }

    /// Takes back the chunks of an attachment that is not continued; see ``Vault/abandonAttachment(_:)``.
    public func abandonAttachment(_ id: ItemID) async throws(VaultError) {
        try await vault.use(owner) { (parts) async throws(VaultError) in
            try await parts.attachments.abandoned.takeBack(id)
        }
    }

    func piece(_ index: Int, of attachment: Attachment, keepsCopy: Bool) async throws(VaultError) -> SecureBytes {
        try await vault.use(owner) { (parts) async throws(VaultError) in
            try await parts.attachments.reader.piece(index, of: attachment, keepsCopy: keepsCopy)
        }
    }

    func fetchedPieces(of attachment: Attachment, in source: AttachmentSource) async throws(VaultError) -> Int {
        try await vault.use(owner) { (parts) async throws(VaultError) in
            try await parts.attachments.reader.fetchedPieces(of: attachment, in: source)
        }
    }

    /// Returns one piece of an attachment's content, of ``Attachment/pieceCount``. A copy stays on this device.
    public func piece(_ index: Int, of attachment: Attachment) async throws(VaultError) -> SecureBytes {
        try await piece(index, of: attachment, keepsCopy: true)
    }

    /// Returns the whole content of an attachment, which has to fit in memory.
    public func content(of attachment: Attachment) async throws(VaultError) -> SecureBytes {
        try await vault.use(owner) { (parts) async throws(VaultError) in
            try await parts.attachments.reader.content(of: attachment, progress: { _ in })
        }
    }

    func lackingChunks() async throws(VaultError) -> [Attachment] {
        try await vault.use(owner) { (parts) async throws(VaultError) in try parts.attachments.lackingChunks() }
    }

    func supply(_ attachment: Attachment, from source: AttachmentSource) async throws(VaultError) {
        try await vault.use(owner) { (parts) async throws(VaultError) in
            try await parts.attachments.supply(attachment, from: source)
        }
    }

    func room() async throws(VaultError) -> PlanRoom {
        try await vault.use(owner) { (parts) async throws(VaultError) in try await parts.plan.room() }
    }

    package func refuseTooLong(bodyOf byteCount: Int64) async throws(VaultError) {
        try await vault.use(owner) { (parts) async throws(VaultError) in
            try await parts.plan.refuseTooLong(bodyOf: byteCount)
        }
    }

    // MARK: Whole content

    /// Returns an item with its whole content; nil when there is none. Long content is fetched.
    public func wholeItem(_ id: ItemID) async throws(VaultError) -> PlainItem? {
        guard let item = try await item(id) else { return nil }
        return PlainItem(title: item.title, body: try await wholeContent(of: item.body))
    }

    /// Returns the content of a body: that of the attachment if it is a manifest, otherwise the body itself.
    public func wholeContent(of body: SecureBytes) async throws(VaultError) -> SecureBytes {
        try await vault.use(owner) { (parts) async throws(VaultError) in try await parts.wholeContent(of: body) }
    }

    /// Returns a body for an item with the content of a source.
    public func body(holding source: AttachmentSource) async throws(VaultError) -> SecureBytes {
        try await vault.use(owner) { (parts) async throws(VaultError) in try await parts.body(holding: source) }
    }

    /// Returns a body for an item with this content.
    public func body(holding content: SecureBytes) async throws(VaultError) -> SecureBytes {
        try await body(holding: content, insteadOf: SecureBytes(copying: [UInt8]()))
    }

    package func body(
        holding content: SecureBytes, insteadOf body: SecureBytes
    ) async throws(VaultError) -> SecureBytes {
        try await vault.use(owner) { (parts) async throws(VaultError) in
            try await parts.body(holding: content, insteadOf: body)
        }
    }

    package func body(
        holding source: AttachmentSource, insteadOf body: SecureBytes
    ) async throws(VaultError) -> SecureBytes {
        try await vault.use(owner) { (parts) async throws(VaultError) in
            try await parts.body(holding: source, insteadOf: body)
        }
    }

    // MARK: Documents

    @discardableResult
    package func exportDocuments(
        to file: URL, collection: String? = nil
    ) async throws(VaultError) -> DocumentExport {
        let owned = self
        return try await vault.use(owner) { (parts) async throws(VaultError) in
            try await DocumentExporter(scope: parts.scope, items: parts.items, owned: owned)
                .export(to: file, collection: collection)
        }
    }

    @discardableResult
    package func importDocuments(from file: URL) async throws(VaultError) -> DocumentImport {
        try await vault.use(owner) { (parts) async throws(VaultError) in
            try await DocumentImporter(scope: parts.scope, items: parts.items, attachments: parts.attachments)
                .importAll(from: file)
        }
    }
}

extension SyncReport {
    /// The report before the first round.
    package static var empty: SyncReport { SyncReport() }
}
