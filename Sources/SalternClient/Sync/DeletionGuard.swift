/// Holds deletions back when there are suddenly many: a server that was taken over, or another device gone wrong.
struct DeletionGuard {
    private let store: Store
    private let limit: Int
    /// Whether somebody has agreed to them all.
    private let isAgreed: Bool
    private var total: [String: Int] = [:]
    private var removed: [String: Int] = [:]

    init(_ store: Store, _ limits: SyncLimits, isAgreed: Bool) {
        self.store = store
        limit = limits.deletions
        self.isAgreed = isAgreed
    }

    /// Whether the page's deletions, with those before it in the same round, are few enough. While some wait for somebody, none
    /// are: what is changed here meanwhile must not make them few.
    mutating func permits(_ changes: [ItemState]) throws -> Bool {
        if isAgreed { return true }
        let isComparing = try store.number(.comparing) != nil
        var next = removed
        for change in changes where change.deleted {
            guard let item = try store.item(change.id),
                case .remove = Reconciliation.decide(
                    item: item, change: try store.change(change.id), server: change, isComparing: isComparing)
            else { continue }
            // That of the item, which is sealed with it: nothing vouches for the one that a tombstone names.
            next[item.content.collection, default: 0] += 1
        }
        if next != removed, try store.number(.held) != nil { return false }
        for (collection, count) in next where count > 0 {
            let all: Int
            if let known = total[collection] {
                all = known
            } else {
                all = try store.currentIDs(collection).count
                total[collection] = all
            }
            if count > limit || (all >= 10 && count * 3 > all) { return false }
        }
        removed = next
        return true
    }
}
