internal import HTTPCore
internal import Postgres

/// What became of a change of an item, as the statements name it.
enum ItemOutcome: String, Sendable {
    case created
    case updated
    case deleted
    case restored
    case unchanged
    case notFound = "not_found"
    /// What the item held is not kept any more.
    case gone
    case preconditionFailed = "precondition_failed"
    case itemQuota = "items"
    case itemByteQuota = "itemBytes"
    case byteQuota = "bytes"
}

extension ItemOutcome: PostgresValue {
    static var postgresType: PostgresType { .text }

    func encode(to writer: inout ByteWriter) { rawValue.encode(to: &writer) }

    static func decode(_ bytes: UnsafeRawBufferPointer?) -> ItemOutcome? {
        String.decode(bytes).flatMap(ItemOutcome.init(rawValue:))
    }
}

/// The result of a change: what was decided, and the item after it (or, for a failed precondition, as it is).
struct ItemChange: Sendable {
    let outcome: ItemOutcome
    /// The limit that was hit, and how much of it is used.
    let allowed: Int64
    let used: Int64
    /// Nil when there never was such an item.
    let item: Item?

    /// Reads outcome, allowed, used, whether there is an item, and ``Item/columns``.
    init(row: inout RowReader) throws(PostgresError) {
        outcome = try row.next()
        allowed = try row.next()
        used = try row.next()
        let hasItem: Bool = try row.next()
        item = hasItem ? try Item(row: &row) : nil
    }

    /// The item after a change that was made, or was not needed.
    /// - Throws: ``ItemProblem``, 404, or ``Unauthenticated`` when the session ended before the change.
    static func accepted(_ changes: [ItemChange]) throws -> (item: Item, outcome: ItemOutcome) {
        guard let change = changes.first else { throw Unauthenticated() }
        switch change.outcome {
        case .created, .updated, .deleted, .restored, .unchanged:
            guard let item = change.item else { throw Problem.internalError }
            return (item, change.outcome)
        case .notFound:
            throw Problem.notFound
        case .gone:
            throw ItemProblem.gone
        case .preconditionFailed:
            throw ItemProblem.preconditionFailed(current: change.item)
        case .itemQuota, .itemByteQuota, .byteQuota:
            throw ItemProblem.quotaExceeded(
                limit: change.outcome.rawValue, allowed: change.allowed, used: change.used)
        }
    }
}
