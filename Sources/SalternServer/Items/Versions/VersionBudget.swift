internal import Postgres

/// Decides which versions a replacement keeps, and how many older versions it removes for them.
struct VersionBudget {
    /// The plan's limits of kept contents and their present usage.
    struct Account: Sendable {
        let days: Int32
        let maxItems: Int64
        let maxBytes: Int64
        let deletedItems: Int64
        let deletedBytes: Int64
        var versions: Int64
        var versionBytes: Int64

        /// Returns the excess if `more` is added. Zero if there is room.
        func excess(with more: NeededRoom) -> NeededRoom {
            NeededRoom(
                items: max(deletedItems + versions + more.items - maxItems, 0),
                bytes: max(deletedBytes + versionBytes + more.bytes - maxBytes, 0))
        }

        /// Returns the amount to remove: more than the excess, so that the next replacements have room.
        func wanted(for excess: NeededRoom) -> NeededRoom {
            NeededRoom(
                items: excess.items > 0 ? excess.items + min(maxItems / Self.part, Self.reserve) : 0,
                bytes: excess.bytes > 0 && maxItems >= Self.part ? excess.bytes + maxBytes / Self.part : excess.bytes)
        }

        private static let reserve: Int64 = 63
        private static let part: Int64 = 16
    }

    /// The content of an item that is about to be replaced.
    struct Version: Sendable {
        let id: ItemID
        let bytes: Int64
    }

    let kept: [ItemID]
    let size: NeededRoom

    /// Keeps the last ones of `due` that have room besides deleted content.
    init(_ due: [Version], in account: Account) {
        var kept: [ItemID] = []
        var (items, bytes) = (account.maxItems - account.deletedItems, account.maxBytes - account.deletedBytes)
        bytes = min(bytes, max(ItemVersion.byteLimit, due.last?.bytes ?? 0))
        var used: Int64 = 0
        for version in due.reversed() where account.days > 0 && items > 0 && version.bytes <= bytes {
            kept.append(version.id)
            items -= 1
            bytes -= version.bytes
            used += version.bytes
        }
        self.kept = kept
        size = NeededRoom(items: Int64(kept.count), bytes: used)
    }
}

extension NeededRoom {
    static let nothing = NeededRoom(items: 0, bytes: 0)

    var isNothing: Bool { items == 0 && bytes == 0 }
}

extension ItemTransaction {
    /// Keeps versions of the items about to be replaced that have one due. The transaction must hold the owner's row,
    /// and must write the items afterwards.
    ///
    /// - Returns: The number of moved sealed bytes.
    @discardableResult
    func keepVersions(
        of ids: [ItemID], now: Timestamp
    ) async throws(PostgresError) -> Int64 {
        let rows = try await execute(
            MeasureVersions(owner: owner, ids: ids, keptSince: now - ItemVersion.interval))
        guard let account = rows.first?.budget else { return 0 }
        let budget = VersionBudget(rows.compactMap(\.due), in: account)
        guard !budget.kept.isEmpty, try await makeRoom(for: budget.size, account) else { return 0 }
        enqueue(
            KeepVersions(
                owner: owner, ids: budget.kept, now: now,
                expiresAt: ItemVersion.expiry(now: now, days: account.days)))
        enqueue(CountVersions(owner: owner, count: budget.size.items, bytes: budget.size.bytes))
        return budget.size.bytes
    }

    /// Removes older versions until `more` has room.
    ///
    /// - Returns: False if one slice was not sufficient; nothing is kept then.
    private func makeRoom(
        for more: NeededRoom, _ account: VersionBudget.Account
    ) async throws(PostgresError) -> Bool {
        let excess = account.excess(with: more)
        if excess.isNothing { return true }
        let dropped =
            try await execute(DropVersions(owner: owner, wanted: account.wanted(for: excess))).first ?? .nothing
        return dropped.items >= excess.items && dropped.bytes >= excess.bytes
    }
}

extension ItemAccess {
    /// Makes room for a deletion: removes older versions or, without any, kept contents of earlier deletions.
    func makeRoom(_ room: NeededRoom) async throws {
        let hasVersions = try await transaction { transaction in
            let weighing = MeasureVersions(owner: owner, ids: [], keptSince: keptSince)
            guard let account = try await transaction.execute(weighing).first?.budget else { return false }
            let excess = account.excess(with: room)
            if excess.isNothing || account.versions == 0 { return false }
            _ = try await transaction.execute(DropVersions(owner: owner, wanted: account.wanted(for: excess)))
            return true
        }
        if !hasVersions { _ = try await write(DropContents(room: room)) }
    }
}
