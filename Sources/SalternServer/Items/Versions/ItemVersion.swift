internal import Cryptography
internal import HTTPCore
internal import Postgres

/// Older versions of items: contents that another content has replaced.
///
/// They share the budget of ``DeletedContent``: together they have at most the plan's rows and bytes. A new version
/// removes the versions that expire first, and never deleted content. A deletion removes versions first. A version
/// expires after the plan's days for deleted items.
enum ItemVersion {
    /// The interval between two kept versions of an item. Replacements in between take the same single statement as
    /// items without versions.
    static let interval = Duration.seconds(600)
    /// Maximum of sealed bytes that one replacement keeps or one statement removes. The last row may exceed it.
    static let byteLimit: Int64 = 67_108_864
    /// Maximum number of versions that one statement removes.
    static let dropLimit: Int64 = 1_000

    /// The condition that a version of the item `i` is due.
    static func isDue<Root, Context>(since moment: SQLTemplate<Root, Context>) -> SQLTemplate<Root, Context> {
        "(\(wasKept(since: moment))) IS NOT TRUE"
    }

    /// The condition that a version of the item `i` was kept in the ``interval`` that began at `moment`. A time more
    /// than an interval after its end comes from a fast clock and is ignored; it would otherwise block versions until
    /// then.
    private static func wasKept<Root, Context>(since moment: SQLTemplate<Root, Context>) -> SQLTemplate<Root, Context> {
        "i.kept_at > \(moment) AND i.kept_at < (\(moment)::timestamptz AT TIME ZONE 'UTC' + interval '20 minutes') AT TIME ZONE 'UTC'"
    }

    /// The value of `kept_at` of the item `i` after a replacement of its content. Null for an item that is created
    /// again.
    static func keptAt<Root, Context>(
        since moment: SQLTemplate<Root, Context>, now: SQLTemplate<Root, Context>
    ) -> SQLTemplate<Root, Context> {
        "CASE WHEN i.deleted THEN NULL WHEN \(wasKept(since: moment)) THEN i.kept_at ELSE \(now)::timestamptz END"
    }

    /// Returns the expiry of a version.
    static func expiry(now: Timestamp, days: Int32) -> Timestamp { now + .seconds(86_400 * Int64(days)) }
}

/// Identifies an older version of an account's item.
struct VersionKey: Sendable, Equatable {
    let item: ItemID
    let revision: Int64
}

/// A version in a listing, without its sealed bytes.
struct VersionHeader: DecodableRow {
    let header: ItemHeader
    let byteCount: Int64
    let replacedAt: Timestamp
    let expiresAt: Timestamp

    /// The columns that ``init(row:)`` reads, of the table or alias `i`.
    static let columns: SQLFragment = """
        \(ItemHeader.columns), \(SealedSize.bytes(of: "i"))::bigint, i.replaced_at, i.expires_at
        """

    /// Reads the columns of ``columns``.
    init(row: inout RowReader) throws(PostgresError) {
        header = try ItemHeader(row: &row)
        byteCount = try row.next()
        replacedAt = try row.next()
        expiresAt = try row.next()
    }

    func write(to writer: inout JSONWriter) {
        writer.member("revision", header.revision)
        writer.member("collection", header.collection)
        writer.member("bytes", byteCount)
        writer.member("updatedAt", header.updatedAt)
        writer.member("replacedAt", replacedAt)
        writer.member("expiresAt", expiresAt)
    }
}

/// The start of a page of an item's versions. Clients treat its text as opaque.
struct VersionPage: PathParameterConvertible, Equatable {
    let item: ItemID
    /// All versions of the page have a lower revision.
    let before: Int64

    /// Identifies this kind of token and its version.
    private static let tag: UInt8 = 0x07
    private static let byteCount = 25

    /// The first page, without an upper bound.
    static func first(of item: ItemID) -> VersionPage { VersionPage(item: item, before: .max) }

    init(item: ItemID, before: Int64) {
        self.item = item
        self.before = before
    }

    init?(pathParameter text: String) {
        guard let bytes = try? Base64URL.decode(text.utf8), bytes.count == Self.byteCount, bytes[0] == Self.tag,
            let uuid = UUID(bytes: Array(bytes[1..<17]))
        else { return nil }
        item = ItemID(uuid)
        before = bytes.withUnsafeBytes {
            Int64(bigEndian: $0.loadUnaligned(fromByteOffset: 17, as: Int64.self))
        }
    }

    var text: String {
        Base64URL.encodeToString(
            [Self.tag] + item.uuid.bytes + withUnsafeBytes(of: before.bigEndian) { Array($0) })
    }
}

/// `GET /v1/items/{id}/versions`: lists the kept older versions of an item, latest first, without their sealed bytes. A
/// deleted item keeps its versions until they expire.
struct ListVersions: ItemEndpoint {
    func respond(to request: Request, items: ItemAccess) async throws -> Response {
        let id: ItemID = try request.parameters.require("id")
        let limit = try PageSize.limit(of: request)
        let page: VersionPage = try request.query.optional("page") ?? .first(of: id)
        guard page.item == id else {
            throw Problem(
                .badRequest, "invalid_parameter", detail: "Send `page` with the item of the first page.",
                field: "page")
        }
        var versions = try await items.read(
            FindVersions(page: page, now: items.now, limit: Int64(limit) + 1))
        if versions.isEmpty, try await items.read(HasItem(id: id)).isEmpty { throw Problem.notFound }
        var next: VersionPage?
        if versions.count > limit {
            versions.removeLast()
            next = versions.last.map { VersionPage(item: id, before: $0.header.revision) }
        }
        return .json(capacity: 64 + versions.count * 224) { writer in
            writer.object { writer in
                writer.array("versions") { writer in
                    for version in versions { writer.object { writer in version.write(to: &writer) } }
                }
                if let next { writer.member("nextPage", next.text) }
            }
        }
    }
}

/// `GET /v1/items/{id}/versions/{revision}`: returns an older version in the form of an item, or 304 if the client has
/// it. Versions never change. The present content is no older version, so its revision returns 404.
struct ShowVersion: ItemEndpoint {
    func respond(to request: Request, items: ItemAccess) async throws -> Response {
        let id: ItemID = try request.parameters.require("id")
        let revision: Int = try request.parameters.require("revision")
        let find = FindVersion(id: id, revision: Int64(revision), now: items.now)
        guard let found = try await items.read(find).first else { throw Problem.notFound }
        let version = ItemInReply(found: found, reader: items.reader)
        let fields: HTTPFields = ["ETag": found.item.entityTag]
        switch ReadCondition(request.head.fields, revision: found.item.revision) {
        case .met: return version.response(fields: fields)
        case .failed: throw ItemProblem.preconditionFailed(current: version)
        case .notModified: return Response(status: .notModified, fields: fields)
        }
    }
}

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

/// The statements of versions.
extension StatementList {
    static var versions: [any Statement.Type] {
        [
            Owned<FindVersions>.self, Owned<FindVersion>.self, Owned<FindVersionPart>.self, Owned<HasItem>.self,
            MeasureVersions.self, KeepVersions.self, CountVersions.self, DropVersions.self, ExpireSomeVersions.self,
            Guarded<ReplaceKeeping>.self, KeepReplaced.self, StoreReplacement.self,
        ]
    }
}
