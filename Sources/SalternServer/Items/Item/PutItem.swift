internal import HTTPCore
internal import Postgres

/// `PUT /v1/items/{id}`, or `PUT /v1/items/{id}/body` with bytes: creates or replaces an item.
struct PutItem: ItemEndpoint {
    private let formats: [SealedFormat]

    init(_ policy: ItemPolicy) {
        formats = policy.formats
    }

    func respond(to request: Request, items: ItemAccess) async throws -> Response {
        let id: ItemID = try request.parameters.require("id")
        var preconditions = try Preconditions(request.head.fields, allowsAbsent: true)
        let content =
            switch request.bodyType {
            case .bytes: try ItemContent(bytes: request, formats: formats)
            case .json, .none:
                try await JSONBody.readLarge(request) {
                    try await ItemContent(&$0, formats: formats, pace: request.pace)
                }
            }
        while true {
            var write = WriteItem(
                id: id, precondition: preconditions.current, collection: content.collection, format: content.format,
                iterations: content.iterations, title: content.title, body: content.body, yieldsToVersions: true)
            if let written = try await Self.writeOnShortPath(write, items) {
                return Self.reply(written, isNew: write.precondition == .absent)
            }
            var changes = try await items.write(write)
            // The obstacle of the short path has disappeared between the two statements.
            if changes.first?.outcome == .vacant { continue }
            if changes.first?.outcome == .versionDue {
                write.yieldsToVersions = false
                guard let replaced = try await items.replaceKeeping(write) else { continue }
                changes = replaced
            }
            if changes.first?.allowsAnother(of: &preconditions) ?? false { continue }
            let (reply, outcome) = try ItemChange.accepted(changes, items)
            return Self.reply(ItemHeader(reply.item), isNew: outcome == .created)
        }
    }

    private static func writeOnShortPath(
        _ write: WriteItem, _ items: ItemAccess
    ) async throws -> ItemHeader? {
        let (owner, now) = (items.owner, items.now)
        guard write.precondition == .absent else {
            if let written = try await items.writeOnShortPath(ReplaceItem(write: write)).first {
                return ItemHeader(write, written)
            }
            guard write.sealedByteCount <= Authorization.sharedByteLimit else { return nil }
            let replacement = ReplaceKeeping(write: write)
            return try await items.writeOnShortPath(
                replacement, followedBy: KeepReplaced(replacement: replacement, owner: owner, now: now),
                StoreReplacement(replacement: replacement, owner: owner, now: now)
            ).last.first
        }
        let creation = CreateItem(write: write)
        let store = StoreNewItem(creation: creation, owner: owner, now: now)
        return try await items.writeOnShortPath(creation, followedBy: store, of: write.sealedByteCount).first
            .map { ItemHeader(write, $0) }
    }

    private static func reply(_ item: ItemHeader, isNew: Bool) -> Response {
        .json(isNew ? .created : .ok, fields: ["ETag": EntityTag.text(of: item.revision)]) { writer in
            writer.object { writer in item.write(to: &writer) }
        }
    }
}

/// Selects the rows for a change of an item, if the caller may change it: the account, its plan and the present item.
/// The account's row must be locked.
private func callersAccountAndItem<Root>(_ id: CallerSQL<Root>, _ seat: Seat) -> CallerSQL<Root> {
    """
    FROM saltern.accounts a
    JOIN saltern.plans p ON p.plan = a.plan
    LEFT JOIN saltern.items i ON i.account_id = a.account_id AND i.account_id = \(.account) AND i.item_id = \(id)
    WHERE a.account_id = \(.account) AND \(seat.admits) AND \(seat.exists)
    """
}

/// The sealed bytes of the present item.
private let storedBytes = SealedSize.bytes(of: "i")

/// Replaces an item or its tombstone: decides, takes the account's next revision, writes the item and updates the
/// counters. If neither exists and the item may be created, the outcome is `vacant`, and ``CreateItem`` creates it.
///
/// Equal content is `unchanged` for any precondition, because the request then repeats one whose reply was lost. The
/// common cases have shorter statements: ``ReplaceItem`` and ``CreateItem``.
struct WriteItem: ItemWrite {
    typealias Row = ItemChange

    let id: ItemID
    let precondition: Precondition
    /// Nil keeps the item's collection.
    let collection: CollectionName?
    let format: SealedFormat
    let iterations: Int32?
    let title: SealedBytes?
    let body: SealedBytes
    /// True to leave an item unchanged if a version of its content is due, with the outcome ``ItemOutcome/versionDue``.
    var yieldsToVersions = false

    var sealedByteCount: Int { body.bytes.count + (title?.bytes.count ?? 0) }
    var sealedKey: SealedKey { SealedKey(format, title, body) }
    /// The collection of a new item.
    var newCollection: CollectionName { collection ?? .standard }
    var byteCount: Int64 { Int64(sealedByteCount) }
    /// The replaced content can be long.
    var isLong: Bool { precondition != .absent || sealedByteCount > Authorization.sharedByteLimit }

