internal import Cryptography
internal import Foundation

/// The items of one collection as values of one type, as JSON inside of what is sealed.
public struct VaultCollection<Value: Codable & Sendable>: Sendable {
    /// The name, which the server sees: `[a-z0-9-]{1,32}`.
    public let name: String
    let vault: Vault

    /// Every item, by id.
    public func all() async throws(VaultError) -> [ItemID: Value] {
        var values: [ItemID: Value] = [:]
        for (id, item) in try await vault.items(name) { values[id] = try Self.value(item) }
        return values
    }

    /// One item; nil when there is none.
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
    /// - Parameter seen: The version that the person has changed; see ``Vault/put(_:_:in:over:)``.
    /// - Returns: Where it was written.
    @discardableResult
    public func put(
        _ value: Value, _ id: ItemID = .random(), title: String? = nil, over seen: ItemVersion? = nil
    ) async throws(VaultError) -> ItemID {
        let encoder = JSONEncoder()
        // The same value is the same bytes, so that writing it again is no change.
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        guard let data = try? encoder.encode(value) else { throw .unreadable }
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
