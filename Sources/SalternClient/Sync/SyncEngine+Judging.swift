/// Versions of a shared vault whose verdict can change: their key, an entry of the log or a list was missing.
extension SyncEngine {
    /// Above this number, everything is listed again instead.
    private static let singleFetches = 128

    /// Fetches the versions that were set aside, and judges them again, if the log, the keys or the lists are others
    /// than at the last time. The store has the time, so an interruption at any point is made good.
    func judgeAgain(into report: inout SyncReport) async throws {
        guard let stamp = sealer.stamp, try store.fact(.judgedBy) != stamp else { return }
        let waiting = try store.itemsSetAside(limit: Self.singleFetches + 1)
        if waiting.count > Self.singleFetches {
            try store.transaction {
                try store.forgetAllSetAside()
                try store.beginListing()
                try store.set(.judgedBy, stamp)
            }
            return
        }
        for id in waiting {
            let state = try await Result.of({ () throws(APIError) in try await server.item(id) }).get()
            try Task.checkCancellation()
            // The pages have the tombstones.
            guard let state, !state.deleted, !state.isChunk else { continue }
            try store.transaction {
                try store.forgetSetAside(id)
                try apply(state, into: &report)
            }
        }
        try store.set(.judgedBy, stamp)
    }

    /// Fetches the versions that were set aside of items that this device has changed. A manager may have decided that
    /// one does not count: then the change is sent over it.
    func settleSetAside(into report: inout SyncReport) async throws {
        guard sealer.isOfVault, sealer.canSeal else { return }
        for id in try store.changedItemsSetAside(limit: Self.singleFetches) {
            let state = try await Result.of({ () throws(APIError) in try await server.item(id) }).get()
            try Task.checkCancellation()
            guard let state, !state.deleted, !state.isChunk else { continue }
            try store.transaction { try apply(state, into: &report) }
        }
    }
}

/// The items of a shared vault of which the server has a version that this device has not accepted yet.
extension Store {
    func setAside(_ id: ItemID, _ revision: Revision) throws {
        try database.execute(
            "INSERT OR REPLACE INTO set_aside (id, revision) VALUES (?, ?)", .blob(id.bytes), .integer(revision.number))
    }

    func itemsSetAside(limit: Int) throws -> [ItemID] {
        try database.rows("SELECT id FROM set_aside ORDER BY revision, id LIMIT ?", .integer(Int64(limit))) {
            try Self.id($0, 0)
        }
    }

    func changedItemsSetAside(limit: Int) throws -> [ItemID] {
        try database.rows(
            "SELECT s.id FROM set_aside s WHERE EXISTS (SELECT 1 FROM changes c WHERE c.id = s.id) ORDER BY s.id LIMIT ?",
            .integer(Int64(limit))
        ) { try Self.id($0, 0) }
    }

    func isSetAside(_ id: ItemID) throws -> Bool {
        try !database.rows("SELECT 1 FROM set_aside WHERE id = ?", .blob(id.bytes), decode: { _ in true }).isEmpty
    }

    func hasItemsSetAside() throws -> Bool { try !itemsSetAside(limit: 1).isEmpty }

    func forgetSetAside(_ id: ItemID) throws {
        try database.execute("DELETE FROM set_aside WHERE id = ?", .blob(id.bytes))
    }

    func forgetAllSetAside() throws { try database.execute("DELETE FROM set_aside") }
}
