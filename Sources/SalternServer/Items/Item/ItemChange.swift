internal import HTTPCore
internal import Postgres

/// What became of a change of an item, as the statements name it.
enum ItemOutcome: String, Sendable, PostgresValue {
    case created
    /// It may be created, and nothing is left of an earlier one.
    case vacant
    case updated
    /// It may be replaced, and its content is due to be kept as a version first.
    case versionDue = "version_due"
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

/// The result of a change: what was decided, and the item after it (or, for a failed precondition, as it is).
struct ItemChange: DecodableRow {
    let outcome: ItemOutcome
    /// The limit that was hit, and how much of it is used.
    let allowed: Int64
    let used: Int64
    /// Nil when there never was such an item.
    let item: ItemInParts?

    /// Reads outcome, allowed, used, whether there is an item, and ``ItemInParts/columns``.
    init(row: inout RowReader) throws(PostgresError) {
        outcome = try row.next()
        allowed = try row.next()
        used = try row.next()
        let hasItem: Bool = try row.next()
        item = hasItem ? try ItemInParts(row: &row) : nil
    }

    /// Returns whether the precondition has failed and `preconditions`, which move on to it, has one that names what is there.
    func allowsAnother(of preconditions: inout Preconditions) -> Bool {
        outcome == .preconditionFailed && preconditions.move(to: item?.item.revision)
    }

    /// The item after a change that was made, or was not needed.
    /// - Parameter authorization: Of the change, to read the rest of a long item while it is sent.
    /// - Throws: ``ItemProblem``, 404, or ``Unauthenticated`` when the session ended before the change.
    static func accepted(
        _ changes: [ItemChange], _ authorization: Authorization
    ) throws -> (reply: ItemInReply, outcome: ItemOutcome) {
        guard let change = changes.first else { throw Unauthenticated() }
        switch change.outcome {
        case .created, .updated, .deleted, .restored, .unchanged:
            guard let item = change.item else { throw Problem.internalError }
            return (ItemInReply(found: item, reader: authorization.reader), change.outcome)
        case .notFound, .vacant:
            throw Problem.notFound
        case .versionDue:
            throw Problem.internalError
        case .gone:
            throw ItemProblem.gone
        case .preconditionFailed:
            throw ItemProblem.preconditionFailed(
                current: change.item.map { ItemInReply(found: $0, reader: authorization.reader) })
        case .itemQuota, .itemByteQuota, .byteQuota:
            throw ItemProblem.quotaExceeded(
                limit: change.outcome.rawValue, allowed: change.allowed, used: change.used)
        }
    }
}
