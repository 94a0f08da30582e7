internal import Cryptography
internal import Foundation

/// The items of one collection as values of one type, as JSON inside of what is sealed.
public struct VaultCollection<Value: Codable & Sendable>: Sendable {
    /// The name, which the server sees: `[a-z0-9-]{1,32}`.
    public let name: String
    let vault: Vault

    /// What a list shows: the items that can be read, and beside them those that cannot, each with the reason.
    public func contents() async throws(VaultError) -> CollectionContents<Value> {
        let (items, sealed) = try await vault.items(name)
        var contents = CollectionContents<Value>()
        for id in sealed { contents.unreadable[id] = .doesNotOpen }
        for (id, item) in items {
            do throws(VaultError) { contents.items[id] = try Self.value(item) } catch {
                contents.unreadable[id] = .isOfAnotherType
            }
        }
        return contents
    }

    /// Every item, by id: for who needs them all, as an export does. A list takes ``contents()``.
    /// - Throws: ``VaultError/unreadable`` when there is one that cannot be read.
    public func all() async throws(VaultError) -> [ItemID: Value] {
        let contents = try await contents()
        guard contents.unreadable.isEmpty else { throw .unreadable }
        return contents.items
    }

    /// One item; nil when there is none.
    /// - Throws: ``VaultError/unreadable`` when it cannot be read.
    public subscript(_ id: ItemID) -> Value? {
        get async throws(VaultError) {
            guard let item = try await vault.item(id) else { return nil }
            return try Self.value(item)
        }
    }

    private static func value(_ item: PlainItem) throws(VaultError) -> Value {
        let data = item.body.withUnsafeBytes { Data($0) }
        do { return try JSONDecoder().decode(Value.self, from: data) } catch { throw .unreadable }
    }

    /// Writes an item, a new one unless an id is given.
    /// - Parameter seen: The version that the person has changed; see ``Vault/put(_:_:in:over:)``. With it, an item of
    ///   another type can be written over.
    /// - Returns: Where it was written.
    /// - Throws: ``VaultError/unreadable`` when what is there under the id cannot be read: nobody can have seen what would
    ///   be lost.
    @discardableResult
    public func put(
        _ value: Value, _ id: ItemID = .random(), title: String? = nil, over seen: ItemVersion? = nil
    ) async throws(VaultError) -> ItemID {
        let encoder = JSONEncoder()
        // The same value is the same bytes, so that writing it again is no change.
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        guard let data = try? encoder.encode(value) else { throw .unreadable }
        if seen == nil { _ = try await self[id] }
        return try await vault.put(
            PlainItem(title: title, body: SecureBytes(copying: [UInt8](data))), id, in: name, over: seen)
    }

    /// Which version of an item there is here; nil when there is none.
    public func version(of id: ItemID) async throws(VaultError) -> ItemVersion? { try await vault.version(of: id) }

    public func delete(_ id: ItemID) async throws(VaultError) { try await vault.delete(id) }

    public func restore(_ id: ItemID) async throws(VaultError) { try await vault.restore(id) }
}

extension Vault {
    /// The items of a collection as values of one type.
    public nonisolated func collection<Value>(_ name: String, of type: Value.Type = Value.self) -> VaultCollection<
        Value
    > {
        VaultCollection(name: name, vault: self)
    }
}

/// Which version of an item somebody has seen.
public struct ItemVersion: Hashable, Sendable {
    let digest: [UInt8]
}
