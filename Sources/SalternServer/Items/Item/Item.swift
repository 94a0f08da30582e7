internal import HTTPCore
internal import Postgres

/// Identifies an item. The client makes it.
typealias ItemID = Identifier<Item>

/// A stored item: content, or a tombstone.
struct Item: DecodableRow {
    let id: ItemID
    let revision: Int64
    let collection: String
    let createdAt: Timestamp
    let updatedAt: Timestamp
    /// The sealed content. Nil for a tombstone.
    let content: Content?

    struct Content: Sendable {
        let format: String
        let iterations: Int32?
        let title: [UInt8]?
        let body: [UInt8]
    }

    /// The columns that ``init(row:)`` reads, of the table or alias `i`.
    static let columns: SQLFragment = """
        i.item_id, i.revision, i.collection, i.created_at, i.updated_at, i.format, i.iterations, i.title, i.body
        """

    /// Reads the columns of ``columns``.
    init(row: inout RowReader) throws(PostgresError) {
        id = try row.next()
        revision = try row.next()
        collection = try row.next()
        createdAt = try row.next()
        updatedAt = try row.next()
        let format: String? = try row.next()
        let iterations: Int32? = try row.next()
        let title = try row.nextBytes { $0.map { [UInt8]($0) } }
        let body = try row.nextBytes { $0.map { [UInt8]($0) } }
        if let format, let body {
            content = Content(format: format, iterations: iterations, title: title, body: body)
        } else {
            content = nil
        }
    }

    /// The revision as an entity tag (RFC 9110 §8.8.3).
    var entityTag: String { EntityTag.text(of: revision) }

    /// An upper bound of the JSON's length in bytes, for the writer's first allocation.
    var jsonCapacity: Int { 320 + ((content?.body.count ?? 0) + (content?.title?.count ?? 0)) * 4 / 3 }

    /// Writes the item's members.
    func write(to writer: inout JSONWriter) {
        writeHeader(to: &writer)
        content?.write(to: &writer)
    }

    /// Writes the members before the content.
    func writeHeader(to writer: inout JSONWriter) {
        writer.member("id", id)
        writer.member("revision", revision)
        writer.member("collection", collection)
        writer.member("createdAt", createdAt)
        writer.member("updatedAt", updatedAt)
        writer.member("deleted", content == nil)
    }
}

extension Item.Content {
    /// The columns that ``init(row:)`` reads, of the table or alias `i`.
    static let columns: SQLFragment = "i.format, i.iterations, i.title, i.body"

    /// Reads the columns of ``columns`` from a row with content.
    init(row: inout RowReader) throws(PostgresError) {
        format = try row.next()
        iterations = try row.next()
        title = try row.next()
        body = try row.next()
    }

    func write(to writer: inout JSONWriter) {
        writeHeader(to: &writer)
        if let title { writer.member("title", base64: title) }
        writer.member("body", base64: body)
    }

    /// Writes the members before the sealed bytes.
    func writeHeader(to writer: inout JSONWriter) {
        writer.member("format", format)
        if let iterations { writer.member("iterations", Int(iterations)) }
    }
}

/// The properties of a live item without its sealed bytes.
struct ItemHeader: DecodableRow {
    let id: ItemID
    let revision: Int64
    let collection: String
    let createdAt: Timestamp
    let updatedAt: Timestamp

    /// The columns that ``init(row:)`` reads, of the table or alias `i`.
    static let columns: SQLFragment = "i.item_id, i.revision, i.collection, i.created_at, i.updated_at"

    /// Reads the columns of ``columns``.
    init(row: inout RowReader) throws(PostgresError) {
        id = try row.next()
        revision = try row.next()
        collection = try row.next()
        createdAt = try row.next()
        updatedAt = try row.next()
    }

    /// Creates the header of an item that a short path has written.
    init(_ write: WriteItem, _ written: WrittenItem) {
        id = write.id
        revision = written.revision
        collection = written.collection
        createdAt = written.createdAt
        updatedAt = written.updatedAt
    }

    init(_ item: Item) {
        id = item.id
        revision = item.revision
        collection = item.collection
        createdAt = item.createdAt
        updatedAt = item.updatedAt
    }

    /// Writes the members.
    ///
    /// - Parameter isDeleted: True for a tombstone.
    func write(isDeleted: Bool = false, to writer: inout JSONWriter) {
        writer.member("id", id)
        writer.member("revision", revision)
        writer.member("collection", collection)
        writer.member("createdAt", createdAt)
        writer.member("updatedAt", updatedAt)
        writer.member("deleted", isDeleted)
    }
}

/// The outcome of a change of an item, as statements return it.
enum ItemOutcome: String, Sendable, PostgresValue {
    case created
    /// The item may be created, and neither item nor tombstone exists.
    case vacant
    case updated
    /// The item may be replaced, and a version of its content is due first.
    case versionDue = "version_due"
    case deleted
    case restored
    case unchanged
    case notFound = "not_found"
    /// The content of the deleted item is no longer kept.
    case gone
    case preconditionFailed = "precondition_failed"
    case itemQuota = "items"
    case itemByteQuota = "itemBytes"
    case byteQuota = "bytes"
}

