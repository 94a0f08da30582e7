internal import Cryptography
internal import Foundation

/// The items of a vault on this device: present versions, replaced versions and the trash.
final class VaultItems {
    private let scope: ItemScope
    private let store: Store
    private let plan: PlanLimits

    init(_ scope: ItemScope, _ plan: PlanLimits) {
        self.scope = scope
        self.plan = plan
        store = scope.store
    }

    /// A text and the id of the owner, for a digest in folders.
    var folderOwner: [UInt8] {
        get throws(VaultError) {
            switch scope.owner {
            case .account: Array("saltern-folder-account".utf8) + (try scope.session.open.account.bytes)
            case .vault(let id): Array("saltern-folder-vault".utf8) + id.bytes
            }
        }
    }

    /// - Throws: ``VaultError/locked``.
    func checkOpen() throws(VaultError) { _ = try scope.open }

    /// Returns the present item on this device; nil when there is none.
    func item(_ id: ItemID) throws(VaultError) -> PlainItem? {
        let sealer = try scope.sealer
        guard let content = try scope.stored({ try store.current(id) }) else { return nil }
        guard let opened = try? sealer.open(content, id) else { throw .unreadable }
        return opened.item
    }

    /// Returns the items of a collection that can be opened, by id, and the ids of the others.
    func items(
        _ collection: String
    ) throws(VaultError) -> (opened: [ItemID: (item: PlainItem, version: ItemVersion)], sealed: Set<ItemID>) {
        let sealer = try scope.sealer
        var items: [ItemID: (item: PlainItem, version: ItemVersion)] = [:]
        var sealed: Set<ItemID> = []
        try scope.stored {
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
    func ids(_ collection: String) throws(VaultError) -> [ItemID] {
        try scope.stored { try store.currentIDs(collection) }
    }

    /// Returns the present version of an item on this device; nil when there is no item.
    func version(of id: ItemID) throws(VaultError) -> ItemVersion? {
        try scope.stored { try store.current(id) }.map { ItemVersion(of: $0) }
    }

    /// The name of this member of a shared vault; nil for an account.
    var authorName: String? { get throws(VaultError) { try scope.sealer.authorName } }

    /// Returns the author of the present version of an item in a shared vault; nil when it is unknown.
    func author(of id: ItemID) throws(VaultError) -> ItemAuthor? {
        let sealer = try scope.sealer
        guard let content = try scope.stored({ try store.current(id) }) else { return nil }
        return (try? sealer.open(content, id))?.author
    }

    /// True when this account may write items: false for a reader of a shared vault.
    var canWrite: Bool { get throws(VaultError) { try scope.sealer.canWrite } }

    /// Returns the content of a deleted item, from the trash of this device.
    func deletedItem(_ id: ItemID) throws(VaultError) -> PlainItem {
        let sealer = try scope.sealer
        guard let item = try scope.stored({ try store.trashed(id) }) else { throw .notFound }
        guard let opened = try? sealer.open(item.content, id) else { throw .unreadable }
        return opened.item
    }

    // MARK: Editing

    /// Writes an item. It is on this device's disk when this returns, and sent by the next ``Vault/sync()``.
    @discardableResult
    func put(
        _ item: PlainItem, _ id: ItemID, in collection: String, over seen: ItemVersion? = nil
    ) throws(VaultError) -> ItemID {
        if CollectionName.isHidden(collection) { throw .invalidCollection(collection) }
        try plan.refuseTooLong(item)
        return try putUnbounded(item, id, in: collection, over: seen)
    }

    /// Writes a file's item, whose manifest was within the plan's limit when it was created.
    @discardableResult
    func putUnbounded(
        _ item: PlainItem, _ id: ItemID, in collection: String, over seen: ItemVersion? = nil
    ) throws(VaultError) -> ItemID {
        guard CollectionName.isValid(collection) else { throw .invalidCollection(collection) }
        let sealer = try scope.sealer
        guard sealer.canWrite else { throw .refused(.notPermitted) }
        let before = try scope.stored { try store.current(id) }
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
            let isReplaced = try scope.stored { try store.change(id).map { !$0.wasSent } ?? false }
            edit = isReplaced && !opened.edit.isCopy ? opened.edit : sealer.next(opened.edit, after: before, id)
        } else {
            edit = try nextEdit(ofRemoved: id, sealer)
        }
        try write(item, id, collection, edit, sealer)
        return id
    }

    private func write(
        _ item: PlainItem, _ id: ItemID, _ collection: String, _ edit: SealedBox.Edit, _ sealer: any ItemSealing,
        conflictWith other: ItemID? = nil
    ) throws(VaultError) {
        guard let content = try? sealer.seal(item, id, collection: collection, edit) else {
            throw sealer.canSeal ? .unreadable : .shared(.stopped)
        }
        try scope.stored {
            try store.transaction {
                try store.record(id, content: content, edit: edit.number, opened: item.body)
                for attachment in Attachment.all(in: item.body).found {
                    try store.forgetDraftChunks(of: attachment)
                }
                if let other { try store.note(.conflict, other, other: id) }
            }
        }
        scope.notify([id])
    }

    private func nextEdit(ofRemoved id: ItemID, _ sealer: any ItemSealing) throws(VaultError) -> SealedBox.Edit {
        // The trash may have an unsent edit of the server's item, or an older one.
        let known = try scope.stored { try [store.trashed(id), store.item(id)] }.compactMap(\.self)
        let last = known.max { $0.edit < $1.edit }?.content
        let deletion = try scope.stored { try store.tombstone(id) }?.deletion
        guard let last, let opened = try? sealer.open(last, id) else {
            var edit = SealedBox.Edit.first
            if let deletion { edit.number += SealedBox.Edit.floor(of: deletion) }
            return edit
        }
        return sealer.creating(opened.edit, after: last, id, deletedAt: deletion)
    }

    /// Deletes an item. Its content is kept in the trash of this device for a period.
    func delete(_ id: ItemID) throws(VaultError) {
        guard try !isHidden(id) else { return }
        try deleteHidden(id)
    }

    /// True for an item of the kit itself, which a person cannot delete.
    private func isHidden(_ id: ItemID) throws(VaultError) -> Bool {
        try scope.stored { try store.current(id) }.map { CollectionName.isHidden($0.collection) } ?? false
    }

    /// Deletes an item of any collection.
    func deleteHidden(_ id: ItemID) throws(VaultError) {
        let sealer = try scope.sealer
        guard sealer.canWrite else { throw .refused(.notPermitted) }
        try scope.stored {
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
        scope.notify([id])
    }

    /// Restores an item that was deleted on this or another device, from the trash of this device.
    func restore(_ id: ItemID) throws(VaultError) {
        let sealer = try scope.sealer
        guard let item = try scope.stored({ try store.trashed(id) }) else { throw .notFound }
        guard let opened = try? sealer.open(item.content, id) else { throw .unreadable }
        try put(opened.item, id, in: item.content.collection)
        try scope.stored { try store.removeFromTrash(id) }
    }

    /// Discards the unsent change of an item. The item returns to its last received state of the server, if there is
    /// one. The discarded content goes to the trash of this device. If the item exists, the content gets another id
    /// there.
    func discardChange(_ id: ItemID) throws(VaultError) {
        let sealer = try scope.sealer
        let copy = ItemID.random()
        try scope.transaction {
            guard let change = try store.change(id) else { throw VaultError.notFound }
            let item = try store.item(id)
            if let content = change.content {
                var written = StoredItem(
                    id: id, revision: item?.revision ?? Revision(0), content: content, edit: change.edit)
                if item != nil, let opened = try? sealer.open(content, id).item,
                    let sealed = try? sealer.seal(opened, copy, collection: content.collection, .first)
                {
                    written = StoredItem(id: copy, revision: Revision(0), content: sealed, edit: 1)
                }
                try store.trash(written, at: Date())
            } else if item != nil {
                // The item is no longer deleted.
                try store.removeFromTrash(id)
            }
            try store.forgetChange(id)
            try store.forgetRefusals(of: id)
            if scope.owner != .account { try store.set(.judgedBy, nil) }
        }
        scope.notify([id])
    }

    // MARK: Edits of a present version

    /// Returns an item and its version; nil when there is none.
    /// - Parameter isSeen: True to treat an item that cannot be opened as missing.
    func present(_ id: ItemID, isSeen: Bool) throws(VaultError) -> (item: PlainItem?, version: ItemVersion?) {
        do throws(VaultError) { return (try item(id), try version(of: id)) } catch {
            guard case .unreadable = error, isSeen else { throw error }
            return (nil, try version(of: id))
        }
    }

    /// Returns an item with its version and its collection; nil when there is none.
    func presentItem(
        _ id: ItemID
    ) throws(VaultError) -> (item: PlainItem, version: ItemVersion, collection: String)? {
        guard let item = try item(id), let content = try scope.stored({ try store.current(id) }) else { return nil }
        return (item, ItemVersion(of: content), content.collection)
    }

    /// Writes an item that was made from the present version.
    /// - Returns: nil, with nothing written, when there is another version now.
    func put(
        _ item: PlainItem, _ id: ItemID, in collection: String, over seen: ItemVersion?, inPlaceOf version: ItemVersion?
    ) throws(VaultError) -> ItemID? {
        guard try self.version(of: id) == version else { return nil }
        return try put(item, id, in: collection, over: seen)
    }

    // MARK: Lists

    /// Returns the items on this device, in the order of their ids.
    func items(in collection: String? = nil) throws(VaultError) -> [ItemSummary] {
        let sealer = try scope.sealer
        var items: [ItemSummary] = []
        try scope.stored {
            let allowed = try store.number(.itemBytes)
            try store.forEachCurrent(in: collection) { id, content, isUnsent in
                if CollectionName.isHidden(content.collection) { return }
                items.append(summary(id, content, sealer, isUnsent: isUnsent, allowed: allowed))
            }
        }
        return items
    }

    /// Returns the summary of one item; nil when there is none.
    func summary(of id: ItemID) throws(VaultError) -> ItemSummary? {
        let sealer = try scope.sealer
        return try scope.stored {
            guard let content = try store.current(id) else { return nil }
            return summary(
                id, content, sealer, isUnsent: try store.change(id) != nil, allowed: try store.number(.itemBytes))
        }
    }

    /// Returns the deleted items that this device can restore, the latest first.
    func deletedItems() throws(VaultError) -> [ItemSummary] {
        let sealer = try scope.sealer
        var items: [ItemSummary] = []
        try scope.stored {
            try store.forEachTrashed { id, content, isUnsent, removedAt in
                if CollectionName.isHidden(content.collection) { return }
                items.append(
                    summary(
                        id, content, sealer, isUnsent: isUnsent,
                        removedAt: Date(timeIntervalSince1970: TimeInterval(removedAt))))
            }
        }
        return items
    }

    /// Returns the items whose present version the server does not have, in the order of sending, without deletions.
    func unsentItems(limit: Int = .max) throws(VaultError) -> [ItemSummary] {
        var items: [ItemSummary] = []
        for id in try scope.stored({ try store.changedIDs(limit: Int64(limit)) }) {
            if let item = try summary(of: id), !CollectionName.isHidden(item.collection) { items.append(item) }
        }
        return items
    }

    /// Returns the items that other devices have deleted and that are kept until the user approves, by collection and
    /// title.
    func heldDeletions() throws(VaultError) -> [HeldDeletion] {
        let held = try scope.stored { try store.heldDeletions() }
        var deletions: [HeldDeletion] = []
        for deletion in held {
            let title = try? item(deletion.id)?.title
            deletions.append(HeldDeletion(id: deletion.id, collection: deletion.collection, title: title))
        }
        return deletions.sorted {
            ($0.collection, $0.title ?? "", $0.id.description) < (
                $1.collection, $1.title ?? "", $1.id.description
            )
        }
    }

    /// Opens an item for a list.
    /// - Parameter allowed: The limit of an item, in sealed bytes; nil while it is unknown.
    private func summary(
        _ id: ItemID, _ content: ItemContent, _ sealer: any ItemSealing, isUnsent: Bool, allowed: Int64? = nil,
        removedAt: Date? = nil
    ) -> ItemSummary {
        let opened = try? sealer.open(content, id).item
        return ItemSummary(
            id: id, collection: content.collection, title: opened?.title, byteCount: opened?.body.count,
            isUnsent: isUnsent, shortage: isUnsent ? allowed.flatMap { content.shortage(allowed: $0) } : nil,
            removedAt: removedAt)
    }

    // MARK: Replaced versions

    /// Returns the replaced versions of an item, the latest first. Edits here, received versions and merges replace
    /// versions.
    func replacedVersions(of id: ItemID? = nil) throws(VaultError) -> [ReplacedVersion] {
        let sealer = try scope.sealer
        var versions: [ReplacedVersion] = []
        try scope.stored {
            try store.forEachReplaced(of: id) { version in
                guard let item = try? sealer.open(version.content, version.item).item else { return }
                versions.append(
                    ReplacedVersion(
                        number: version.number, item: version.item, collection: version.content.collection,
                        title: item.title, byteCount: item.body.count, replacedAt: version.replacedAt))
            }
        }
        return versions
    }

    /// Returns the content of a replaced version.
    func item(_ id: ItemID, replaced number: Int64) throws(VaultError) -> PlainItem {
        try replaced(id, number).item
    }

    /// Makes a replaced version the present one again, even of a deleted item. The replaced content is kept as a
    /// version.
    func restore(_ id: ItemID, replaced number: Int64) throws(VaultError) {
        let (item, collection) = try replaced(id, number)
        try put(item, id, in: collection)
    }

    private func replaced(_ id: ItemID, _ number: Int64) throws(VaultError) -> (item: PlainItem, collection: String) {
        let sealer = try scope.sealer
        guard let version = try scope.stored({ try store.replaced(number) }), version.item == id else {
            throw .notFound
        }
        guard let opened = try? sealer.open(version.content, id) else { throw .unreadable }
        return (opened.item, version.content.collection)
    }
}

extension ItemContent {
    /// Returns the exceeded limit; nil when the item is not too long.
    func shortage(allowed: Int64) -> PlanShortage? {
        PlanShortage(itemOf: Int64(body.bytes.count + (title?.bytes.count ?? 0)), allowed: allowed)
    }
}
