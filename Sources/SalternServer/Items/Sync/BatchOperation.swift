internal import HTTPCore
internal import Postgres

/// One operation of a batch.
struct BatchOperation: Sendable {
    let id: ItemID
    /// The item's last revision in the client. 0 requires that the item does not exist; nil accepts any state.
    let ifRevision: Int64?
    /// The item's new content. Nil to delete it.
    let content: ItemContent?

    /// The number of sealed bytes.
    var byteCount: Int { content.map { $0.body.bytes.count + ($0.title?.bytes.count ?? 0) } ?? 0 }
}

extension BatchOperation {
    private enum Kind: String {
        case put
        case delete
    }

    /// Reads `{op: "put", id, ifRevision?, format, body, …}` or `{op: "delete", id, ifRevision?}`.
    init(json: JSONValue, formats: [SealedFormat], pace: Pace) async throws {
        self = try await JSONMembers.read(json, pace: pace) {
            try await BatchOperation(&$0, formats: formats, pace: pace)
        }
    }

    private init(_ members: inout JSONMembers, formats: [SealedFormat], pace: Pace) async throws {
        let kind = try members.required("op") { json in
            guard let kind = Kind(rawValue: try json.string()) else { throw BatchProblem.unknownOperation }
            return kind
        }
        id = try members.required("id") { json in
            guard let id = ItemID(pathParameter: try json.string()) else { throw BatchProblem.invalidIdentifier }
            return id
        }
        // A deletion cannot require that the item does not exist.
        let lowest = kind == .put ? 0 : 1
        ifRevision = try members.optional("ifRevision") { Int64(try $0.integer(in: lowest...Int.max)) }
        guard kind == .delete else {
            content = try await ItemContent(&members, formats: formats, pace: pace)
            return
        }
        // Generated clients have one type for both operations, and some send unset members as null.
        for name in ItemContent.members { members.skipNull(name) }
        content = nil
    }
}

/// The outcome of one operation.
enum BatchOutcome: String, Sendable, PostgresValue {
    case created
    case updated
    case deleted
    /// The item already has the requested state.
    case unchanged
    case preconditionFailed = "precondition_failed"
    case notFound = "not_found"

    var isFailure: Bool { self == .preconditionFailed || self == .notFound }
}

/// Reasons to reject a batch. Nothing of it was applied.
enum BatchProblem: ProblemConvertible {
    /// `op` is neither `put` nor `delete`.
    case unknownOperation
    /// An `id` is not a UUID.
    case invalidIdentifier
    /// An item is named twice. Contains the index of the second operation.
    case duplicateIdentifier(index: Int)
    /// The items to delete are longer than a batch may delete.
    case tooMuchDeleted
    /// Operations that failed.
    case conflict([Failure])

    /// An operation that failed.
    struct Failure: Sendable {
        let index: Int
        let id: ItemID
        let outcome: BatchOutcome
        /// The revision of the item or its tombstone. Nil if neither exists.
        let revision: Int64?
    }

    var problem: Problem {
        switch self {
        case .unknownOperation:
            Problem(.unprocessableContent, "unknown_operation", detail: "`op` must be `put` or `delete`.")
        case .invalidIdentifier:
            Problem(.unprocessableContent, "invalid_id", detail: "An item's id must be a UUID.")
        case .duplicateIdentifier(let index):
            Problem(
                .unprocessableContent, "duplicate_id",
                detail: "`operations` names an item more than once. Send each item once.",
                field: "operations[\(index)].id")
        case .tooMuchDeleted:
            Problem(
                .unprocessableContent, "batch_too_large",
                detail: "The deleted items are too long for one batch. Send fewer deletions. Nothing was changed.",
                field: "operations", limit: Int(ApplyBatch.deletedByteLimit))
        case .conflict(let failures):
            Problem(
                .conflict, "batch_conflict", detail: "Some operations failed: see `conflicts`. Nothing was changed.",
                members: [(name: "conflicts", value: .array(failures.map(Self.value(of:))))])
        }
    }

    private static func value(of failure: Failure) -> JSONValue {
        [
            "index": .integer(Int64(failure.index)), "id": .string(failure.id.description),
            "code": .string(failure.outcome.rawValue), "revision": failure.revision.map { .integer($0) } ?? .null,
        ]
    }
}
