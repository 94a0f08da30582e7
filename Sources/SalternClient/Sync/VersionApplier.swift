internal import Cryptography
internal import Foundation

/// Applies versions and tombstones of the server to the store, and resolves conflicts with changes of this device.
final class VersionApplier {
    private let context: SyncContext
    private let store: Store
    private let copies: VersionCopies
    private let refused: RefusedVersions
    /// Merges two versions; nil keeps both.
    private let merge: MergeRule?
    private var judge: VersionJudge

    init(
        _ context: SyncContext, _ judge: VersionJudge, _ copies: VersionCopies, _ refused: RefusedVersions,
        merge: MergeRule?
    ) {
        self.context = context
        store = context.store
        self.judge = judge
        self.copies = copies
        self.refused = refused
        self.merge = merge
    }

    private var sealer: any ItemSealing { context.sealer }

    /// Applies the decision of ``Reconciliation``, within the transaction of the page.
    /// - Parameters:
    ///   - isProvisional: True while the log of a shared vault can have later entries, which are fetched next.
    ///   - isSettled: True for a version of a shared vault that this device had before it last fetched the log.
    func apply(
        _ server: ItemState, isProvisional: Bool, isSettled: Bool = false, into report: inout SyncReport
    ) throws {
        // The decision replaces that about an earlier version, or it sets this version aside again.
        if sealer.isOfVault {
            judge.heldSince = try server.content.flatMap { try store.heldSince(server.id, $0) }
            try store.forgetSetAside(server.id)
        }
        defer { judge.heldSince = nil }
        try refused.forgetFormerVersion(before: server)
        let item = try store.item(server.id)
        let change = try store.change(server.id)
        let listing = try store.number(.listing) ?? 0
        let isComparing = try server.deleted && store.number(.comparing) != nil
        let decision = Reconciliation.decide(item: item, change: change, server: server, isComparing: isComparing)
        switch decision {
        case .nothing:
            if server.deleted {
                try storeTombstone(server.id, server.revision, into: &report)
            } else {
                try store.setListed(server.id, listing)
            }
        case .take:
            try storeServerVersion(server, over: item, isProvisional: isProvisional, listing, into: &report)
        case .sendAgain: break
        case .remove, .keepAgainstDeletion, .bothDeleted:
            try storeTombstone(server.id, server.revision, into: &report)
        case .confirmed(let isDone):
            try confirm(server, isDone: isDone, change, listing)
        case .conflict:
            try resolve(server, item, change, listing, isProvisional, isSettled, into: &report)
        case .undoDeletion:
            if let change, let taken = judge.resealed(server, change, item) {
                return try goOn(change, from: taken, listing)
            }
            if sealer.isOfVault, let change, let content = server.content,
                judge.judged(server, content, over: item) == nil
            {
                return try goOnOverRefused(server, item, change, listing, isProvisional, isSettled, into: &report)
            }
            try store.forgetChange(server.id)
            try storeServerVersion(
                server, over: item, isProvisional: isProvisional, isDeletedHere: true, listing, into: &report)
            try store.note(.deletionUndone, server.id)
        }
    }

    /// Applies a tombstone of the server. An item without a local change goes to the trash; a change creates the item
    /// again.
    func storeTombstone(_ id: ItemID, _ deletion: Revision, into report: inout SyncReport) throws {
        if sealer.isOfVault { try store.forgetSetAside(id) }
        let item = try store.item(id)
        guard var change = try store.change(id) else {
            if let item {
                try store.trash(item, at: context.moment)
                report.changed.insert(id)
                report.removed.insert(id)
            }
            return try store.storeTombstone(id, deletion, at: context.moment)
        }
        if let content = change.content, change.isFirstEdit, (try? sealer.open(content, id))?.edit.isCopy == true {
            // Another device has made the same copy, and a user has deleted it there.
            try store.trash(
                StoredItem(id: id, revision: deletion, content: content, edit: change.edit), at: context.moment)
            try store.forgetChange(id)
            report.changed.insert(id)
            report.removed.insert(id)
            return try store.storeTombstone(id, deletion, at: context.moment)
        }
        // An edit above the deletion's number was made after it.
        let floor = SealedBox.Edit.floor(of: deletion)
        if change.base == nil, change.content != nil, change.edit > floor { return }
        try store.storeTombstone(id, deletion, at: context.moment)
        guard let content = change.content else { return try store.forgetChange(id) }
        if change.base != nil || change.sent != nil { try store.note(.keptAfterDeletion, id) }
        // Other devices may have later edits from before the deletion. The new edit must follow those.
        if change.edit <= floor, let own = try? sealer.open(content, id) {
            let edit = sealer.creating(own.edit, after: content, id, deletedAt: deletion)
            if let sealed = try? sealer.seal(own.item, id, collection: content.collection, edit) {
                change.content = sealed
                change.edit = edit.number
            }
        }
        change.base = nil
        change.baseContent = nil
        change.forgetWhatWasReplaced()
        try store.write(change, isSame: true)
    }

