internal import Cryptography
internal import Foundation

extension SyncEngine {
    /// Carries out what ``Reconciliation`` decides, within the transaction of the page.
    func apply(_ server: ItemState, into report: inout SyncReport) throws {
        let item = try store.item(server.id)
        let change = try store.change(server.id)
        let listing = try store.number(.listing) ?? 0
        let isComparing = try server.deleted && store.number(.comparing) != nil
        switch Reconciliation.decide(item: item, change: change, server: server, isComparing: isComparing) {
        case .nothing:
            if server.deleted {
                try storeTombstone(server.id, server.revision, into: &report)
            } else {
                try store.setListed(server.id, listing)
            }
        case .take:
            try take(server, over: item, listing, into: &report)
        case .sendAgain: break
        case .remove, .keepAgainstDeletion, .bothDeleted:
            try storeTombstone(server.id, server.revision, into: &report)
        case .confirmed(let isDone):
            try confirm(server, isDone: isDone, change, listing)
        case .conflict:
            try resolve(server, item, change, listing, into: &report)
        case .undoDeletion:
            if let change, let taken = resealed(server, change) { return try goOn(change, from: taken, listing) }
            try store.forgetChange(server.id)
            try take(server, over: item, isDeletedHere: true, listing, into: &report)
            try store.note(.deletionUndone, server.id)
        }
    }

