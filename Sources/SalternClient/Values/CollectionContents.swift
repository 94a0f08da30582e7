/// The contents of a collection on this device.
public struct CollectionContents<Value> {
    /// The reason for which an item cannot be read.
    public enum Obstacle: Hashable, Sendable {
        /// The item cannot be opened under its id: its bytes were changed, or it is sealed with a key that this device
        /// lacks.
        case doesNotOpen
        /// The item can be opened and is not a value of this type: another version of the app may have written it. The
        /// error is in ``CollectionContents/decodingErrors``.
        case isOfAnotherType
        /// The item is not a value of this type and has a later schema than this version of the app (``ItemSchema``).
        case isOfLaterSchema(Int)
    }

    /// The items that can be read, in the requested order.
    public internal(set) var entries: [CollectionEntry<Value>] = []
    /// The items that can be read, by id.
    public internal(set) var items: [ItemID: Value] = [:]
    /// The titles of the items that can be read and have one.
    public internal(set) var titles: [ItemID: String] = [:]
    /// The errors of items that are not values of the type: a `DecodingError`, or the error of the migration.
    public internal(set) var decodingErrors: [ItemID: any Error] = [:]
    /// The items that cannot be read. They are kept and synced unchanged, and are not replaced by default. Show that
    /// they exist.
    public internal(set) var unreadable: [ItemID: Obstacle] = [:]

    /// The values of the items that can be read, in the requested order.
    public var values: [Value] { entries.map(\.value) }
}

extension CollectionContents: Sendable where Value: Sendable {}

/// An item of a collection in a list.
public struct CollectionEntry<Value>: Identifiable {
    /// The item's id.
    public let id: ItemID
    /// The title, which is sealed apart from the value; nil for an item without one.
    public let title: String?
    /// The value. An app can change it and write it back.
    ///
    /// ```swift
    /// guard var entry = try await notes.entry(id) else { return }
    /// entry.value.text = "Buy pepper."
    /// try await notes.put(entry.value, id, over: entry.version)
    /// ```
    public var value: Value
    /// The version that the value was read from, for ``VaultCollection/put(_:_:over:)`` and for comparisons. Nil only
    /// in an entry that the app has created itself.
    public let version: ItemVersion?

    /// Creates an entry, for a preview or a test of an app.
    ///
    /// ```swift
    /// let entry = CollectionEntry(id: .random(), title: nil, value: Note(text: "Buy salt."))
    /// ```
    public init(id: ItemID, title: String?, value: Value, version: ItemVersion? = nil) {
        self.id = id
        self.title = title
        self.value = value
        self.version = version
    }
}

extension CollectionEntry: Sendable where Value: Sendable {}
extension CollectionEntry: Equatable where Value: Equatable {}
extension CollectionEntry: Hashable where Value: Hashable {}

/// The order in which a collection's items are listed. Items that are equal in it are ordered by their ids, so that
/// repeated reads return one order.
///
/// ```swift
/// let newestFirst = CollectionOrder<Note>.by(\.modified, descending: true)
/// let longestFirst = CollectionOrder<Note> { $0.value.text.count > $1.value.text.count }
/// let contents = try await notes.contents(sorted: newestFirst)
/// ```
public struct CollectionOrder<Value> {
    private let precedes: (CollectionEntry<Value>, CollectionEntry<Value>) -> Bool

    /// Creates an order.
    /// - Parameter precedes: Returns true when the first entry comes before the second one. It has to be a strict weak
    ///   order, as for `sorted(by:)`.
    public init(_ precedes: @escaping (CollectionEntry<Value>, CollectionEntry<Value>) -> Bool) {
        self.precedes = precedes
    }

    /// The order of the titles. Items without a title are at the end.
    public static var byTitle: Self {
        Self { left, right in
            guard let title = left.title else { return false }
            return right.title.map { title < $0 } ?? true
        }
    }

    /// Returns the order of a property of the values.
    ///
    /// ```swift
    /// for await contents in notes.observe(sorted: .by(\.text)) { show(contents.values) }
    /// ```
    /// - Parameter descending: True for the greatest one first.
    public static func by<Key: Comparable>(_ key: @escaping (Value) -> Key, descending: Bool = false) -> Self {
        Self { left, right in
            descending ? key(right.value) < key(left.value) : key(left.value) < key(right.value)
        }
    }

    func sort(_ entries: [CollectionEntry<Value>]) -> [CollectionEntry<Value>] {
        entries.sorted { left, right in
            if precedes(left, right) { return true }
            return !precedes(right, left) && left.id < right.id
        }
    }
}
