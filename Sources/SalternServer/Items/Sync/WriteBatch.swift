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
