internal import HTTPCore
internal import Postgres

/// Counts the replacement of an item with a version due, if the version has room and neither content is long.
/// ``KeepReplaced`` and ``StoreReplacement`` follow in the same transaction. ``WriteItem`` and
/// ``ItemAccess/replaceKeeping(_:)`` take the other cases.
///
/// Three statements, because a cluster plans an INSERT from a part of a WITH for every shard, and the content must be
/// read before its replacement.
struct ReplaceKeeping: ShortPath {
    let write: WriteItem
    let writer = DecideDeletion.Writer()
    var sealedKey: SealedKey { write.sealedKey }

    struct Row: DecodableRow, ShortPathRow {
        let isTouchDue: Bool

        init(row: inout RowReader) throws(PostgresError) { isTouchDue = try row.next() }
    }

    /// The required revision. Nil for any.
    private var revision: Int64? { write.precondition == .present ? nil : write.precondition.parameter }

    static let sql = text(.session)
    static let vaultSQL = text(.member)

    static func text(_ seat: Seat) -> CallerSQL<Self> {
        """
        UPDATE saltern.accounts a
        SET revision = \(AccountCounter.next("a.revision")), item_bytes = a.item_bytes + d.growth,
            version_count = a.version_count + 1, version_bytes = a.version_bytes + d.bytes,
            writer = \(\.writer.first)::bigint + 1 + p.deleted_days
        FROM (
            SELECT \(bytes)::bigint AS bytes, \(\.write.byteCount) - \(bytes) AS growth,
                \(seat.isTouchDue) AS is_touch_due
            FROM saltern.items i, \(seat.table) live
            WHERE \(seat.isCallers)
                AND i.account_id = \(.account) AND i.item_id = \(\.write.id) AND NOT i.deleted
                AND i.revision = coalesce(\(\.revision), i.revision) AND \(ItemVersion.isDue(since: "\(.keptSince)"))
                AND (i.body <> \(\.write.body.bytes) OR i.title IS DISTINCT FROM \(\.write.title?.bytes)
                    OR i.format <> \(\.write.format.rawValue) OR i.collection <> \(\.write.collection?.name)
                    OR i.iterations IS DISTINCT FROM \(\.write.iterations))
            OFFSET 0
        ) d, saltern.plans p
        WHERE \(callersAccount(seat)) AND p.plan = a.plan AND d.bytes <= \(Authorization.sharedByteLimit)
            AND (d.growth <= 0 OR (\(\.write.byteCount) <= p.max_item_bytes AND a.item_bytes + d.growth <= p.max_bytes))
            AND p.deleted_days > 0 AND a.kept_count + a.version_count < p.max_items
            AND a.kept_bytes + a.version_bytes + d.bytes <= p.max_bytes
        RETURNING d.is_touch_due
        """
    }

    private static let bytes = SealedSize.bytes(of: "i")
}

/// Keeps an item's content as a version if ``ReplaceKeeping`` has counted it.
struct KeepReplaced: ItemStep {
    let replacement: ReplaceKeeping
    let owner: OwnerID
    let now: Timestamp

    /// The content does not come from the client.
    var bytesInGroup: Int? { 128 }

    static let sql: SQL<Self> = """
        MERGE INTO saltern.replaced_contents v USING (
            SELECT i.account_id, i.revision, i.collection, i.format, i.iterations, i.title, i.body, i.created_at,
                i.updated_at,
                (\(\.now)::timestamptz AT TIME ZONE 'UTC'
                    + make_interval(days => (a.writer - \(\.replacement.writer.first) - 1)::integer)) AT TIME ZONE 'UTC'
                    AS expires_at
            FROM saltern.accounts a JOIN saltern.items i
                ON i.account_id = a.account_id AND i.account_id = \(\.owner)
                    AND i.item_id = \(\.replacement.write.id)
            WHERE a.account_id = \(\.owner) AND a.writer > \(\.replacement.writer.first)
                AND a.writer <= \(\.replacement.writer.last)
        ) n ON v.account_id = n.account_id AND v.item_id = \(\.replacement.write.id) AND v.revision = n.revision
        WHEN NOT MATCHED THEN INSERT
            (account_id, item_id, revision, collection, format, iterations, title, body, created_at, updated_at,
            replaced_at, expires_at)
            VALUES (n.account_id, \(\.replacement.write.id), n.revision, n.collection, n.format, n.iterations, n.title,
                n.body, n.created_at, n.updated_at, \(\.now), n.expires_at)
        """
}

/// Writes the content if ``ReplaceKeeping`` has counted it. It follows ``KeepReplaced``.
struct StoreReplacement: ItemStep {
    typealias Row = ItemHeader

    let replacement: ReplaceKeeping
    let owner: OwnerID
    let now: Timestamp

    var bytesInGroup: Int? { replacement.write.sealedByteCount + 256 }

    static let sql: SQL<Self> = """
        UPDATE saltern.items i
        SET revision = a.revision, collection = coalesce(\(\.replacement.write.collection?.name), i.collection),
            format = \(\.replacement.write.format.rawValue), iterations = \(\.replacement.write.iterations),
            title = \(\.replacement.write.title?.bytes), body = \(\.replacement.write.body.bytes),
            updated_at = \(\.now), kept_at = \(\.now)
        FROM saltern.accounts a
        WHERE a.account_id = \(\.owner)
            AND a.writer BETWEEN \(\.replacement.writer.first) AND \(\.replacement.writer.last)
            AND i.account_id = \(\.owner) AND i.item_id = \(\.replacement.write.id)
        RETURNING \(ItemHeader.columns)
        """
}

extension ItemAccess {
    /// Replaces an item with a version due in a dedicated transaction: the version needs room, or a content is long.
    ///
    /// - Returns: Nil if the item has changed meanwhile; nothing was changed then.
    func replaceKeeping(_ write: WriteItem) async throws -> [ItemChange]? {
        /// Rolls the transaction back.
        struct NotReplaced: Error {}
        do {
            return try await transaction { transaction in
                try await transaction.keepVersions(of: [write.id], now: now)
                let changes = try await execute(write, in: transaction)
                guard changes.first?.outcome == .updated else { throw NotReplaced() }
                return changes
            }
        } catch is NotReplaced {
            return nil
        }
    }
}