    /// Stores the server's version, unless it cannot be opened or is older than the known one.
    /// - Parameter isDeletedHere: True when the user has deleted the known item on this device.
    private func storeServerVersion(
        _ server: ItemState, over item: StoredItem?, isProvisional: Bool, isDeletedHere: Bool = false,
        _ listing: Int64, into report: inout SyncReport
    ) throws {
        guard let content = server.content else { return }
        guard let opened = judge.judged(server, content, over: item) else {
            if !isDeletedHere, let item, let earlier = earlierVersion(server, content, than: item) {
                if isProvisional { return try leaveEarlier(server, item, listing) }
                // An edit that counts by itself is kept beside it. Its author had not seen the known version.
                let older = judge.judged(server, content, over: nil)?.item
                return try copies.pushBack(item, over: earlier, older, listing, into: &report)
            }
            return try keepSealed(server, over: item, listing, into: &report)
        }
        let theirs = judge.stored(server, content, opened, over: item)
        if opened.edit.isCopy { try store.set(.copies, 1) }
        if let item, !item.isSealed, item.content != content {
            if try merge(item, intoRecord: theirs, opened, listing, into: &report) { return }
            // The author of a version that follows the known one has seen it.
            if try store.number(.comparing) != nil, !judge.hasGivenWay(item),
                !sealer.follows(opened.edit, item.content, item.id)
            {
                return try copies.keepBoth(item.content, theirs, listing, into: &report)
            }
            if judge.isOutdated(theirs, by: item) {
                if !isDeletedHere {
                    return try copies.pushBack(item, over: theirs, opened.item, listing, into: &report)
                }
                try store.note(.rolledBack, item.id)
            }
        } else if let item, item.isSealed, !sealer.isOfVault, item.content != content,
            try store.number(.comparing) != nil
        {
            // This device cannot make a copy of it.
            try store.trash(item, at: context.moment)
        }
        if item?.isSealed ?? true, let known = try store.tombstone(server.id)?.edit, theirs.edit < known {
            try store.note(.rolledBack, server.id)
        }
        // A body does not reveal if the item has a title.
        if let item, !item.isSealed, item.content.title != nil, content.title == nil {
            try store.note(.titleMissing, server.id)
        }
        try store.put(theirs, listing: listing, opened: opened.item.body, isSame: isSame(theirs, opened.item, as: item))
        report.changed.insert(server.id)
        report.removed.remove(server.id)
    }

    /// Merges the known version of a membership record into the server's, if the server's does not follow it. A
    /// restored server has an earlier one. A copy under another id would be no record.
    /// - Returns: False for other items, and for a version that replaces the known one.
    private func merge(
        _ item: StoredItem, intoRecord theirs: StoredItem, _ opened: OpenedItem, _ listing: Int64,
        into report: inout SyncReport
    ) throws -> Bool {
        let collection = MembershipRecord.collection
        guard !sealer.isOfVault, item.content.collection == collection, theirs.content.collection == collection,
            !sealer.follows(opened.edit, item.content, item.id),
            try store.number(.comparing) != nil || judge.isOutdated(theirs, by: item),
            let known = try? sealer.open(item.content, item.id),
            let merged = MembershipRecord.merge(known.item, opened.item)
        else { return false }
        let number = SealedBox.Edit.number(after: max(item.edit, theirs.edit))
        let previous = sealer.next(opened.edit, after: theirs.content, item.id).previous
        let sealed = try? sealer.seal(
            merged, item.id, collection: collection, SealedBox.Edit(number: number, previous: previous))
        guard let sealed else { return false }
        try store.put(theirs, listing: listing)
        if merged != opened.item { try store.record(item.id, content: sealed, edit: number) }
        report.changed.insert(item.id)
        return true
    }

