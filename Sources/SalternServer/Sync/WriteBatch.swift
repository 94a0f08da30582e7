internal import HTTPCore

/// `POST /v1/items/batch`: many puts and deletes, all or nothing, in one round trip to the database.
struct WriteBatch: AccountEndpoint {
    /// How many operations a batch may have.
    static let operationLimit = 500
    /// The longest body in bytes of JSON: 500 notes of 12 KiB, or a few large items.
    static let requestLimit = 8 * 1_048_576
    private let formats: [SealedFormat]

    init(_ policy: ItemPolicy) {
        formats = policy.formats
    }

    func respond(to request: Request, authorization: Authorization) async throws -> Response {
        let operations = try JSONBody.read(request) { members in
            try members.array("operations", count: 1...Self.operationLimit) { json, _ in
                try BatchOperation(json: json, formats: formats)
            }
        }
        try Self.refuseDuplicates(operations)
        let rows = try await authorization.write(ApplyBatch(operations: operations))
        guard rows.count == operations.count, let verdict = rows.first?.verdict else { throw Unauthenticated() }
        try Self.accept(verdict, rows, operations)
        return .json(capacity: 64 + rows.count * 80) { writer in
            writer.object { writer in
                writer.array("results") { writer in
                    for (operation, row) in zip(operations, rows) {
                        writer.object { writer in
                            writer.member("id", operation.id.description)
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
        case .accepted: return
        case .conflict:
            var failures: [BatchProblem.Failure] = []
            for (index, row) in rows.enumerated() where row.outcome.isFailure {
                failures.append(
                    BatchProblem.Failure(
                        index: index, id: operations[index].id, outcome: row.outcome, revision: row.revision))
            }
            throw BatchProblem.conflict(failures)
        case .itemQuota, .itemByteQuota, .byteQuota:
            throw ItemProblem.quotaExceeded(
                limit: verdict.rawValue, allowed: rows[0].allowed, used: rows[0].used)
        }
    }
}
