internal import Foundation

/// The result of ``Vault/fetchVersions(of:)``.
public struct VersionReport: Hashable, Sendable {
    /// The number of versions that are new on this device.
    public internal(set) var fetched = 0
    /// The number of the server's versions that cannot be opened, or differ from their list. They are not shown.
    public internal(set) var refused = 0

    /// Creates an empty report.
    public init() {}
}

/// Older versions on the server, for a device that was offline when an item was changed. The versions that each device
/// keeps itself (``Vault/replacedVersions(of:)``) need no network.
///
/// Every version is checked before use. Its seal contains account, item and collection, so that the server cannot
/// substitute another item's content. The number of its edit is sealed, too. It must be lower than that of the content
/// that replaced it here, so that present or later content is not accepted. A version becomes the present content only
/// as a new edit of this device.
struct ServerVersions {
    private let scope: ItemScope
    private let store: Store
    private let items: VaultItems

    init(_ scope: ItemScope, _ items: VaultItems) {
        self.scope = scope
        self.items = items
        store = scope.store
    }

    private static let versionPageLimit = 100

    /// Lists the versions of an item on the server, the latest first; empty for an item that it does not have.
    func list(of id: ItemID) async throws(VaultError) -> [VersionHeader] {
        let token = try scope.open.token
        var versions: [VersionHeader] = []
        var next: String?
        for _ in 0..<Self.versionPageLimit {
            let page: VersionPage
            let cursor = next
            do throws(APIError) {
                page = try await scope.settings.retries({ () throws(APIError) in
                    try await scope.api.listVersions(id, limit: 500, page: cursor, token)
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

    /// Returns the content of a version on the server.
    func item(_ id: ItemID, at revision: Revision) async throws(VaultError) -> PlainItem {
        try await version(id, revision).item
    }

    /// Makes a version of the server the present one, as a new edit of this device. The replaced content is kept as a
    /// version.
    func restore(_ id: ItemID, at revision: Revision) async throws(VaultError) {
        let version = try await self.version(id, revision)
        try items.put(version.item, id, in: version.content.collection)
    }

    /// Fetches the versions of an item that this device does not have. They are stored with the versions that were
    /// replaced on this device, as far as the same limits leave room for them. They remove no other version: the server
    /// may never have had it.
    @discardableResult
    func fetch(of id: ItemID) async throws(VaultError) -> VersionReport {
        let listed = try await list(of: id)
        let (known, room) = try scope.stored { (try store.replacedRevisions(of: id), try store.versionRoom(of: id)) }
        var report = VersionReport()
        var bytes: Int64 = 0
        var later = UInt64.max
        var found: [(header: VersionHeader, version: ServerVersion)] = []
        for header in listed.prefix(Store.versionLimit) where !known.contains(header.revision.number) {
            // The server may return any number.
            let (sum, isTooMany) = bytes.addingReportingOverflow(max(header.bytes, 0))
            if found.count >= room.count || isTooMany || sum > room.bytes { break }
            let version: ServerVersion
            do throws(VaultError) {
                version = try await self.version(id, header.revision)
            } catch {
                switch error {
                case .notFound: continue
                case .unreadable, .unavailable(.unexpectedReply): report.refused += 1
                default: throw error
                }
                continue
            }
            // Versions and their edits are listed in descending order.
            guard version.edit < later else {
                report.refused += 1
                continue
            }
            bytes = max(sum, bytes + Int64(version.content.body.bytes.count))
            if bytes > room.bytes { break }
            later = version.edit
            found.append((header, version))
        }
        // The earliest comes first, so that versions of one second are numbered in order.
        for (header, version) in found.reversed() {
            try scope.stored {
                if try !store.hasReplaced(id, version.content) { report.fetched += 1 }
                try store.keepReplaced(
                    id, version.content, edit: version.edit, revision: header.revision, at: header.replacedAt)
            }
        }
        return report
    }

    /// A checked version of the server.
    private struct ServerVersion {
        let content: ItemContent
        let item: PlainItem
        let edit: UInt64
    }

    private func version(_ id: ItemID, _ revision: Revision) async throws(VaultError) -> ServerVersion {
        let opened = try scope.open
        let state: ItemState
        do throws(APIError) {
            state = try await scope.settings.retries({ () throws(APIError) in
                try await scope.api.getVersion(id, revision, opened.token)
            })
        } catch {
            throw error.code == .notFound ? .notFound : VaultError(error)
        }
        guard state.id == id, state.revision == revision, let content = state.content else {
            throw .unavailable(.unexpectedReply)
        }
        guard let plain = opened.engine.sealer.judge(state, content, known: nil).opened else { throw .unreadable }
        let found = ServerVersion(content: content, item: plain.item, edit: plain.edit.number)
        try checkOrder(of: found, id, revision, opened.engine.sealer)
        return found
    }

    /// Compares a version with the known item. An earlier revision must have an earlier edit, and one revision one
    /// content.
    private func checkOrder(
        of version: ServerVersion, _ id: ItemID, _ revision: Revision, _ sealer: any ItemSealing
    ) throws(VaultError) {
        guard let known = try scope.stored({ try store.item(id) }), !known.isSealed else { return }
        if revision < known.revision, version.edit < known.edit { return }
        if revision > known.revision, version.edit > known.edit { return }
        // After a deletion and a restoration, a later revision has the same content.
        if revision >= known.revision, version.edit == known.edit,
            (try? sealer.open(known.content, id))?.item == version.item
        {
            return
        }
        throw .unavailable(.unexpectedReply)
    }
}
