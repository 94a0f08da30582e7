internal import HTTPCore
internal import Postgres

/// The identifiers of the account's shares, in pages.
struct ExportShareIDs: AccountRead {
    typealias Row = ShareID

    let after: ShareID?

    static let sql: AccountSQL<Self> = """
        SELECT h.share_id FROM saltern.account_shares h
        WHERE h.account_id = \(.account) AND h.share_id > coalesce(\(\.after)::bytea, '')
        ORDER BY h.share_id LIMIT \(ExportLimits.rows)
        """
}

/// One share of the account with its sealed bytes, without the manage token's hash.
struct ExportShare: AccountRead {
    let id: ShareID

    struct Row: ExportedRecord {
        let header: ShareHeader
        let salt: [UInt8]
        let iterations: Int32
        let sealed: [UInt8]

        let type = "share"

        func write(to writer: inout JSONWriter) {
            header.write(to: &writer)
            writer.member("salt", base64: salt)
            writer.member("iterations", Int(iterations))
            writer.member("sealed", base64: sealed)
        }
    }

    static let sql: AccountSQL<Self> = """
        SELECT \(ShareHeader.columns), s.salt, s.iterations, s.sealed FROM saltern.shares s
        WHERE s.share_id = \(\.id) AND s.owner_account = \(.account)
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row {
        Row(
            header: try ShareHeader(row: &row), salt: try row.next(), iterations: try row.next(),
            sealed: try row.next())
    }
}
