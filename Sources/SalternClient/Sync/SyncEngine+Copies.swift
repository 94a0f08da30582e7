internal import Cryptography

/// Copies of versions, kept beside what the server has: after a restore each device makes the same ones.
extension SyncEngine {
    /// Where a version goes on beside the server's, and whether it is there already. Everything that is compared after a
    /// restore other devices hold, too: each makes the same copy, and who edits or deletes that one has seen it.
    func copyPlace(of version: ItemContent, _ id: ItemID) throws -> (id: ItemID, isKept: Bool) {
        guard try store.number(.comparing) != nil else { return (newID(), false) }
        let copy = version.copyID(of: id)
        guard let there = try store.current(copy) ?? store.trashed(copy)?.content ?? store.item(copy)?.content else {
            // A tombstone of what was never here is the server's word.
            return (try store.grave(copy) == nil ? copy : newID(), false)
        }
        return (try? sealer.open(there, copy)) == nil ? (newID(), false) : (copy, true)
    }

    /// Copies that the server has lost with the restore that they were made after, and whose versions are back with another.
    func pointlessCopies(_ listing: Int64) throws -> Set<ItemID> {
        var copies: [[UInt8]: ItemID] = [:]
        for item in try store.unlisted(listing) where try item.edit == 1 && store.change(item.id) == nil {
            if let edit = try? sealer.open(item.content, item.id).edit, edit.isCopy { copies[edit.previous] = item.id }
        }
        if copies.isEmpty { return [] }
        var pointless: Set<ItemID> = []
        try store.forEachBody(listed: listing) { body in
            if let copy = copies[SHA256.hash(body).bytes] { pointless.insert(copy) }
        }
        return pointless
    }

    /// The copy of a version that another device has made and sent.
    func keptCopy(of version: ItemContent, _ id: ItemID) throws -> ItemID? {
        guard let copy = try store.item(version.copyID(of: id)), try store.change(copy.id) == nil,
            let own = try? sealer.open(version, id), let kept = try? sealer.open(copy.content, copy.id),
            own.item == kept.item, version.collection == copy.content.collection
        else { return nil }
        return copy.id
    }

    /// What was sent from here, and lost when the database went back, others may have kept beside what the server has now,
    /// also after it was compared here: a version that they have kept is not sent once more.
    func forgetKeptElsewhere(into report: inout SyncReport) throws {
        var last: Int64 = 0
        while true {
            let changes = try store.changes(limit: limits.batch, byteLimit: limits.batchBytes, after: last)
            guard let end = changes.last?.sequence else { return }
            last = end
            for change in changes where change.wasSent {
                guard let mine = change.content, let item = try store.item(change.id),
                    let copy = try keptCopy(of: mine, change.id)
                else { continue }
                try store.forgetChange(change.id)
                try store.note(.conflict, item.id, other: copy)
                report.changed.insert(item.id)
            }
        }
    }
}

extension ItemContent {
    /// Where a copy of this very version of an item is: the same on every device.
    func copyID(of id: ItemID) -> ItemID {
        let name = Array("saltern-1 copy".utf8) + id.bytes + body.bytes
        return ItemID(bytes: SHA256.hash(name).bytes.prefix(16)) ?? .random()
    }
}
