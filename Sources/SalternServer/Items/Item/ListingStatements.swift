internal import Postgres

/// The live items that a page of a listing may contain.
struct ItemRange: Sendable {
    let first: ItemID
    /// Nil for items of all collections.
    let collection: CollectionName?
    let limit: Int64
    /// The end of the scanned slice of the account. Nil up to the last item.
    var sliceEnd: ItemID?

    private var last: ItemID { sliceEnd ?? ItemID(UUID(high: .max, low: .max)) }

    /// Selects one row more than the limit, of the alias `stored`, in the order of ids along the primary key.
    /// Collections have no index: it would cost each write more than it saves a listing of one account.
    static let condition: AccountSQL<Self> = """
        stored.account_id = \(.account) AND stored.item_id >= \(\.first) AND stored.item_id <= \(\.last)
                AND NOT stored.deleted
                AND (\(\.collection?.name)::text IS NULL OR stored.collection = \(\.collection?.name))
            ORDER BY stored.item_id LIMIT \(\.limit) + 1
        """

    /// Returns the start of the next page, if there is one.
    ///
    /// - Parameter last: The page's last item if another one follows within the range.
    func nextPage(after last: ItemID?, fields: ItemFields) -> ItemPage? {
        (last ?? sliceEnd).flatMap { ItemPage(after: $0, collection: collection, fields: fields) }
    }
}

/// Finds the end of a slice of an account's items, including tombstones. Returns no row if fewer follow. A listing of a
/// collection scans one slice for each page, so that no statement scans the whole account for a few rows.
struct FindSliceEnd: ItemRead {
    typealias Row = ItemID

    let first: ItemID

    static let size: Int64 = 5_000
    static let sql: AccountSQL<Self> = """
        SELECT i.item_id FROM saltern.items i WHERE i.account_id = \(.account) AND i.item_id >= \(\.first)
        ORDER BY i.item_id OFFSET \(size) - 1 LIMIT 1
        """
}

/// Finds live items in the order of ids, as many as the range and `byteLimit` allow, but at least one.
struct FindItems: ItemRead {
    let range: ItemRange
    /// Maximum of sealed bytes in total.
    let byteLimit: Int64

    struct Row: Sendable {
        let item: ItemInParts
        /// True if another item follows the page's last one.
        let isFollowed: Bool
    }

    /// PostgreSQL computes the lengths of externally stored columns without reading them.
    static let sql: AccountSQL<Self> = """
        SELECT \(ItemInParts.columns), i.position < i.found
        FROM (
            SELECT next.*, row_number() OVER by_id AS position, count(*) OVER () AS found,
                sum(\(SealedSize.bytes(of: "next"))) OVER by_id AS bytes
            FROM (SELECT stored.* FROM saltern.items stored WHERE \(ItemRange.condition, of: \.range)) next
            WINDOW by_id AS (ORDER BY next.item_id ROWS UNBOUNDED PRECEDING)
        ) i
        WHERE i.position <= \(\.range.limit) AND (i.bytes <= \(\.byteLimit) OR i.position = 1)
        ORDER BY i.item_id
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row {
        Row(item: try ItemInParts(row: &row), isFollowed: try row.next())
    }
}

/// Finds live items in the order of ids without reading their sealed bytes.
struct FindItemHeaders: ItemRead {
    let range: ItemRange

    struct Row: Sendable {
        let header: ItemHeader
        /// True if another item follows the page's last one.
        let isFollowed: Bool
    }

    static let sql: AccountSQL<Self> = """
        SELECT \(ItemHeader.columns), i.position < i.found
        FROM (
            SELECT next.*, row_number() OVER (ORDER BY next.item_id) AS position, count(*) OVER () AS found
            FROM (
                SELECT stored.item_id, stored.revision, stored.collection, stored.created_at, stored.updated_at
                FROM saltern.items stored WHERE \(ItemRange.condition, of: \.range)
            ) next
        ) i
        WHERE i.position <= \(\.range.limit)
        ORDER BY i.item_id
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row {
        Row(header: try ItemHeader(row: &row), isFollowed: try row.next())
    }
}
