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