/// The result of a change: the outcome, and the item after it or, for a failed precondition, the present one.
struct ItemChange: DecodableRow {
    let outcome: ItemOutcome
    /// The exceeded limit and its usage.
    let allowed: Int64
    let used: Int64
    /// Nil if neither item nor tombstone exists.
    let item: ItemInParts?

    /// Reads outcome, allowed, used, a flag for an item, and ``ItemInParts/columns``.
    init(row: inout RowReader) throws(PostgresError) {
        outcome = try row.next()
        allowed = try row.next()
        used = try row.next()
        let hasItem: Bool = try row.next()
        item = hasItem ? try ItemInParts(row: &row) : nil
    }

    /// Returns true if the precondition has failed and `preconditions` has one for the present revision, to which it
    /// moves.
    func allowsAnother(of preconditions: inout Preconditions) -> Bool {
        outcome == .preconditionFailed && preconditions.move(to: item?.item.revision)
    }

    /// Returns the item after a change, or after one that was not necessary.
    ///
    /// - Parameter items: The change's own, which reads the rest of a long item while it is sent.
    /// - Throws: ``ItemProblem``, 404, or ``Unauthenticated`` if the session ended before the change.
    static func accepted(
        _ changes: [ItemChange], _ items: ItemAccess
    ) throws -> (reply: ItemInReply, outcome: ItemOutcome) {
        guard let change = changes.first else { throw Unauthenticated() }
        switch change.outcome {
        case .created, .updated, .deleted, .restored, .unchanged:
            guard let item = change.item else { throw Problem.internalError }
            return (ItemInReply(found: item, reader: items.reader), change.outcome)
        case .notFound, .vacant:
            throw Problem.notFound
        case .versionDue:
            throw Problem.internalError
        case .gone:
            throw ItemProblem.gone
        case .preconditionFailed:
            throw ItemProblem.preconditionFailed(
                current: change.item.map { ItemInReply(found: $0, reader: items.reader) })
        case .itemQuota, .itemByteQuota, .byteQuota:
            throw ItemProblem.quotaExceeded(
                limit: change.outcome.rawValue, allowed: change.allowed, used: change.used)
        }
    }
}

/// Reasons to reject a change of an item.
enum ItemProblem: ProblemConvertible {
    /// The precondition fails. Contains the present item or tombstone, if any.
    case preconditionFailed(current: ItemInReply?)
    /// The item is deleted and its content removed.
    case gone
    /// The change would exceed a limit of the account's plan.
    case quotaExceeded(limit: String, allowed: Int64, used: Int64)

    var problem: Problem {
        switch self {
        case .preconditionFailed(let current):
            var problem = Problem(
                .preconditionFailed, "precondition_failed",
                detail: "The item does not match the precondition: see `current`.")
            guard let current else {
                problem.members = [(name: "current", value: .null)]
                return problem
            }
            let item = current.found.item
            if item.content != nil { problem.responseFields = ["ETag": item.entityTag] }
            if current.found.isWhole {
                problem.capacity = item.jsonCapacity
                problem.writeMembers = { writer in writer.object("current") { item.write(to: &$0) } }
            } else {
                problem.streamMembers = { writer, body in
                    var output = JSONOutput(body, after: writer)
                    output.writer.name("current")
                    try await current.write(to: &output)
                    output.writer.endObject()
                    try await output.flush()
                }
            }
            return problem
        case .gone:
            return Problem(.gone, "gone", detail: "The item is deleted, and its content has been removed.")
        case .quotaExceeded(let limit, let allowed, let used):
            return Problem(
                .forbidden, "quota_exceeded", detail: "The plan's limit is reached: see `limit`, `allowed` and `used`.",
                members: [
                    (name: "limit", value: .string(limit)), (name: "allowed", value: .integer(allowed)),
                    (name: "used", value: .integer(used)),
                ])
        }
    }
}

/// The service's limits on items, independent of plans.
public struct ItemPolicy: Sendable, Equatable {
    /// Maximum body of a request that writes one item, in bytes of JSON. Base64 adds a third to the sealed bytes, and
    /// line breaks another 3 %.
    public var requestLimit: Int
    /// Maximum body of a request that writes one item as bytes: the limit of the largest plan.
    static let byteLimit = 16 * 1_048_576
    /// True if the format `opaque` is accepted.
    public var acceptsOpaque: Bool

    public init(requestLimit: Int = 2 * 1_048_576, acceptsOpaque: Bool = true) {
        self.requestLimit = requestLimit
        self.acceptsOpaque = acceptsOpaque
    }

    /// The accepted formats.
    var formats: [SealedFormat] { SealedFormat.allCases.filter { acceptsOpaque || $0 != .opaque } }

    /// The errors in the policy, one sentence each.
    var findings: [String] {
        // More would exceed the peak memory of one body.
        (4_096...25_165_824).contains(requestLimit)
            ? [] : ["The limit of a request that writes an item must be from 4096 to 25165824 bytes."]
    }
}
