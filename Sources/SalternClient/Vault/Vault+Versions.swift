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
        try items.replacedVersions(of: id)
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
        try items.item(id, replaced: number)
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
        try items.restore(id, replaced: number)
    }

    // MARK: Versions on the server

    /// Lists the versions of an item on the server, the latest first; empty for an item that it does not have.
    ///
    /// ```swift
    /// if let version = try await vault.serverVersions(of: id).first {
    ///     try await vault.restore(id, serverRevision: version.revision)
    /// }
    /// ```
    /// - Throws: ``APIError/unexpectedReply`` in ``VaultError/unavailable(_:)`` for a list that is not in order or does
    ///   not end.
    public func serverVersions(of id: ItemID) async throws(VaultError) -> [VersionHeader] {
        try await serverVersions.list(of: id)
    }

    /// Returns the content of a version on the server.
    ///
    /// ```swift
    /// if let version = try await vault.serverVersions(of: id).first {
    ///     print(try await vault.item(id, serverRevision: version.revision).title ?? "untitled")
    /// }
    /// ```
    /// - Throws: ``VaultError/notFound`` when there is no such version. ``VaultError/unreadable`` when the version
    ///   cannot be opened. ``APIError/unexpectedReply`` in ``VaultError/unavailable(_:)`` when it is another one.
    public func item(_ id: ItemID, serverRevision revision: Revision) async throws(VaultError) -> PlainItem {
        try await serverVersions.item(id, at: revision)
    }

    /// Makes a version of the server the present one, as a new edit of this device. The replaced content is kept as a
    /// version.
    ///
    /// ```swift
    /// if let version = try await vault.serverVersions(of: id).first {
    ///     try await vault.restore(id, serverRevision: version.revision)
    /// }
    /// ```
    /// - Throws: The errors of ``item(_:serverRevision:)``.
    public func restore(_ id: ItemID, serverRevision revision: Revision) async throws(VaultError) {
        try await serverVersions.restore(id, at: revision)
    }

    /// Fetches the versions of an item that this device does not have. They are stored with the versions that were
    /// replaced on this device, as far as the same limits leave room for them, and listed by ``replacedVersions(of:)``.
    /// They remove no other version: the server may never have had it.
    ///
    /// ```swift
    /// try await vault.fetchVersions(of: id)
    /// for version in try await vault.replacedVersions(of: id) { print(version.replacedAt) }
    /// ```
    @discardableResult
    public func fetchVersions(of id: ItemID) async throws(VaultError) -> VersionReport {
        try await serverVersions.fetch(of: id)
    }
}
