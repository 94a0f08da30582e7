internal import HTTPCore

/// `POST /v1/items/batch`: many puts and deletes, all or nothing, in one round trip to the database.
struct WriteBatch: AccountEndpoint {
    /// How many operations a batch may have.
    static let operationLimit = 500
    /// The longest body in bytes of JSON: 500 notes of 12 KiB, or a few large items.
    static let requestLimit = 8 * 1_048_576
    /// How many values a body may have: those of as many operations with all their members, and room for a few.
    static let valueLimit = operationLimit * 9 + 64
    private let formats: [SealedFormat]

    init(_ policy: ItemPolicy) {
        formats = policy.formats
    }

    func respond(to request: Request, authorization: Authorization) async throws -> Response {
        let operations = try await JSONBody.readLarge(request) { members in
            try await members.array("operations", count: 1...Self.operationLimit, pace: request.pace) { json, _ in
                try await BatchOperation(json: json, formats: formats, pace: request.pace)
            }
        }
        try Self.refuseDuplicates(operations)
        let batch = ApplyBatch(operations: operations)
        var rows = try await authorization.write(batch)
        while let first = rows.first, first.verdict == .roomNeeded {
            let room = NeededRoom(items: first.allowed, bytes: first.used)
            _ = try await authorization.write(DropContents(room: room))
            rows = try await authorization.write(batch)
        }
        guard rows.count == operations.count, let verdict = rows.first?.verdict else { throw Unauthenticated() }
        try Self.accept(verdict, rows, operations)
        return .json(capacity: 64 + rows.count * 80) { writer in
            writer.object { writer in
                writer.array("results") { writer in
                    for (operation, row) in zip(operations, rows) {
                        writer.object { writer in
                            writer.member("id", operation.id)
                            writer.member("revision", row.revision ?? 0)
                        }
                    }
                }
            }
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