    static let sql = text(.session)
    static let vaultSQL = text(.member)

    static func text(_ seat: Seat) -> CallerSQL<Self> {
        """
        WITH decision AS (
            SELECT a.account_id, a.item_count, a.item_bytes, p.max_items, p.max_item_bytes, p.max_bytes,
                coalesce(\(\.collection?.name), CASE WHEN i.deleted = false THEN i.collection END,
                    \(CollectionName.standardSQL)) AS new_collection,
                i.revision, i.collection, i.created_at, i.updated_at, i.format, i.iterations, i.title, i.body,
                CASE WHEN i.deleted = false THEN 0 ELSE 1 END AS more_items,
                CASE WHEN i.deleted THEN 1 ELSE 0 END AS fewer_tombstones,
                \(\.byteCount) - \(storedBytes) AS more_bytes,
                CASE
                    WHEN i.deleted = false AND i.collection = coalesce(\(\.collection?.name), i.collection) AND i.format = \(\.format.rawValue)
                        AND i.iterations IS NOT DISTINCT FROM \(\.iterations) AND i.title IS NOT DISTINCT
                            FROM \(\.title?.bytes) AND i.body = \(\.body.bytes)
                    THEN 'unchanged'
                    WHEN (\(\.precondition.parameter) = 0 AND i.deleted = false)
                        OR (\(\.precondition.parameter) = -1 AND i.deleted IS DISTINCT FROM false)
                        OR (\(\.precondition.parameter) > 0 AND (i.deleted IS DISTINCT
                            FROM false OR i.revision <> \(\.precondition.parameter)))
                    THEN 'precondition_failed'
                    WHEN \(\.byteCount) > greatest(p.max_item_bytes, \(storedBytes)) THEN 'itemBytes'
                    WHEN i.deleted IS DISTINCT FROM false AND a.item_count >= p.max_items THEN 'items'
                    WHEN \(\.byteCount) > \(storedBytes)
                        AND a.item_bytes + \(\.byteCount) - \(storedBytes) > p.max_bytes THEN 'bytes'
                    WHEN i.deleted = false AND \(\.yieldsToVersions) AND p.deleted_days > 0
                        AND \(ItemVersion.isDue(since: "\(.keptSince)")) THEN 'version_due'
                    WHEN i.deleted = false THEN 'updated'
                    WHEN i.deleted THEN 'created'
                    ELSE 'vacant'
                END AS outcome
            \(callersAccountAndItem("\(\.id)", seat))
        ), counted AS (
            UPDATE saltern.accounts a
            SET revision = \(AccountCounter.next("a.revision")), item_count = a.item_count + d.more_items,
                item_bytes = a.item_bytes + d.more_bytes,
                tombstone_count = greatest(a.tombstone_count - d.fewer_tombstones, 0)
            FROM decision d
            WHERE a.account_id = \(.account) AND a.account_id = d.account_id AND d.outcome IN ('created', 'updated')
            RETURNING a.account_id, a.revision, d.new_collection
        ), written AS (
            UPDATE saltern.items i
            SET revision = n.revision, deleted = false, collection = n.new_collection,
                format = \(\.format.rawValue), iterations = \(\.iterations), title = \(\.title?.bytes),
                body = \(\.body.bytes), updated_at = \(.now),
                kept_at = \(ItemVersion.keptAt(since: "\(.keptSince)", now: "\(.now)")),
                created_at = CASE WHEN i.deleted THEN \(.now) ELSE i.created_at END
            FROM counted n
            WHERE i.account_id = \(.account) AND i.item_id = \(\.id)
            RETURNING i.account_id, i.revision, i.created_at, i.updated_at
        ), released AS (
            UPDATE saltern.deleted_contents k SET expires_at = \(DeletedContent.released(from: "\(.now)"))
            FROM counted n JOIN decision d ON d.account_id = n.account_id AND d.outcome = 'created'
            WHERE k.account_id = \(.account) AND k.item_id = \(\.id)
                AND k.expires_at > \(DeletedContent.released(from: "\(.now)"))
        )
        SELECT d.outcome,
            CASE d.outcome WHEN 'items' THEN d.max_items WHEN 'itemBytes' THEN d.max_item_bytes ELSE d.max_bytes END,
            CASE d.outcome WHEN 'items' THEN d.item_count WHEN 'itemBytes' THEN \(\.byteCount) ELSE d.item_bytes END,
            coalesce(w.revision, d.revision) IS NOT NULL,
            \(\.id), coalesce(w.revision, d.revision), coalesce(CASE WHEN w.revision IS NULL
                THEN d.collection END, d.new_collection),
            coalesce(w.created_at, d.created_at), coalesce(w.updated_at, d.updated_at),
            CASE WHEN d.outcome = 'precondition_failed' THEN d.format END,
            CASE WHEN d.outcome = 'precondition_failed' THEN d.iterations END,
            \(ItemInParts.sealedColumns("d", when: "d.outcome = 'precondition_failed'"))
        FROM decision d LEFT JOIN written w ON w.account_id = d.account_id
        """
    }
}
