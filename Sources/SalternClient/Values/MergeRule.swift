internal import Cryptography

/// Merges two versions that were made from the same one.
///
/// Returns nil when they cannot be merged. In that case both are kept.
public typealias MergeRule =
    @Sendable (_ collection: String, _ base: PlainItem?, _ mine: PlainItem, _ theirs: PlainItem) -> PlainItem?

extension VaultSettings {
    /// Sets the function that merges two versions of an item in one collection. Members that the type does not contain
    /// are kept. If both versions have changed one of those, both versions are kept.
    ///
    /// Example: "Conflicts" in docs/app.md.
    /// - Parameter rule: Returns one value for two that were made from the same one, or nil to keep both. The first
    ///   value is their common base, if it is known.
    public mutating func merge<Value: Codable & Sendable>(
        _ collection: String, of type: Value.Type = Value.self, schema: ItemSchema<Value> = ItemSchema(),
        _ rule: @escaping @Sendable (_ base: Value?, _ mine: Value, _ theirs: Value) -> Value?
    ) {
        collectionMerges[collection] = { _, base, mine, theirs in schema.merge(base, mine, theirs, rule) }
    }

    /// The rule of all collections. Members that the general rule drops are kept, too.
    var mergeRule: MergeRule? {
        let (general, particular) = (merge, collectionMerges)
        if general == nil, particular.isEmpty { return nil }
        return { collection, base, mine, theirs in
            if let rule = particular[collection] { return rule(collection, base, mine, theirs) }
            guard let merged = general?(collection, base, mine, theirs) else { return nil }
            return merged.carrying(base, mine, theirs)
        }
    }
}

extension PlainItem {
    /// Returns a merged item, with the members that the merge has dropped. Both versions have those members, or one has
    /// added them. A merge that has chosen one version, or is not a JSON object, is not changed.
    fileprivate func carrying(_ base: PlainItem?, _ mine: PlainItem, _ theirs: PlainItem) -> PlainItem {
        guard body != mine.body, body != theirs.body, let tree = tree, tree.members != nil, let own = mine.tree,
            let other = theirs.tree,
            let merged = try? UnknownMembers(prefersTheirs: true).merge(
                tree, base: base?.tree.map { .init(tree: $0) }, mine: .init(tree: own), theirs: .init(tree: other)),
            merged != tree
        else { return self }
        return PlainItem(title: title, body: SecureBytes(copying: merged.text))
    }

    private var tree: JSONTree? { JSONTree(body.withUnsafeBytes { [UInt8]($0) }) }
}
