internal import HTTPCore
internal import Postgres

/// The properties of a share for its managers, without the sealed bytes.
struct ShareHeader: DecodableRow {
    let id: ShareID
    let createdAt: Timestamp
    let updatedAt: Timestamp
    let expiresAt: Timestamp?
    let maxViews: Int64?
    let views: Int64
    let format: String
    /// The number of sealed bytes.
    let byteCount: Int64

    /// The columns that ``init(row:)`` reads, of the table or alias `s`.
    static let columns: SQLFragment = """
        s.share_id, s.created_at, s.updated_at, s.expires_at, s.max_views, s.views, s.format, \
        octet_length(s.sealed)::bigint
        """

    /// Reads the columns of ``columns``.
    init(row: inout RowReader) throws(PostgresError) {
        id = try row.next()
        createdAt = try row.next()
        updatedAt = try row.next()
        expiresAt = try row.next()
        maxViews = try row.next()
        views = try row.next()
        format = try row.next()
        byteCount = try row.next()
    }

    /// Creates the header of a new share.
    init(id: ShareID, content: ShareContent, now: Timestamp) {
        self.id = id
        createdAt = now
        updatedAt = now
        expiresAt = content.expiresAt
        maxViews = content.maxViews
        views = 0
        format = content.format.rawValue
        byteCount = Int64(content.sealed.bytes.count)
    }

    func write(to writer: inout JSONWriter) {
        writer.member("id", id.text)
        writer.member("path", "/s/\(id.text)")
        writer.member("createdAt", createdAt)
        writer.member("updatedAt", updatedAt)
        if let expiresAt { writer.member("expiresAt", expiresAt) }
        if let maxViews { writer.member("maxViews", maxViews) }
        writer.member("views", views)
        writer.member("format", format)
        writer.member("bytes", byteCount)
    }
}