    /// Returns true when a version has the content and the collection of the known one.
    private func isSame(_ theirs: StoredItem, _ content: PlainItem, as item: StoredItem?) -> Bool {
        guard let item, item.content.collection == theirs.content.collection else { return false }
        return (try? sealer.open(item.content, item.id))?.item == content
    }

    /// Returns a version of a shared vault's item by an author with an earlier log than that of the known one. A
    /// restored server has it. Members that do not have the known version accept it.
    private func earlierVersion(_ server: ItemState, _ content: ItemContent, than item: StoredItem) -> StoredItem? {
        guard sealer.canSeal, !item.isSealed, sealer.stillCounts(item),
            judge.reasonPutAside(server, content, over: item)?.isEarlier ?? false,
            let edit = try? sealer.open(content, server.id).edit.number, edit <= item.edit
        else { return nil }
        return StoredItem(id: server.id, revision: server.revision, content: content, edit: edit)
    }

    private func confirm(
        _ server: ItemState, isDone: Bool, _ change: LocalChange?, _ listing: Int64
    ) throws {
        guard let change, let content = server.content else { return }
        var confirmed = StoredItem(
            id: server.id, revision: server.revision, content: content, edit: change.edit,
            judgedAt: sealer.judgedAt(ofSent: content, server.id))
        if isDone, isFinal(change) {
            try store.put(confirmed, listing: listing)
            return try store.forgetChange(server.id)
        }
        if let opened = try? sealer.open(content, server.id) { confirmed.edit = opened.edit.number }
        try goOn(change, from: confirmed, listing)
    }

    /// Returns true when the server's copy of a change is the one that other members accept. An entry can have cut its
    /// signature off since it was sent; then it is sent again.
    private func isFinal(_ change: LocalChange) -> Bool {
        guard sealer.isOfVault, let content = change.content else { return true }
        switch sealer.unsentForm(of: content, change.id, wasSent: true) {
        case .present: return true
        case .other(let other, _): return sealer.isSameEdit(other, as: content, change.id)
        case .none: return !sealer.canSeal
        }
    }

    // MARK: Conflicts

    /// Resolves a conflict: changed on this device and on another one.
    private func resolve(
        _ server: ItemState, _ item: StoredItem?, _ change: LocalChange?, _ listing: Int64, _ isProvisional: Bool,
        _ isSettled: Bool, into report: inout SyncReport
    ) throws {
        guard var change, let content = server.content, let mine = change.content else { return }
        guard sealer.canSeal else { return try leaveConflict(server, item, listing) }
        guard let own = try? sealer.open(mine, server.id) else {
            return try keepUnreadable(server, item, listing, into: &report)
        }
        guard let theirs = judge.judged(server, content, over: item) else {
            if sealer.isOfVault {
                return try goOnOverRefused(server, item, change, listing, isProvisional, isSettled, into: &report)
            }
            return try keepBesideUnreadable(server, item, own.item, mine, listing, into: &report)
        }
        let taken = judge.stored(server, content, theirs, over: item)
        if theirs.edit.isCopy { try store.set(.copies, 1) }
        try copies.forgetCopy(of: server.id, replacedBy: theirs.edit, into: &report)
        if let item, judge.isOutdated(taken, by: item) { try store.note(.rolledBack, item.id) }
        if let item, judge.isOutdated(taken, by: item), judge.isPushedBack(own, mine.collection, item),
            try store.number(.comparing) == nil
        {
            // This device has no change of a user: the known version is sent again over this one, too.
            try store.forgetChange(server.id)
            return try copies.pushBack(item, over: taken, theirs.item, listing, into: &report)
        }
        if sealer.follows(own.edit, content, server.id) {
            // This device has sent it, and its reply arrived too late.
            return try goOn(change, from: taken, listing)
        }
        report.changed.insert(server.id)
        // When another device has made the same copy, a user has seen and changed it there.
        let isEarlier = sealer.follows(theirs.edit, mine, server.id) || change.isFirstEdit && own.edit.isCopy
        if isEarlier || own.item == theirs.item && mine.collection == content.collection {
            if mine.title != nil, content.title == nil { try store.note(.titleMissing, server.id) }
            if own.item != theirs.item || mine.collection != content.collection {
                try store.keepReplaced(server.id, mine, edit: change.edit)
            }
            try store.put(taken, listing: listing)
            return try store.forgetChange(server.id)
        }
        let hadTitle = item?.content.title != nil || change.baseContent?.title != nil
        if hadTitle, content.title == nil { try store.note(.titleMissing, server.id) }
        let number = SealedBox.Edit.number(after: max(change.edit, theirs.edit.number))
        let previous = sealer.next(theirs.edit, after: content, server.id).previous
        var next: PlainItem?
        if judge.resealed(server, change, item) != nil {
            next = own.item
        } else if mine.collection == content.collection {
            let base = change.baseContent.flatMap { base in
                try? sealer.open(
                    ItemContent(
                        collection: content.collection, format: mine.format, title: base.title, body: base.body),
                    server.id)
            }
            // A single edit without a change is intentional: a user has restored that version.
            if let base, theirs.edit.number == SealedBox.Edit.number(after: base.edit.number), theirs.item != base.item,
                own.item.has(theirs.item, since: base.item)
            {
                next = own.item
            } else {
                next = try merge?(mine.collection, base?.item, own.item, theirs.item).flatMap(fitting)
            }
        }
        if let next,
            let sealed = try? sealer.seal(
                next, server.id, collection: mine.collection, SealedBox.Edit(number: number, previous: previous))
        {
            if next != theirs.item { try store.keepReplaced(server.id, content, edit: theirs.edit.number) }
            change.content = sealed
            change.edit = number
            return try goOn(change, from: taken, listing, isSame: next == own.item)
        }
        try store.forgetChange(server.id)
        if try copies.goOnFromLostBase(change, own.item, taken, theirs.edit, item, listing, into: &report) { return }
        try copies.keepBoth(mine, taken, listing, into: &report)
    }

