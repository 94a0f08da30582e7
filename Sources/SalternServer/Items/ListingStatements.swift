internal import Postgres

/// Which live items a page of a listing may show.
struct ItemRange: Sendable {
    let first: ItemID
    /// Nil for items of every collection.
    let collection: CollectionName?
    let limit: Int64

    /// One row more than the limit, of the alias `stored`, in the order of the identifiers: $2 to $4. The primary key
    /// is walked; a collection has no index, which would cost every write more than it saves a listing of one account.
    static let condition = """
        stored.account_id = $1 AND stored.item_id >= $2 AND NOT stored.deleted
                AND ($3::text IS NULL OR stored.collection = $3)
            ORDER BY stored.item_id LIMIT $4 + 1
        """

    /// Appends $2 to $4.
    func bind(to parameters: inout Parameters) {
        parameters.append(first)
        parameters.append(collection?.name)
        parameters.append(limit)
    }
}

/// Live items in the order of their identifiers, as many as the range and `byteLimit` allow, but at least one.
struct FindItems: AccountRead {
    let range: ItemRange
    /// Sealed bytes in all.
    let byteLimit: Int64

    struct Row: Sendable {
        let item: Item
        /// Whether another item follows the page's last.
        let isFollowed: Bool
    }

    /// The lengths of columns that are stored apart are known without reading them.
    static let sql = """
        SELECT \(Item.columns), i.position < i.found
        FROM (
            SELECT next.*, row_number() OVER by_id AS position, count(*) OVER () AS found,
                sum(octet_length(next.body) + coalesce(octet_length(next.title), 0)) OVER by_id AS bytes
            FROM (SELECT stored.* FROM saltern.items stored WHERE \(ItemRange.condition)) next
            WINDOW by_id AS (ORDER BY next.item_id ROWS UNBOUNDED PRECEDING)
        ) i
        WHERE i.position <= $4 AND (i.bytes <= $5 OR i.position = 1)
        ORDER BY i.item_id
        """

    func bind(to parameters: inout Parameters) {
        range.bind(to: &parameters)
        parameters.append(byteLimit)
    }

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row {
        Row(item: try Item(row: &row), isFollowed: try row.next())
    }
}

/// Live items in the order of their identifiers without their sealed bytes, which are not read.
struct FindItemHeaders: AccountRead {
    let range: ItemRange

    struct Row: Sendable {
        let header: ItemHeader
        /// Whether another item follows the page's last.
        let isFollowed: Bool
    }

    static let sql = """
        SELECT \(ItemHeader.columns), i.position < i.found
        FROM (
            SELECT next.*, row_number() OVER (ORDER BY next.item_id) AS position, count(*) OVER () AS found
            FROM (
                SELECT stored.item_id, stored.revision, stored.collection, stored.created_at, stored.updated_at
                FROM saltern.items stored WHERE \(ItemRange.condition)
            ) next
        ) i
        WHERE i.position <= $4
        ORDER BY i.item_id
        """

    func bind(to parameters: inout Parameters) { range.bind(to: &parameters) }

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row {
        Row(header: try ItemHeader(row: &row), isFollowed: try row.next())
    }
}