    /// The server has a tombstone: what nobody has changed here goes to the trash, and a change creates the item again.
    func storeTombstone(_ id: ItemID, _ deletion: Revision, into report: inout SyncReport) throws {
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
            // Another device has made the same copy, and there somebody has deleted it.
            try store.trash(StoredItem(id: id, revision: deletion, content: content, edit: change.edit), at: moment)
            try store.forgetChange(id)
            report.changed.insert(id)
            report.removed.insert(id)
            return try store.storeTombstone(id, deletion, at: moment)
        }
        // What is sealed above the deletion was made by who knew of it.
        let floor = SealedBox.Edit.floor(of: deletion)
        if change.base == nil, change.content != nil, change.edit > floor { return }
        try store.storeTombstone(id, deletion, at: moment)
        guard let content = change.content else { return try store.forgetChange(id) }
        if change.base != nil || change.sent != nil { try store.note(.keptAfterDeletion, id) }
        // Others may hold later edits than this one, from before the deletion: for them it has to come after those.
        if change.edit <= floor, let own = try? sealer.open(content, id) {
            let edit = own.edit.creating(after: content.body.bytes, deletedAt: deletion)
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

    /// Takes the server's version, unless it does not open or is older than what is known.
    /// - Parameter isDeletedHere: Whether a person has deleted the item that is known.
    private func take(
        _ server: ItemState, over item: StoredItem?, isDeletedHere: Bool = false, _ listing: Int64,
        into report: inout SyncReport
    ) throws {
        guard let content = server.content else { return }
        guard let opened = try? sealer.open(content, server.id) else {
            return try keepSealed(server, over: item, listing, into: &report)
        }
        let theirs = StoredItem(
            id: server.id, revision: server.revision, content: content, edit: opened.edit.number)
        if opened.edit.isCopy { try store.set(.copies, 1) }
        if let item, !item.isSealed, item.content != content {
            // Of what was made of the known version its author has seen that one.
            if try store.number(.comparing) != nil, !opened.edit.follows(item.content.body.bytes) {
                return try keepBoth(item.content, theirs, listing, into: &report)
            }
            if isOutdated(theirs, opened.item, by: item) {
                if !isDeletedHere { return try pushBack(item, over: theirs, opened.item, listing, into: &report) }
                try store.note(.rolledBack, item.id)
            }
        } else if let item, item.isSealed, item.content != content, try store.number(.comparing) != nil {
            // Nobody here can make a copy of it.
            try store.trash(item, at: moment)
        }
        if item?.isSealed ?? true, let known = try store.tombstone(server.id)?.edit, theirs.edit < known {
            try store.note(.rolledBack, server.id)
        }
        // Nothing in a body says whether there is a title beside it.
        if let item, !item.isSealed, item.content.title != nil, content.title == nil {
            try store.note(.titleMissing, server.id)
        }
        try store.put(theirs, listing: listing, opened: opened.item.body, isSame: isSame(theirs, opened.item, as: item))
        report.changed.insert(server.id)
        report.removed.remove(server.id)
    }

    /// Returns whether a version has the content and the collection of the known one.
    private func isSame(_ theirs: StoredItem, _ content: PlainItem, as item: StoredItem?) -> Bool {
        guard let item, item.content.collection == theirs.content.collection else { return false }
        return (try? sealer.open(item.content, item.id))?.item == content
    }

    /// The server has an older version than is known: the known one is sent again, as a later edit. The older one is kept
    /// beside it, for what looks old can be new: of a device that created the item again without knowing how far it was.
    private func pushBack(
        _ item: StoredItem, over theirs: StoredItem, _ older: PlainItem, _ listing: Int64,
        into report: inout SyncReport
    ) throws {
        var kept = item
        kept.revision = theirs.revision
        try store.put(kept, listing: listing)
        guard let known = try? sealer.open(item.content, item.id),
            let content = try? sealer.seal(
                known.item, item.id, collection: item.content.collection,
                known.edit.next(after: item.content.body.bytes))
        else { return try store.note(.rolledBack, item.id) }
        try store.record(item.id, content: content, edit: SealedBox.Edit.number(after: item.edit), isSame: true)
        // The same version again, here or on another device, is the same copy: a server that repeats it gains nothing.
        let copy = theirs.content.copyID(of: theirs.id)
        guard known.item != older || item.content.collection != theirs.content.collection,
            let sealed = try? sealer.seal(
                older, copy, collection: theirs.content.collection, .copy(of: theirs.content.body.bytes))
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

    /// Whether what is unsent is the known version, sent again.
    private func isPushedBack(
        _ own: (item: PlainItem, edit: SealedBox.Edit), _ collection: String, _ item: StoredItem
    ) -> Bool {
        own.edit.follows(item.content.body.bytes) && collection == item.content.collection
            && (try? sealer.open(item.content, item.id))?.item == own.item
    }

    private func confirm(
        _ server: ItemState, isDone: Bool, _ change: LocalChange?, _ listing: Int64
    ) throws {
        guard let change, let content = server.content else { return }
        var confirmed = StoredItem(
            id: server.id, revision: server.revision, content: content, edit: change.edit)
        if isDone {
            try store.put(confirmed, listing: listing)
            return try store.forgetChange(server.id)
        }
        if let opened = try? sealer.open(content, server.id) { confirmed.edit = opened.edit.number }
        try goOn(change, from: confirmed, listing)
    }

    /// Changed here and there.
    private func resolve(
        _ server: ItemState, _ item: StoredItem?, _ change: LocalChange?, _ listing: Int64,
        into report: inout SyncReport
    ) throws {
        guard var change, let content = server.content, let mine = change.content else { return }
        guard let own = try? sealer.open(mine, server.id) else {
            return try keepUnreadable(server, item, listing, into: &report)
        }
        guard let theirs = try? sealer.open(content, server.id) else {
            return try keepBesideUnreadable(server, item, own.item, mine, listing, into: &report)
        }
        let taken = StoredItem(
            id: server.id, revision: server.revision, content: content, edit: theirs.edit.number)
        if theirs.edit.isCopy { try store.set(.copies, 1) }
        try forgetCopy(of: server.id, replacedBy: theirs.edit, into: &report)
        if let item, isOutdated(taken, theirs.item, by: item) { try store.note(.rolledBack, item.id) }
        if let item, isOutdated(taken, theirs.item, by: item), isPushedBack(own, mine.collection, item),
            try store.number(.comparing) == nil
        {
            // Nobody has changed anything here: the known version is sent again over this one, too.
            try store.forgetChange(server.id)
            return try pushBack(item, over: taken, theirs.item, listing, into: &report)
        }
        if own.edit.follows(content.body.bytes) {
            // It was sent from here, and its reply came too late to be awaited.
            return try goOn(change, from: taken, listing)
        }
        report.changed.insert(server.id)
        // What another device has made the same copy of, somebody has seen and changed there.
        let isEarlier = theirs.edit.follows(mine.body.bytes) || change.isFirstEdit && own.edit.isCopy
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
        let previous = theirs.edit.next(after: content.body.bytes).previous
        var next: PlainItem?
        if resealed(server, change) != nil {
            next = own.item
        } else if mine.collection == content.collection {
            let base = change.baseContent.flatMap { base in
                try? sealer.open(
                    ItemContent(
                        collection: content.collection, format: mine.format, title: base.title, body: base.body),
                    server.id)
            }
            // One edit that changes nothing is a wish, too: somebody has put that version back.
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

    /// Returns a merged item unless it is too long to be sent: then both versions are kept.
    private func fitting(_ merged: PlainItem) throws -> PlainItem? {
        merged.shortage(allowed: try store.number(.itemBytes) ?? .max) == nil ? merged : nil
    }

    /// The change goes on from what the server has.
    /// - Parameter isSame: Whether the change says what it said before.
    private func goOn(_ change: LocalChange, from taken: StoredItem, _ listing: Int64, isSame: Bool = false) throws {
        var change = change
        try store.put(taken, listing: listing)
        change.base = taken.revision
        change.baseContent = (taken.content.title?.bytes, taken.content.body.bytes)
        change.forgetWhatWasReplaced()
        try store.write(change, isSame: isSame)
    }

    /// What was changed here does not open: its key is missing, or the store is damaged. It can be kept under its own id
    /// only, and must not go over what others can read, so it stays on this device; see ``isSendable(_:)``.
    private func keepUnreadable(
        _ server: ItemState, _ item: StoredItem?, _ listing: Int64, into report: inout SyncReport
    ) throws {
        guard let content = server.content else { return }
        try store.note(.unreadableChange, server.id)
        guard let theirs = try? sealer.open(content, server.id) else {
            return try keepSealed(server, over: item, listing, into: &report)
        }
        let taken = StoredItem(
            id: server.id, revision: server.revision, content: content, edit: theirs.edit.number)
        if let item, isOutdated(taken, theirs.item, by: item) { try store.note(.rolledBack, item.id) }
        try store.put(taken, listing: listing)
    }

    /// Whether the server has another version than the known one, and none that was made later.
    private func isOutdated(_ theirs: StoredItem, _ content: PlainItem, by item: StoredItem) -> Bool {
        theirs.content != item.content && theirs.edit <= item.edit && !isKnown(theirs, content, as: item)
    }

    /// What cannot be read may be of somebody who has a key that this device lacks: it stays as it is.
    private func keepBesideUnreadable(
        _ server: ItemState, _ item: StoredItem?, _ own: PlainItem, _ mine: ItemContent, _ listing: Int64,
        into report: inout SyncReport
    ) throws {
        let (copy, isKept) = try copyPlace(of: mine, server.id)
        let edit = SealedBox.Edit.copy(of: mine.body.bytes)
        guard let sealed = try? sealer.seal(own, copy, collection: mine.collection, edit) else { return }
        try store.forgetChange(server.id)
        try keepSealed(server, over: item, other: copy, listing, into: &report)
        if !isKept { try recordCopy(copy, sealed) }
        report.changed.formUnion([server.id, copy])
    }

    /// The server's version stays under the id; one's own goes on under another.
    private func keepBoth(
        _ mine: ItemContent, _ theirs: StoredItem, _ listing: Int64, into report: inout SyncReport
    ) throws {
        guard let own = try? sealer.open(mine, theirs.id) else {
            // It can be kept under this id only.
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
        let (copy, isKept) = try copyPlace(of: mine, theirs.id)
        if !isKept {
            let edit = SealedBox.Edit.copy(of: mine.body.bytes)
            try recordCopy(copy, sealer.seal(own.item, copy, collection: mine.collection, edit))
        }
        try store.note(.conflict, theirs.id, other: copy)
        report.changed.formUnion([theirs.id, copy])
    }
}

extension PlainItem {
    /// Whether what another version has changed is the same here.
    fileprivate func has(_ other: PlainItem, since base: PlainItem) -> Bool {
        (other.hasTitle(base.title) || other.hasTitle(title)) && (other.body == base.body || other.body == body)
    }
}

extension LocalChange {
    /// Whether it creates an item with its first edit.
    fileprivate var isFirstEdit: Bool { base == nil && content != nil && edit == 1 }

    /// It goes on from another revision. What others may have seen of it they may have seen still, unless it is sealed anew.
    fileprivate mutating func forgetWhatWasReplaced() { if !wasSent { sent = nil } }
}
