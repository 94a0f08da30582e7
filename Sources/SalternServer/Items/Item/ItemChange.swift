internal import HTTPCore
internal import Postgres

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
