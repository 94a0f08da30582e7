extension VaultCollection {
    /// Returns the contents now, and again after each change in the collection and each time the vault is unlocked.
    /// While it is locked the sequence pauses. A slow reader receives only the last contents. The sequence ends after a
    /// sign-out.
    ///
    /// The vault stays open as long as the sequence is read. Values are decoded in the reader's isolation, so in a
    /// view's task on the main actor.
    ///
    /// ```swift
    /// for await contents in notes.observe(sorted: .by(\.text)) {
    ///     show(contents.entries)
    /// }
    /// ```
    /// - Parameter order: The order of ``CollectionContents/entries``.
    public func observe(sorted order: CollectionOrder<Value> = .byTitle) -> CollectionUpdates<Value> {
        CollectionUpdates(collection: self, order: order)
    }
}

/// The contents of a collection, now and after each change: see ``VaultCollection/observe(sorted:)``.
public struct CollectionUpdates<Value: Codable>: AsyncSequence {
    public typealias Element = CollectionContents<Value>

    let collection: VaultCollection<Value>
    let order: CollectionOrder<Value>

    /// Iterates over the contents.
    public struct AsyncIterator: AsyncIteratorProtocol {
        fileprivate let collection: VaultCollection<Value>
        fileprivate let order: CollectionOrder<Value>
        private var nudges: AsyncStream<Void>?

        fileprivate init(_ updates: CollectionUpdates<Value>) {
            collection = updates.collection
            order = updates.order
        }

        /// Returns the next contents; nil after a sign-out or when the task was cancelled.
        public mutating func next() async -> CollectionContents<Value>? {
            // The subscription begins before the first contents are read, so that no later change is missed.
            let nudges: AsyncStream<Void>
            if let begun = self.nudges {
                nudges = begun
            } else {
                nudges = await collection.vault.nudges(in: collection.name)
                self.nudges = nudges
            }
            while await Self.next(of: nudges) != nil {
                // While the vault is locked there are no contents until it is unlocked.
                if let contents = try? await collection.contents(sorted: order) { return contents }
            }
            return nil
        }

        /// Returns the next element. All iterators of such a stream take from the same elements.
        private static func next(of nudges: AsyncStream<Void>) async -> Void? {
            var iterator = nudges.makeAsyncIterator()
            return await iterator.next()
        }
    }

    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(self) }
}
