internal import Foundation

/// The observers of one kind of event.
final class Observers<Value: Sendable>: Sendable {
    private struct Observer: Sendable {
        let onValue: @Sendable (Value) -> Void
        let onEnd: @Sendable () -> Void
    }

    /// Nil after the last value.
    private let observers = Locked<[UUID: Observer]?>([:])

    /// Starts a stream with all values after this call.
    /// - Parameters:
    ///   - count: The maximum number of values that wait for a slow reader; the newest are kept.
    ///   - first: An initial value.
    func add(keeping count: Int = 256, beginningWith first: Value? = nil) -> AsyncStream<Value> {
        add(keeping: count, beginningWith: first) { $0 }
    }

    /// Starts a stream of a part of each value.
    func add<Part: Sendable>(
        keeping count: Int = 256, beginningWith first: Part? = nil, _ part: @escaping @Sendable (Value) -> Part
    ) -> AsyncStream<Part> {
        let (stream, continuation) = AsyncStream.makeStream(of: Part.self, bufferingPolicy: .bufferingNewest(count))
        if let first { continuation.yield(first) }
        let id = add({ continuation.yield(part($0)) }, onEnd: { continuation.finish() })
        continuation.onTermination = { [weak self] _ in self?.remove(id) }
        return stream
    }

    /// Calls a function with each value until ``remove(_:)``.
    /// - Parameter onEnd: Is called after the last value. If there are no more values, it is called immediately.
    func add(_ onValue: @escaping @Sendable (Value) -> Void, onEnd: @escaping @Sendable () -> Void) -> UUID {
        let id = UUID()
        let hasEnded = observers.withLock { observers in
            observers?[id] = Observer(onValue: onValue, onEnd: onEnd)
            return observers == nil
        }
        if hasEnded { onEnd() }
        return id
    }

    func remove(_ id: UUID) { _ = observers.withLock { $0?.removeValue(forKey: id) } }

    func notify(_ value: Value) {
        // Outside of the lock, because a stream that has just ended calls back.
        for observer in observers.withLock({ Array(($0 ?? [:]).values) }) { observer.onValue(value) }
    }

    /// Ends all streams, including later ones.
    func end() {
        let observers = observers.withLock { $0.take() } ?? [:]
        for observer in observers.values { observer.onEnd() }
    }
}

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
