internal import Foundation

/// Items that have changed, and their present collections.
struct ItemChanges: Sendable {
    let ids: Set<ItemID>
    /// The present collection of each item that exists. Nil when the store cannot be read.
    let collections: [ItemID: String]?
    /// The owner of all of them.
    var owner = ItemOwner.account
}

/// Finds the changes of one collection, including items that were deleted or moved to another collection.
final class CollectionFilter: Sendable {
    private let collection: String
    private let owner: ItemOwner
    /// The ids in the collection. Nil when the store could not be read.
    private let known: Locked<Set<ItemID>?>

    init(_ collection: String, of owner: ItemOwner, known: Set<ItemID>?) {
        self.collection = collection
        self.owner = owner
        self.known = Locked(known)
    }

    /// Returns those of the changed items that are or were in the collection.
    func concerned(_ changes: ItemChanges) -> Set<ItemID> {
        if changes.owner != owner { return [] }
        return known.withLock { known in
            guard let collections = changes.collections, var ids = known else { return changes.ids }
            let concerned = changes.ids.filter { id in
                let isHere = collections[id] == collection
                return (isHere ? !ids.insert(id).inserted : ids.remove(id) != nil) || isHere
            }
            known = ids
            return concerned
        }
    }
}

extension Vault {
    /// Returns the ids of a collection's items that have changed, as ``changes()`` does for all collections. They were
    /// written, deleted, moved into the collection or out of it, by this device or by others. The sequence ends after a
    /// sign-out.
    ///
    /// ```swift
    /// for await ids in await vault.changes(in: "notes") {
    ///     for id in ids { show(try await notes[id]) }  // nil for a note that was deleted
    /// }
    /// ```
    public func changes(in collection: String) -> AsyncStream<Set<ItemID>> { changes(in: collection, of: .account) }

    func changes(in collection: String, of owner: ItemOwner) -> AsyncStream<Set<ItemID>> {
        let (stream, continuation) = AsyncStream.makeStream(
            of: Set<ItemID>.self, bufferingPolicy: .bufferingNewest(256))
        let filter = makeFilter(of: collection, owner)
        let id = observers.items.add(
            { changes in
                let ids = filter.concerned(changes)
                if !ids.isEmpty { continuation.yield(ids) }
            }, onEnd: { continuation.finish() })
        continuation.onTermination = { [observers] _ in observers.items.remove(id) }
        return stream
    }

    /// Returns the ids of an owner's changed items.
    nonisolated func changes(of owner: ItemOwner) -> AsyncStream<Set<ItemID>> {
        let (stream, continuation) = AsyncStream.makeStream(
            of: Set<ItemID>.self, bufferingPolicy: .bufferingNewest(256))
        let id = observers.items.add(
            { changes in if changes.owner == owner { continuation.yield(changes.ids) } },
            onEnd: { continuation.finish() })
        continuation.onTermination = { [observers] _ in observers.items.remove(id) }
        return stream
    }

    /// Returns a sequence with a value now, after each change in a collection, and each time the vault is locked or
    /// unlocked. Unread values are merged into one.
    /// - Parameter collection: Nil for all collections and every change of the ``state``.
    func nudges(in collection: String? = nil, of owner: ItemOwner = .account) -> AsyncStream<Void> {
        let (stream, nudge) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        nudge.yield()
        let filter = collection.map { makeFilter(of: $0, owner) }
        let change = observers.items.add(
            { changes in if filter?.concerned(changes).isEmpty != true { nudge.yield() } }, onEnd: { nudge.finish() })
        let state = observers.states.add(
            { state in if filter == nil || state.isAboutOpening { nudge.yield() } }, onEnd: { nudge.finish() })
        nudge.onTermination = { [observers] _ in
            observers.items.remove(change)
            observers.states.remove(state)
        }
        return stream
    }

    private func makeFilter(of collection: String, _ owner: ItemOwner) -> CollectionFilter {
        let known = (try? owners.parts(of: owner).scope.store.currentIDs(collection)).map { Set($0) }
        return CollectionFilter(collection, of: owner, known: known)
    }
}

extension SyncState {
    /// True for the state of a vault that was just locked, unlocked or signed out.
    fileprivate var isAboutOpening: Bool {
        switch self {
        case .idle, .locked, .signedOut: true
        case .syncing, .inStep, .failed: false
        }
    }
}
