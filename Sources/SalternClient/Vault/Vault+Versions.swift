internal import Cryptography
public import Foundation

/// A version of an item that another one has replaced on this device.
public struct ReplacedVersion: Hashable, Sendable {
    /// The number of the version on this device, as long as it is kept.
    public let number: Int64
    /// The id of the item.
    public let item: ItemID
    /// The collection that the item was in.
    public let collection: String
    /// The title of the version; nil when it has none.
    public let title: String?
    /// The length of the body, in bytes.
    public let byteCount: Int
    /// The time at which another version replaced it, by the clock of this device.
    public let replacedAt: Date
}

/// Replaced versions are kept like deleted items: on this device, for 30 days. Versions that were replaced in quick
/// succession are thinned out. Each item keeps at most 32 of them, with 64 MiB.
extension Vault {
    /// Returns the replaced versions of an item, the latest first. Edits here, received versions and merges replace
    /// versions.
    ///
    /// Example: "Edit" in docs/app.md.
    /// - Parameter id: Nil for all items, including deleted ones.
    public func replacedVersions(of id: ItemID? = nil) throws(VaultError) -> [ReplacedVersion] {
        let sealer = try open.engine.sealer
        var versions: [ReplacedVersion] = []
        try stored {
            try store.forEachReplaced(of: id) { version in
                guard let item = try? sealer.open(version.content, version.item).item else { return }
                versions.append(
                    ReplacedVersion(
                        number: version.number, item: version.item, collection: version.content.collection,
                        title: item.title, byteCount: item.body.count, replacedAt: version.replacedAt))
            }
        }
        return versions
    }

    /// Returns the content of a replaced version.
    ///
    /// ```swift
    /// for version in try await vault.replacedVersions(of: id) {
    ///     print(try await vault.item(id, replaced: version.number).title ?? "untitled")
    /// }
    /// ```
    /// - Throws: ``VaultError/notFound`` when the item has no such version.
    public func item(_ id: ItemID, replaced number: Int64) throws(VaultError) -> PlainItem {
        try replaced(id, number).item
    }

    /// Makes a replaced version the present one again, even of a deleted item. The replaced content is kept as a
    /// version.
    ///
    /// ```swift
    /// if let version = try await vault.replacedVersions(of: id).first {
    ///     try await vault.restore(id, replaced: version.number)
    /// }
    /// ```
    /// - Throws: ``VaultError/notFound`` when the item has no such version.
    public func restore(_ id: ItemID, replaced number: Int64) throws(VaultError) {
        let (item, collection) = try replaced(id, number)
        try put(item, id, in: collection)
    }

    private func replaced(_ id: ItemID, _ number: Int64) throws(VaultError) -> (item: PlainItem, collection: String) {
        let sealer = try open.engine.sealer
        guard let version = try stored({ try store.replaced(number) }), version.item == id else { throw .notFound }
        guard let opened = try? sealer.open(version.content, id) else { throw .unreadable }
        return (opened.item, version.content.collection)
    }
}
