/// The contents of a collection on this device.
public struct CollectionContents<Value> {
    /// Why an item cannot be read.
    public enum Obstacle: Hashable, Sendable {
        /// It does not open under its own id: its bytes were changed, or it is sealed with a key that this device lacks.
        case doesNotOpen
        /// It opens and is no value of this type: another version of the app may have written it. The reason is in
        /// ``CollectionContents/decodingErrors``.
        case isOfAnotherType
        /// The same, and it names a later schema than this version of the app has (``ItemSchema``).
        case isOfLaterSchema(Int)
    }

    /// The items that can be read, in the order that the reader has asked for.
    public internal(set) var entries: [CollectionEntry<Value>] = []
    /// The items that can be read, by id.
    public internal(set) var items: [ItemID: Value] = [:]
    /// The titles of the items that can be read, for those that have one.
    public internal(set) var titles: [ItemID: String] = [:]
    /// Why items are no values of the type: a `DecodingError`, or what the migration has thrown.
    public internal(set) var decodingErrors: [ItemID: any Error] = [:]
    /// Those that cannot. They are kept and synced as they are, and nothing is written over them unasked: show that they
    /// are there.
    public internal(set) var unreadable: [ItemID: Obstacle] = [:]

    /// The values of the items that can be read, in the order that the reader has asked for.
    public var values: [Value] { entries.map(\.value) }
}

extension CollectionContents: Sendable where Value: Sendable {}
