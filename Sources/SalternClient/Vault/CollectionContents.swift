/// What a collection holds on this device.
public struct CollectionContents<Value: Sendable>: Sendable {
    /// Why an item cannot be read.
    public enum Obstacle: Hashable, Sendable {
        /// It does not open under its own id: its bytes were changed, or it is sealed with a key that this device lacks.
        case doesNotOpen
        /// It opens and is no value of this type: another version of the app may have written it.
        case isOfAnotherType
    }

    /// The items that can be read, by id.
    public internal(set) var items: [ItemID: Value] = [:]
    /// Those that cannot. They are kept and synced as they are, and nothing is written over them unasked: show that they
    /// are there.
    public internal(set) var unreadable: [ItemID: Obstacle] = [:]
}