    /// Returns a merged item unless it is too long to be sent. In that case both versions are kept.
    private func fitting(_ merged: PlainItem) throws -> PlainItem? {
        merged.shortage(allowed: try store.number(.itemBytes) ?? .max) == nil ? merged : nil
    }

    /// Continues the change from the server's version.
    /// - Parameter isSame: True when the content of the change is the same.
    private func goOn(_ change: LocalChange, from taken: StoredItem, _ listing: Int64, isSame: Bool = false) throws {
        var change = change
        try store.put(taken, listing: listing)
        change.base = taken.revision
        change.baseContent = (taken.content.title?.bytes, taken.content.body.bytes)
        change.forgetWhatWasReplaced()
        try store.write(change, isSame: isSame)
    }

    /// Continues a change of a shared vault's item over a version that does not count. While it may count later, the
    /// change waits.
    private func goOnOverRefused(
        _ server: ItemState, _ item: StoredItem?, _ change: LocalChange, _ listing: Int64, _ isProvisional: Bool,
        _ isSettled: Bool, into report: inout SyncReport
    ) throws {
        guard let content = server.content else { return }
        let reason = judge.reasonPutAside(server, content, over: item)
        if isProvisional, reason?.isEarlier ?? false { return try leaveEarlier(server, item, listing) }
        if reason?.isOpen ?? judge.isUnderUnknownKey(content), !isSettled || !sealer.needsEntries(content, reason) {
            return try leaveConflict(server, item, listing)
        }
        try keepSealed(server, over: item, listing, into: &report)
        try store.forgetSetAside(server.id)
        var change = change
        change.base = server.revision
        change.forgetWhatWasReplaced()
        try store.write(change, isSame: true)
    }

    /// Leaves a conflict until this device can seal. The version of the server is fetched again then.
    private func leaveConflict(_ server: ItemState, _ item: StoredItem?, _ listing: Int64) throws {
        try setAside(server, server.content.flatMap { judge.reasonPutAside(server, $0, over: item) })
        guard let item else { return }
        try store.setListed(item.id, listing)
        try store.setBehind(item.id, server.revision)
    }

    /// Leaves a version by an author with an earlier log than the author of the known one. The known one can give way
    /// by the entries that are fetched next.
    private func leaveEarlier(_ server: ItemState, _ item: StoredItem?, _ listing: Int64) throws {
        try leaveConflict(server, item, listing)
        try store.set(.judgedBy, nil)
    }

    // MARK: Versions that do not count

