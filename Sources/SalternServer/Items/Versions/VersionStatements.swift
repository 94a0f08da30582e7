internal import Postgres

/// Finds the kept versions of an item, latest first.
struct FindVersions: ItemRead {
    typealias Row = VersionHeader

    let page: VersionPage
    let now: Timestamp
    let limit: Int64

    static let sql: AccountSQL<Self> = """
        SELECT \(VersionHeader.columns) FROM saltern.replaced_contents i
        WHERE i.account_id = \(.account) AND i.item_id = \(\.page.item) AND i.revision < \(\.page.before)
            AND i.expires_at > \(\.now)
        ORDER BY i.revision DESC LIMIT \(\.limit)
        """
}

/// Finds one kept version of an item, with only the first part of long values.
struct FindVersion: ItemRead {
    let id: ItemID
    let revision: Int64
    let now: Timestamp

    static let sql: AccountSQL<Self> = """
        SELECT \(ItemInParts.columns) FROM saltern.replaced_contents i
        WHERE i.account_id = \(.account) AND i.item_id = \(\.id) AND i.revision = \(\.revision)
            AND i.expires_at > \(\.now)
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> ItemInParts {
        try ItemInParts(row: &row, of: .replacedContents)
    }
}

/// Finds a part of a version's title or body. Returns no row if the version is no longer kept.
struct FindVersionPart: ItemRead {
    typealias Row = [UInt8]

    let part: FindItemPart

    static let sql: AccountSQL<Self> = "\(FindItemPart.part(of: "saltern.replaced_contents i"), of: \.part)"
}

/// Finds out if a live item with this id exists.
struct HasItem: ItemRead {
    typealias Row = Bool

    let id: ItemID

    static let sql: AccountSQL<Self> = """
        SELECT true FROM saltern.items i WHERE i.account_id = \(.account) AND i.item_id = \(\.id) AND NOT i.deleted
        """
}
