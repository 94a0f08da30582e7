internal import Postgres

/// Queries the positions of vaults for a ``RevisionWatcher``.
struct VaultPoller: Sendable {
    let database: PostgresClient
    /// Receives the position by place in the query. Nil for an ended membership.
    let report: @Sendable ([Int64: VaultPosition?], FindMovedVaults.Query) -> Void

    /// - Returns: False if the query failed.
    func poll(_ query: FindMovedVaults.Query) async -> Bool {
        let find = FindMovedVaults(query: query)
        do throws(PostgresError) {
            guard let row = try await database.execute(find).first else { return true }
            var found: [Int64: VaultPosition?] = [:]
            for (index, place) in row.places.enumerated() {
                found[place] = VaultPosition(
                    revision: row.revisions[index], headNumber: row.headNumbers[index],
                    headHash: row.headHashes[index])
            }
            if row.liveCount < query.vaults.count {
                let live = Set(try await database.execute(FindLiveMemberships(find: find)))
                for place in 1...Int64(query.vaults.count) where !live.contains(place) {
                    found.updateValue(nil, forKey: place)
                }
            }
            report(found, query)
            return true
        } catch {
            return false
        }
    }

    /// Queries the vaults of each hash part separately: a missing node of a cluster must not prevent events for vaults
    /// on other nodes.
    func pollInPieces(_ query: FindMovedVaults.Query) async {
        guard let parts = try? await database.execute(FindHashParts(accounts: query.vaults)) else { return }
        for piece in query.split(by: parts.map(\.part)).shuffled() { _ = await poll(piece) }
    }
}