    /// Keeps a change of this device that cannot be opened: its key is missing, or the store is damaged. It can only be
    /// kept under its id, and must not replace content that others can read. So it stays on this device.
    private func keepUnreadable(
        _ server: ItemState, _ item: StoredItem?, _ listing: Int64, into report: inout SyncReport
    ) throws {
        guard let content = server.content else { return }
        try store.note(.unreadableChange, server.id)
        guard let theirs = judge.judged(server, content, over: item) else {
            return try keepSealed(server, over: item, listing, into: &report)
        }
        let taken = judge.stored(server, content, theirs, over: item)
        if let item, judge.isOutdated(taken, by: item) { try store.note(.rolledBack, item.id) }
        try store.put(taken, listing: listing)
    }

    /// Keeps an unreadable version, which a device with another key may have written, and makes a copy of the local
    /// change.
    private func keepBesideUnreadable(
        _ server: ItemState, _ item: StoredItem?, _ own: PlainItem, _ mine: ItemContent, _ listing: Int64,
        into report: inout SyncReport
    ) throws {
        let (copy, isKept) = try copies.copyPlace(of: mine, server.id)
        let edit = sealer.copy(of: mine, server.id)
        guard let sealed = try? sealer.seal(own, copy, collection: mine.collection, edit) else { return }
        try store.forgetChange(server.id)
        try keepSealed(server, over: item, other: copy, listing, into: &report)
        if !isKept { try copies.recordCopy(copy, sealed) }
        report.changed.formUnion([server.id, copy])
    }

    /// Stores a version that cannot be opened, because its key may arrive, or omits one that does not count.
    ///
    /// If a version is known, that one stays instead, with its revision. A change of it then conflicts with the
    /// unreadable version, and does not replace it. In a shared vault nothing opens the stored version before it is
    /// judged.
    /// - Parameter other: The copy with the local change.
    private func keepSealed(
        _ server: ItemState, over item: StoredItem?, other: ItemID? = nil, _ listing: Int64,
        into report: inout SyncReport
    ) throws {
        guard let content = server.content else { return }
        let reason = judge.reasonPutAside(server, content, over: item)
        // An entry of the log or a key that is missing may arrive within the same sync.
        let isUndecided = sealer.isOfVault && (reason?.isOpen ?? judge.isUnderUnknownKey(content))
        if !isUndecided || other != nil { try store.note(.unreadable, server.id, other: other) }
        if !sealer.isOfVault {
            if judge.isUnderUnknownKey(content) { try store.set(.unread, 1) }
        } else if reason?.mayPass ?? judge.isUnderUnknownKey(content) {
            try setAside(server, reason)
        }
        if let item, !item.isSealed {
            try store.setListed(item.id, listing)
            return try store.setBehind(item.id, server.revision)
        }
        report.changed.insert(server.id)
        // A version that does not count is no item.
        if reason != nil { return try store.removeItem(server.id) }
        var kept = content
        if sealer.isOfVault { kept.format = SealedBox.unjudgedFormat }
        try store.put(StoredItem(id: server.id, revision: server.revision, content: kept, edit: 0), listing: listing)
    }

    /// Records that the server's version of an item does not count yet. A later entry can cut its author off, and then
    /// it matters that this device had the version before.
    private func setAside(_ server: ItemState, _ reason: PutAsideReason?) throws {
        var author: ItemAuthor?
        if reason?.awaitsSeal ?? false, let content = server.content {
            author = try? sealer.open(content, server.id).author
        }
        let isHeld = reason.map { $0.lacksEntry || $0.isEarlier } ?? true
        let since = judge.heldSince ?? (isHeld ? sealer.head : nil)
        try store.setAside(
            server.id, server.revision, awaitingSealOf: author?.member,
            held: server.content.flatMap { content in since.map { (content, $0) } })
    }
}

extension PlainItem {
    /// Returns true when this item contains all changes of another version.
    fileprivate func has(_ other: PlainItem, since base: PlainItem) -> Bool {
        (other.hasTitle(base.title) || other.hasTitle(title)) && (other.body == base.body || other.body == body)
    }
}

extension LocalChange {
    /// True when the change creates an item with its first edit.
    fileprivate var isFirstEdit: Bool { base == nil && content != nil && edit == 1 }

    /// Prepares the change for another base revision. The record of sent content stays only if it is still the content.
    fileprivate mutating func forgetWhatWasReplaced() { if !wasSent { sent = nil } }
}
