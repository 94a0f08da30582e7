internal import Cryptography
internal import Foundation

extension SyncEngine {
    /// Applies the decision of ``Reconciliation``, within the transaction of the page.
    /// - Parameter isSettled: True for a version of a shared vault that this device had before it last fetched the log.
    func apply(_ server: ItemState, into report: inout SyncReport, isSettled: Bool = false) throws {
        // The decision replaces that about an earlier version, or it sets this version aside again.
        if sealer.isOfVault {
            heldSince = try server.content.flatMap { try store.heldSince(server.id, $0) }
            try store.forgetSetAside(server.id)
        }
        defer { heldSince = nil }
        try forgetFormerVersion(before: server)
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
            try storeServerVersion(server, over: item, listing, into: &report)
        case .sendAgain: break
        case .remove, .keepAgainstDeletion, .bothDeleted:
            try storeTombstone(server.id, server.revision, into: &report)
        case .confirmed(let isDone):
            try confirm(server, isDone: isDone, change, listing)
        case .conflict:
            try resolve(server, item, change, listing, isSettled, into: &report)
        case .undoDeletion:
            if let change, let taken = resealed(server, change, item) { return try goOn(change, from: taken, listing) }
            if sealer.isOfVault, let change, let content = server.content, judged(server, content, over: item) == nil {
                return try goOnOverRefused(server, item, change, listing, isSettled, into: &report)
            }
            try store.forgetChange(server.id)
            try storeServerVersion(server, over: item, isDeletedHere: true, listing, into: &report)
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
                try store.trash(item, at: moment)
                report.changed.insert(id)
                report.removed.insert(id)
            }
            return try store.storeTombstone(id, deletion, at: moment)
        }
        if let content = change.content, change.isFirstEdit, (try? sealer.open(content, id))?.edit.isCopy == true {
            // Another device has made the same copy, and a user has deleted it there.
            try store.trash(StoredItem(id: id, revision: deletion, content: content, edit: change.edit), at: moment)
            try store.forgetChange(id)
            report.changed.insert(id)
            report.removed.insert(id)
            return try store.storeTombstone(id, deletion, at: moment)
        }
        // An edit above the deletion's number was made after it.
        let floor = SealedBox.Edit.floor(of: deletion)
        if change.base == nil, change.content != nil, change.edit > floor { return }
        try store.storeTombstone(id, deletion, at: moment)
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
        _ server: ItemState, over item: StoredItem?, isDeletedHere: Bool = false, _ listing: Int64,
        into report: inout SyncReport
    ) throws {
        guard let content = server.content else { return }
        guard let opened = judged(server, content, over: item) else {
            if !isDeletedHere, let item, let earlier = earlierVersion(server, content, than: item) {
                if isProvisional { return try leaveEarlier(server, item, listing) }
                // An edit that counts by itself is kept beside it. Its author had not seen the known version.
                let older = judged(server, content, over: nil)?.item
                return try pushBack(item, over: earlier, older, listing, into: &report)
            }
            return try keepSealed(server, over: item, listing, into: &report)
        }
        let theirs = stored(server, content, opened, over: item)
        if opened.edit.isCopy { try store.set(.copies, 1) }
        if let item, !item.isSealed, item.content != content {
            if try merge(item, intoRecord: theirs, opened, listing, into: &report) { return }
            // The author of a version that follows the known one has seen it.
            if try store.number(.comparing) != nil, !hasGivenWay(item),
                !sealer.follows(opened.edit, item.content, item.id)
            {
                return try keepBoth(item.content, theirs, listing, into: &report)
            }
            if isOutdated(theirs, by: item) {
                if !isDeletedHere { return try pushBack(item, over: theirs, opened.item, listing, into: &report) }
                try store.note(.rolledBack, item.id)
            }
        } else if let item, item.isSealed, !sealer.isOfVault, item.content != content,
            try store.number(.comparing) != nil
        {
            // This device cannot make a copy of it.
            try store.trash(item, at: moment)
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
            try store.number(.comparing) != nil || isOutdated(theirs, by: item),
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

    /// Returns a version of a shared vault's item whose author had an earlier log than that of the known one. A
    /// restored server has it. Members that do not have the known version accept it.
    private func earlierVersion(_ server: ItemState, _ content: ItemContent, than item: StoredItem) -> StoredItem? {
        guard sealer.canSeal, !item.isSealed, sealer.stillCounts(item),
            reasonPutAside(server, content, over: item)?.isEarlier ?? false,
            let edit = try? sealer.open(content, server.id).edit.number, edit <= item.edit
        else { return nil }
        return StoredItem(id: server.id, revision: server.revision, content: content, edit: edit)
    }

    /// Sends the known version again, as a later edit, because the server has an older one. The older one is kept
    /// beside it. It can be new content of a device that created the item again without the latest edit number.
    /// - Parameter older: The content of the older version; nil for one of which no copy is made.
    private func pushBack(
        _ item: StoredItem, over theirs: StoredItem, _ older: PlainItem?, _ listing: Int64,
        into report: inout SyncReport
    ) throws {
        var kept = item
        kept.revision = theirs.revision
        try store.put(kept, listing: listing)
        guard let known = try? sealer.open(item.content, item.id),
            let content = try? sealer.seal(
                known.item, item.id, collection: item.content.collection,
                sealer.next(known.edit, after: item.content, item.id))
        else { return try store.note(.rolledBack, item.id) }
        try store.record(item.id, content: content, edit: SealedBox.Edit.number(after: item.edit), isSame: true)
        guard let older, try !wasReplaced(theirs, by: known) else { return try store.note(.rolledBack, item.id) }
        // The same version gets the same copy on every device, so repeating it has no effect.
        let copy = sealer.copyID(of: theirs.content, theirs.id)
        guard known.item != older || item.content.collection != theirs.content.collection,
            let sealed = try? sealer.seal(
                older, copy, collection: theirs.content.collection, sealer.copy(of: theirs.content, theirs.id))
        else { return try store.note(.rolledBack, item.id) }
        let isKnown =
            try store.current(copy) != nil || store.item(copy) != nil || store.trashed(copy) != nil
            || store.tombstone(copy) != nil
        if !isKnown {
            try recordCopy(copy, sealed)
            report.changed.insert(copy)
        }
        try store.note(.rolledBack, item.id, other: copy)
    }

    /// Returns true for an edit of a shared vault that this device, or the author of the known version, has replaced. A
    /// copy of it would bring back content under the signature of another member.
    private func wasReplaced(_ theirs: StoredItem, by known: OpenedItem) throws -> Bool {
        guard sealer.isOfVault else { return false }
        if sealer.follows(known.edit, theirs.content, theirs.id) { return true }
        let sealer = sealer
        var isReplaced = false
        try store.forEachReplaced(of: theirs.id) { version in
            isReplaced = isReplaced || sealer.isSameEdit(version.content, as: theirs.content, theirs.id)
        }
        return isReplaced
    }

    /// Returns true when the unsent version is the known one, sent again.
    func isPushedBack(
        _ own: OpenedItem, _ collection: String, _ item: StoredItem
    ) -> Bool {
        sealer.follows(own.edit, item.content, item.id) && collection == item.content.collection
            && (try? sealer.open(item.content, item.id))?.item == own.item
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

    /// Resolves a conflict: changed on this device and on another one.
    private func resolve(
        _ server: ItemState, _ item: StoredItem?, _ change: LocalChange?, _ listing: Int64, _ isSettled: Bool,
        into report: inout SyncReport
    ) throws {
        guard var change, let content = server.content, let mine = change.content else { return }
        guard sealer.canSeal else { return try leaveConflict(server, item, listing) }
        guard let own = try? sealer.open(mine, server.id) else {
            return try keepUnreadable(server, item, listing, into: &report)
        }
        guard let theirs = judged(server, content, over: item) else {
            if sealer.isOfVault { return try goOnOverRefused(server, item, change, listing, isSettled, into: &report) }
            return try keepBesideUnreadable(server, item, own.item, mine, listing, into: &report)
        }
        let taken = stored(server, content, theirs, over: item)
        if theirs.edit.isCopy { try store.set(.copies, 1) }
        try forgetCopy(of: server.id, replacedBy: theirs.edit, into: &report)
        if let item, isOutdated(taken, by: item) { try store.note(.rolledBack, item.id) }
        if let item, isOutdated(taken, by: item), isPushedBack(own, mine.collection, item),
            try store.number(.comparing) == nil
        {
            // This device has no change of a user: the known version is sent again over this one, too.
            try store.forgetChange(server.id)
            return try pushBack(item, over: taken, theirs.item, listing, into: &report)
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
        if resealed(server, change, item) != nil {
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
        if try goOnFromLostBase(change, own.item, taken, theirs.edit, item, listing, into: &report) { return }
        try keepBoth(mine, taken, listing, into: &report)
    }

    /// Leaves a conflict until this device can seal. The version of the server is fetched again then.
    private func leaveConflict(_ server: ItemState, _ item: StoredItem?, _ listing: Int64) throws {
        try setAside(server, server.content.flatMap { reasonPutAside(server, $0, over: item) })
        guard let item else { return }
        try store.setListed(item.id, listing)
        try store.setBehind(item.id, server.revision)
    }

    /// Leaves a version whose author had an earlier log than the author of the known one. The known one can give way by
    /// the entries that are fetched next.
    private func leaveEarlier(_ server: ItemState, _ item: StoredItem?, _ listing: Int64) throws {
        try leaveConflict(server, item, listing)
        try store.set(.judgedBy, nil)
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

    /// Keeps a change of this device that cannot be opened: its key is missing, or the store is damaged. It can only be
    /// kept under its id, and must not replace content that others can read. So it stays on this device.
    private func keepUnreadable(
        _ server: ItemState, _ item: StoredItem?, _ listing: Int64, into report: inout SyncReport
    ) throws {
        guard let content = server.content else { return }
        try store.note(.unreadableChange, server.id)
        guard let theirs = judged(server, content, over: item) else {
            return try keepSealed(server, over: item, listing, into: &report)
        }
        let taken = stored(server, content, theirs, over: item)
        if let item, isOutdated(taken, by: item) { try store.note(.rolledBack, item.id) }
        try store.put(taken, listing: listing)
    }

    /// Returns true when the server has another version than the known one, and no later one. Each version that counts
    /// is later than one that has given way.
    private func isOutdated(_ theirs: StoredItem, by item: StoredItem) -> Bool {
        theirs.content != item.content && theirs.edit <= item.edit && !isKnown(theirs, as: item) && !hasGivenWay(item)
    }

    /// Returns true when the lists of managers do not have an accepted version.
    func hasGivenWay(_ item: StoredItem) -> Bool { sealer.rejection(of: item).map { !$0.isOpen } ?? false }

    /// Keeps an unreadable version, which a device with another key may have written, and makes a copy of the local
    /// change.
    private func keepBesideUnreadable(
        _ server: ItemState, _ item: StoredItem?, _ own: PlainItem, _ mine: ItemContent, _ listing: Int64,
        into report: inout SyncReport
    ) throws {
        let (copy, isKept) = try copyPlace(of: mine, server.id)
        let edit = sealer.copy(of: mine, server.id)
        guard let sealed = try? sealer.seal(own, copy, collection: mine.collection, edit) else { return }
        try store.forgetChange(server.id)
        try keepSealed(server, over: item, other: copy, listing, into: &report)
        if !isKept { try recordCopy(copy, sealed) }
        report.changed.formUnion([server.id, copy])
    }

    /// Continues a change of a shared vault's item over a version that does not count. While it may count later, the
    /// change waits.
    private func goOnOverRefused(
        _ server: ItemState, _ item: StoredItem?, _ change: LocalChange, _ listing: Int64, _ isSettled: Bool,
        into report: inout SyncReport
    ) throws {
        guard let content = server.content else { return }
        let reason = reasonPutAside(server, content, over: item)
        if isProvisional, reason?.isEarlier ?? false { return try leaveEarlier(server, item, listing) }
        if reason?.isOpen ?? isUnderUnknownKey(content), !isSettled || !sealer.needsEntries(content, reason) {
            return try leaveConflict(server, item, listing)
        }
        try keepSealed(server, over: item, listing, into: &report)
        try store.forgetSetAside(server.id)
        var change = change
        change.base = server.revision
        change.forgetWhatWasReplaced()
        try store.write(change, isSame: true)
    }

    /// Keeps the server's version under the id, and the local version under another.
    private func keepBoth(
        _ mine: ItemContent, _ theirs: StoredItem, _ listing: Int64, into report: inout SyncReport
    ) throws {
        guard let own = try? sealer.open(mine, theirs.id) else {
            // It can only be kept under this id.
            guard sealer.canWrite else { return try store.put(theirs, listing: listing) }
            try store.record(theirs.id, content: mine, edit: SealedBox.Edit.number(after: theirs.edit))
            try store.put(theirs, listing: listing)
            return try store.note(.unreadableChange, theirs.id)
        }
        try store.put(theirs, listing: listing)
        if let other = try? sealer.open(theirs.content, theirs.id).item, other == own.item,
            mine.collection == theirs.content.collection
        {
            return
        }
        guard sealer.canSeal else {
            // The known version is among the replaced ones.
            try store.note(.conflict, theirs.id)
            report.changed.insert(theirs.id)
            return
        }
        let (copy, isKept) = try copyPlace(of: mine, theirs.id)
        if !isKept {
            let edit = sealer.copy(of: mine, theirs.id)
            try recordCopy(copy, sealer.seal(own.item, copy, collection: mine.collection, edit))
        }
        try store.note(.conflict, theirs.id, other: copy)
        report.changed.formUnion([theirs.id, copy])
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
