internal import Foundation

/// The result of ``Vault/fetchVersions(of:)``.
public struct VersionReport: Hashable, Sendable {
    /// Versions that this device has now and did not have before.
    public internal(set) var fetched = 0
    /// Versions of the server that do not open here, or are not what they are listed as. Nothing of them is shown.
    public internal(set) var refused = 0

    /// Creates an empty report.
    public init() {}
}

/// Older versions that the server keeps. A device that was not there when an item was changed gets them from here; the
/// versions that each device keeps itself (``Vault/replacedVersions(of:)``) do not need the network.
///
/// Every version is checked before it is used. Its seal names account, item and collection, so the server can show no
/// other item's content. The number of its edit is sealed too: it has to be lower than that of the content which has
/// replaced it here, so a present or later content is not accepted as an older one. A version becomes the present content
/// only as a new edit of this device.
extension Vault {
    private static let versionPageLimit = 100

    /// The versions of an item that the server keeps, the latest first; none of an item that it does not have.
    ///
    /// ```swift
    /// if let version = try await vault.serverVersions(of: id).first {
    ///     try await vault.restore(id, serverRevision: version.revision)
    /// }
    /// ```
    /// - Throws: ``APIError/unexpectedReply`` in ``VaultError/unavailable(_:)`` for a list that is not in order or does not
    ///   end.
    public func serverVersions(of id: ItemID) async throws(VaultError) -> [VersionHeader] {
        let token = try open.token
        var versions: [VersionHeader] = []
        var next: String?
        for _ in 0..<Self.versionPageLimit {
            let page: VersionPage
            do throws(APIError) {
                page = try await settings.retries({ [next] () throws(APIError) in
                    try await api.listVersions(id, limit: 500, page: next, token)
                })
            } catch {
                if error.code == .notFound { return [] }
                throw VaultError(error)
            }
            guard page.versions.count <= 500 else { break }
            for version in page.versions {
                if let last = versions.last, last.revision <= version.revision { throw .unavailable(.unexpectedReply) }
                versions.append(version)
            }
            guard let following = page.nextPage else { return versions }
            if following == next || page.versions.isEmpty { break }
            next = following
        }
        throw .unavailable(.unexpectedReply)
    }

    /// Returns the content of a version that the server keeps.
    ///
    /// ```swift
    /// if let version = try await vault.serverVersions(of: id).first {
    ///     print(try await vault.item(id, serverRevision: version.revision).title ?? "untitled")
    /// }
    /// ```
    /// - Throws: ``VaultError/notFound`` when it keeps no such version, ``VaultError/unreadable`` when the version does not
    ///   open, ``APIError/unexpectedReply`` in ``VaultError/unavailable(_:)`` when it is another one.
    public func item(_ id: ItemID, serverRevision revision: Revision) async throws(VaultError) -> PlainItem {
        try await serverVersion(id, revision).item
    }

    /// Makes a version that the server keeps the present one, as a new edit of this device. The present one is kept like
    /// every version that is replaced.
    ///
    /// ```swift
    /// if let version = try await vault.serverVersions(of: id).first {
    ///     try await vault.restore(id, serverRevision: version.revision)
    /// }
    /// ```
    /// - Throws: What ``item(_:serverRevision:)`` throws.
    public func restore(_ id: ItemID, serverRevision revision: Revision) async throws(VaultError) {
        let version = try await serverVersion(id, revision)
        try put(version.item, id, in: version.content.collection)
    }

    /// Fetches those versions of an item that the server keeps and this device does not have. They are kept here like the
    /// versions that were replaced on this device, within the same limits, and listed by ``replacedVersions(of:)``.
    ///
    /// ```swift
    /// try await vault.fetchVersions(of: id)
    /// for version in try await vault.replacedVersions(of: id) { print(version.replacedAt) }
    /// ```
    @discardableResult
    public func fetchVersions(of id: ItemID) async throws(VaultError) -> VersionReport {
        let listed = try await serverVersions(of: id)
        let known = try stored { try store.replacedRevisions(of: id) }
        var report = VersionReport()
        var bytes: Int64 = 0
        var later = UInt64.max
        var found: [(header: VersionHeader, version: ServerVersion)] = []
        for header in listed.prefix(Store.versionLimit) where !known.contains(header.revision.number) {
            bytes += max(header.bytes, 0)
            if bytes > Store.versionByteLimit { break }
            let version: ServerVersion
            do throws(VaultError) {
                version = try await serverVersion(id, header.revision)
            } catch {
                switch error {
                case .notFound: continue
                case .unreadable, .unavailable(.unexpectedReply): report.refused += 1
                default: throw error
                }
                continue
            }
            // The list goes back in time, and so do the edits.
            guard version.edit < later else {
                report.refused += 1
                continue
            }
            later = version.edit
            found.append((header, version))
        }
        // From the earliest on, so that versions of one second have their numbers in order.
        for (header, version) in found.reversed() {
            try stored {
                if try !store.hasReplaced(id, version.content) { report.fetched += 1 }
                try store.keepReplaced(
                    id, version.content, edit: version.edit, revision: header.revision, at: header.replacedAt)
            }
        }
        return report
    }

    /// A version of the server that was checked.
    private struct ServerVersion {
        let content: ItemContent
        let item: PlainItem
        let edit: UInt64
    }

    private func serverVersion(_ id: ItemID, _ revision: Revision) async throws(VaultError) -> ServerVersion {
        let opened = try open
        let state: ItemState
        do throws(APIError) {
            state = try await settings.retries({ () throws(APIError) in
                try await api.getVersion(id, revision, opened.token)
            })
        } catch {
            throw error.code == .notFound ? .notFound : VaultError(error)
        }
        guard state.id == id, state.revision == revision, let content = state.content else {
            throw .unavailable(.unexpectedReply)
        }
        guard let version = try? opened.engine.sealer.open(content, id) else { throw .unreadable }
        let found = ServerVersion(content: content, item: version.item, edit: version.edit.number)
        try checkOrder(of: found, id, revision, opened.engine.sealer)
        return found
    }

    /// Compares a version with what is known of its item here: an earlier revision holds an earlier edit, and one revision
    /// one content.
    private func checkOrder(
        of version: ServerVersion, _ id: ItemID, _ revision: Revision, _ sealer: Sealer
    ) throws(VaultError) {
        guard let known = try stored({ try store.item(id) }), !known.isSealed else { return }
        if revision < known.revision, version.edit < known.edit { return }
        if revision > known.revision, version.edit > known.edit { return }
        // After a deletion and a restoration, a later revision holds the same content.
        if revision >= known.revision, version.edit == known.edit,
            (try? sealer.open(known.content, id))?.item == version.item
        {
            return
        }
        throw .unavailable(.unexpectedReply)
    }
}
