internal import HTTPCore
internal import Postgres

/// `POST /v1/items/batch`: applies several puts and deletes, all or none.
struct WriteBatch: ItemEndpoint {
    /// Maximum number of operations.
    static let operationLimit = 500
    /// Maximum body in bytes of JSON: 500 notes of 12 KiB, or a few large items.
    static let requestLimit = 8 * 1_048_576
    /// Maximum number of JSON values: all members of as many operations, and a few others.
    static let valueLimit = operationLimit * 9 + 64
    private let formats: [SealedFormat]

    init(_ policy: ItemPolicy) {
        formats = policy.formats
    }

    func respond(to request: Request, items: ItemAccess) async throws -> Response {
        let operations = try await JSONBody.readLarge(request) { members in
            try await members.array("operations", count: 1...Self.operationLimit, pace: request.pace) { json, _ in
                try await BatchOperation(json: json, formats: formats, pace: request.pace)
            }
        }
        try Self.refuseDuplicates(operations)
        let revisions =
            if let puts = Puts(operations), let last = try await Self.write(puts, items) {
                operations.indices.map { last - puts.count + Int64($0) + 1 }
            } else {
                try await Self.write(operations, items)
            }
        return .json(capacity: 64 + revisions.count * 80) { writer in
            writer.object { writer in
                writer.array("results") { writer in
                    for (operation, revision) in zip(operations, revisions) {
                        writer.object { writer in
                            writer.member("id", operation.id)
                            writer.member("revision", revision)
                        }
                    }
                }
            }
        }
    }

    /// Applies puts on the short path.
    ///
    /// - Returns: The last of their revisions, which follow the order of operations. Nil if nothing was changed, for
    ///   any reason.
    private static func write(_ puts: Puts, _ items: ItemAccess) async throws -> Int64? {
        let weighing = MeasurePuts(puts: puts)
        return try await items.transaction(after: weighing) { transaction, rows in
            guard let effect = rows.first.flatMap(weighing.effect(on:)) else { return nil }
            return try await transaction.store(puts, effect, now: items.now)
        }
    }

    /// Applies any batch.
    ///
    /// - Returns: The revision of each item after it.
    private static func write(
        _ operations: [BatchOperation], _ items: ItemAccess
    ) async throws -> [Int64] {
        let batch = ApplyBatch(operations: operations)
        var rows = try await Self.apply(batch, items)
        while let first = rows.first, first.verdict == .roomNeeded {
            let room = NeededRoom(items: first.allowed, bytes: first.used)
            try await items.makeRoom(room)
            rows = try await Self.apply(batch, items)
        }
        guard rows.count == operations.count, let verdict = rows.first?.verdict else { throw Unauthenticated() }
        try Self.accept(verdict, rows, operations)
        return rows.map { $0.revision ?? 0 }
    }

    private static func apply(_ batch: ApplyBatch, _ items: ItemAccess) async throws -> [ApplyBatch.Row] {
        let now = items.now
        return try await items.transaction(after: batch) { transaction, rows in
            try await transaction.store(batch, rows, now: now)
            return rows
        }
    }

    private static func refuseDuplicates(_ operations: [BatchOperation]) throws(BatchProblem) {
        var seen: Set<ItemID> = []
        seen.reserveCapacity(operations.count)
        for (index, operation) in operations.enumerated() where !seen.insert(operation.id).inserted {
            throw .duplicateIdentifier(index: index)
        }
    }

    private static func accept(
        _ verdict: ApplyBatch.Verdict, _ rows: [ApplyBatch.Row], _ operations: [BatchOperation]
    ) throws {
        switch verdict {
        case .accepted, .roomNeeded: return
        case .conflict:
            var failures: [BatchProblem.Failure] = []
            for (index, row) in rows.enumerated() where row.outcome.isFailure {
                failures.append(
                    BatchProblem.Failure(
                        index: index, id: operations[index].id, outcome: row.outcome, revision: row.revision))
            }
            throw BatchProblem.conflict(failures)
        case .tooMuchDeleted: throw BatchProblem.tooMuchDeleted
        case .itemQuota, .itemByteQuota, .byteQuota:
            throw ItemProblem.quotaExceeded(
                limit: verdict.rawValue, allowed: rows[0].allowed, used: rows[0].used)
        }
    }
}

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
            Problem(.unprocessableContent, "invalid_id", detail: "An id must be a UUID.")
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
