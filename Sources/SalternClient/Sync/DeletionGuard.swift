internal import Foundation

/// Holds deletions back when there are suddenly many, for example of a hostile server or a faulty device. Deletions of
/// the last hour are counted together, over all rounds.
struct DeletionGuard {
    private let store: Store
    private let limit: Int
    private let agreement: DeletionAgreement
    private let moment: Date
    private var total: [String: Int] = [:]
    private var removed: [String: Int] = [:]

    init(_ store: Store, _ limits: SyncLimits, _ agreement: DeletionAgreement, at moment: Date) {
        self.store = store
        limit = limits.deletions
        self.agreement = agreement
        self.moment = moment
    }

    /// Returns the deletions of a page that have to wait. In a collection with waiting deletions, all wait: local
    /// changes must not lower their share.
    mutating func held(among changes: [ItemState]) throws -> Set<ItemID> {
        let isComparing = try store.number(.comparing) != nil
        var deletions: [String: [ItemID]] = [:]
        for change in changes where change.deleted {
            guard let item = try store.item(change.id),
                case .remove = Reconciliation.decide(
                    item: item, change: try store.change(change.id), server: change, isComparing: isComparing)
            else { continue }
            // The item's collection, which is sealed with it. The collection of a tombstone is not authenticated.
            deletions[item.content.collection, default: []].append(change.id)
        }
        var held: Set<ItemID> = []
        for (collection, ids) in deletions where !agreement.includes(collection) {
            let (total, before) = try state(of: collection)
            let count = before + ids.count
            if try store.holdsDeletions(in: collection) || isTooMany(count, of: total) {
                held.formUnion(ids)
            } else {
                try store.noteDeletions(.collection(collection), from: total - before, at: moment)
                removed[collection] = count
            }
        }
        return held
    }

    /// Returns the number of items that the collection had before the deletions of the last hour, and the number of
    /// items that were removed since.
    private mutating func state(of collection: String) throws -> (total: Int, removed: Int) {
        if let total = total[collection], let removed = removed[collection] { return (total, removed) }
        let now = try store.currentIDs(collection).count
        let loss = try store.recentLoss(.collection(collection), to: now, at: moment)
        (total[collection], removed[collection]) = (now + loss, loss)
        return (now + loss, loss)
    }

    private func isTooMany(_ count: Int, of total: Int) -> Bool {
        count > limit || (total >= 10 && count * 3 > total)
    }
}

/// The deletions of other devices that the user has approved.
enum DeletionAgreement: Sendable {
    case none
    case all
    case collections(Set<String>)

    func includes(_ collection: String) -> Bool {
        switch self {
        case .none: false
        case .all: true
        case .collections(let names): names.contains(collection)
        }
    }
}
