/// Several edits that are stored together (``Vault/apply(_:)``).
///
/// ```swift
/// var edits = VaultEdits()
/// let id = edits.put(List(name: "Shopping"), in: lists)
/// edits.put(Note(text: "Buy salt.", list: id), in: notes)
/// edits.delete(draft)
/// try await vault.apply(edits)
/// ```
public struct VaultEdits {
    enum Edit {
        /// - `make`: Returns the new item for the present one; nil where there is none.
        case put(ItemID, collection: String, over: ItemVersion?, make: (PlainItem?) throws -> PlainItem)
        case delete(ItemID)
    }

    private(set) var edits: [Edit] = []

    /// Creates an empty list of edits.
    public init() {}

    /// The number of edits.
    public var count: Int { edits.count }

    /// True when there are no edits.
    public var isEmpty: Bool { edits.isEmpty }

    /// Adds the writing of an item, with the rules of ``VaultCollection/put(_:_:over:)``.
    ///
    /// ```swift
    /// edits.put(note, id, in: vault.collection("notes"))
    /// ```
    /// - Returns: The id of the item.
    @discardableResult
    public mutating func put<Value>(
        _ value: Value, _ id: ItemID = .random(), in collection: VaultCollection<Value>, over seen: ItemVersion? = nil
    ) -> ItemID {
        edits.append(.put(id, collection: collection.name, over: seen) { try collection.item(value, over: $0, seen) })
        return id
    }

    /// Adds the writing of an item with a title; nil removes the present title.
    ///
    /// ```swift
    /// edits.put(note, id, title: "Shopping", in: notes)
    /// ```
    /// - Returns: The id of the item.
    @discardableResult
    public mutating func put<Value>(
        _ value: Value, _ id: ItemID = .random(), title: String?, in collection: VaultCollection<Value>,
        over seen: ItemVersion? = nil
    ) -> ItemID {
        edits.append(
            .put(id, collection: collection.name, over: seen) { before in
                PlainItem(title: title, body: try collection.item(value, over: before, seen).body)
            })
        return id
    }

    /// Adds the writing of an item, with the rules of ``Vault/put(_:_:in:over:)``.
    ///
    /// ```swift
    /// edits.put(PlainItem(body: attachment.body()), id, in: "files")
    /// ```
    public mutating func put(
        _ item: PlainItem, _ id: ItemID, in collection: String, over seen: ItemVersion? = nil
    ) {
        edits.append(.put(id, collection: collection, over: seen) { _ in item })
    }

    /// Adds the deletion of an item. A missing item is not an error.
    ///
    /// ```swift
    /// for id in selection { edits.delete(id) }
    /// ```
    public mutating func delete(_ id: ItemID) { edits.append(.delete(id)) }
}
