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

/// Finds the items with a version due among those about to be replaced, and the account's room. Returns at least one
/// row. The account's row must be locked.
struct MeasureVersions: ItemStep {
    let owner: OwnerID
    let ids: [ItemID]
    let keptSince: Timestamp

    struct Row: Sendable {
        let budget: VersionBudget.Account
        /// Nil if no version is due.
        let due: VersionBudget.Version?
    }

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT p.deleted_days, p.max_items, p.max_bytes, a.kept_count, a.kept_bytes, a.version_count, a.version_bytes,
            d.item_id, d.bytes
        FROM saltern.accounts a JOIN saltern.plans p ON p.plan = a.plan
        LEFT JOIN (
            SELECT i.account_id, i.item_id, \(SealedSize.bytes(of: "i"))::bigint AS bytes, o.position
            FROM unnest(\(\.ids)::uuid[]) WITH ORDINALITY AS o(item_id, position)
            JOIN saltern.items i ON i.account_id = \(\.owner) AND i.item_id = o.item_id
            WHERE NOT i.deleted AND \(ItemVersion.isDue(since: "\(\.keptSince)"))
        ) d ON d.account_id = a.account_id
        WHERE a.account_id = \(\.owner)
        ORDER BY d.position
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row {
        let budget = VersionBudget.Account(
            days: try row.next(), maxItems: try row.next(), maxBytes: try row.next(),
            deletedItems: try row.next(), deletedBytes: try row.next(), versions: try row.next(),
            versionBytes: try row.next())
        let id: ItemID? = try row.next()
        let bytes: Int64? = try row.next()
        guard let id, let bytes else { return Row(budget: budget, due: nil) }
        return Row(budget: budget, due: VersionBudget.Version(id: id, bytes: bytes))
    }
}

/// Keeps the contents of items as versions. It precedes their replacement.
///
/// `MERGE`, because an INSERT that selects from another table is planned for every shard of a cluster.
struct KeepVersions: ItemStep {
    let owner: OwnerID
    let ids: [ItemID]
    let now: Timestamp
    let expiresAt: Timestamp

    static let sql: SQL<Self> = """
        MERGE INTO saltern.replaced_contents v USING (
            SELECT i.account_id, i.item_id, i.revision, i.collection, i.format, i.iterations, i.title, i.body,
                i.created_at, i.updated_at
            FROM saltern.items i WHERE i.account_id = \(\.owner) AND i.item_id = ANY (\(\.ids)::uuid[])
        ) n ON v.account_id = n.account_id AND v.item_id = n.item_id AND v.revision = n.revision
        WHEN NOT MATCHED THEN INSERT
            (account_id, item_id, revision, collection, format, iterations, title, body, created_at, updated_at,
            replaced_at, expires_at)
            VALUES (n.account_id, n.item_id, n.revision, n.collection, n.format, n.iterations, n.title, n.body,
                n.created_at, n.updated_at, \(\.now), \(\.expiresAt))
        """
}

/// Adds kept versions to the counters.
struct CountVersions: ItemStep {
    let owner: OwnerID
    let count: Int64
    let bytes: Int64

    static let sql: SQL<Self> = """
        UPDATE saltern.accounts a
        SET version_count = a.version_count + \(\.count), version_bytes = a.version_bytes + \(\.bytes)
        WHERE a.account_id = \(\.owner)
        """
}

/// Removes the versions of an account that expire first: the given number of rows and at least the given bytes, within
/// ``ItemVersion/dropLimit`` and ``ItemVersion/byteLimit``. Returns the removed amount. If it removes all versions, it
/// sets the counters to zero, so that a loop always ends.
struct DropVersions: ItemStep {
    let owner: OwnerID
    let wanted: NeededRoom

    static let sql: SQL<Self> = """
        WITH oldest AS (
            SELECT v.item_id, v.revision, row_number() OVER in_order AS place,
                sum(v.bytes) OVER in_order - v.bytes AS before
            FROM (
                SELECT v.item_id, v.revision, v.expires_at, \(SealedSize.bytes(of: "v")) AS bytes
                FROM saltern.replaced_contents v
                WHERE v.account_id = \(\.owner) AND v.expires_at > '-infinity'
                ORDER BY v.expires_at, v.item_id, v.revision LIMIT \(ItemVersion.dropLimit)
            ) v
            WINDOW in_order AS (ORDER BY v.expires_at, v.item_id, v.revision ROWS UNBOUNDED PRECEDING)
        ), gone AS (
            DELETE FROM saltern.replaced_contents v USING oldest o
            WHERE v.account_id = \(\.owner) AND v.item_id = o.item_id AND v.revision = o.revision
                AND (o.place <= \(\.wanted.items) OR o.before < \(\.wanted.bytes))
                AND o.before < \(ItemVersion.byteLimit)
            RETURNING \(SealedSize.bytes(of: "v")) AS bytes
        ), total AS (
            SELECT count(*) AS number, coalesce(sum(g.bytes), 0)::bigint AS bytes FROM gone g
        ), counted AS (
            UPDATE saltern.accounts a
            SET version_count = CASE WHEN w.is_all THEN 0 ELSE greatest(a.version_count - t.number, 0) END,
                version_bytes = CASE WHEN w.is_all THEN 0 ELSE greatest(a.version_bytes - t.bytes, 0) END
            FROM total t CROSS JOIN LATERAL (
                SELECT count(*) = t.number AND t.number < \(ItemVersion.dropLimit) AS is_all FROM oldest
            ) w
            WHERE a.account_id = \(\.owner)
        )
        SELECT t.number, t.bytes FROM total t
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> NeededRoom {
        NeededRoom(items: try row.next(), bytes: try row.next())
    }
}
