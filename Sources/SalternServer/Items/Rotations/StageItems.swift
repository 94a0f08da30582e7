internal import HTTPCore

/// `PUT /v1/rotations/{id}/items`: stages resealed items. Staging an item again replaces its staged content.
struct StageItems: AccountEndpoint {
    private let formats: [SealedFormat]

    init(_ policy: ItemPolicy) {
        formats = policy.formats
    }

    func respond(to request: Request, authorization: Authorization) async throws -> Response {
        let id: RotationID = try request.parameters.require("id")
        let items = try await JSONBody.readLarge(request) { members in
            try await members.array("items", count: 1...Rotation.batchLimit, pace: request.pace) { json, _ in
                try await StagedItem(json: json, formats: formats, pace: request.pace)
            }
        }
        try Self.refuseDuplicates(items)
        let batch = StageBatch(id: id, items: items)
        let store = StoreStaged(batch: batch, accountID: authorization.accountID)
        var rows = try await authorization.write(batch, followedBy: store)
        if rows.first?.verdict.isFull == true, try await authorization.write(RemoveStrays(id: id)).first ?? 0 > 0 {
            rows = try await authorization.write(batch, followedBy: store)
        }
        guard let row = rows.first else { throw Problem.notFound }
        switch row.verdict {
        case .staged: break
        case .committed: throw RotationProblem.committed
        case .itemQuota, .itemByteQuota, .byteQuota:
            throw ItemProblem.quotaExceeded(limit: row.verdict.rawValue, allowed: row.allowed, used: row.used)
        }
        return .json(capacity: 96 + row.outdated.count * 40) { writer in
            writer.object { writer in
                writer.member("staged", row.items)
                writer.member("bytes", row.bytes)
                writer.array("outdated") { writer in
                    for item in row.outdated { writer.string(item.description) }
                }
            }
        }
    }

    private static func refuseDuplicates(_ items: [StagedItem]) throws(RotationProblem) {
        var seen: Set<ItemID> = []
        seen.reserveCapacity(items.count)
        for (index, item) in items.enumerated() where !seen.insert(item.id).inserted {
            throw .duplicateIdentifier(index: index)
        }
    }
}

/// A resealed item.
struct StagedItem: Sendable {
    let id: ItemID
    /// The revision of the item that was resealed.
    let baseRevision: Int64
    /// The new content. The collection stays.
    let content: ItemContent

    /// The number of sealed bytes.
    var byteCount: Int { content.body.bytes.count + (content.title?.bytes.count ?? 0) }

    /// Reads `{id, ifRevision, format, body, title?, iterations?}`.
    init(json: JSONValue, formats: [SealedFormat], pace: Pace) async throws {
        self = try await JSONMembers.read(json, pace: pace) {
            try await StagedItem(&$0, formats: formats, pace: pace)
        }
    }

    private init(_ members: inout JSONMembers, formats: [SealedFormat], pace: Pace) async throws {
        id = try members.required("id") { json in
            guard let id = ItemID(pathParameter: try json.string()) else { throw BatchProblem.invalidIdentifier }
            return id
        }
        baseRevision = try members.required("ifRevision") { Int64(try $0.integer(in: 1...Int.max)) }
        content = try await ItemContent(&members, formats: formats, hasCollection: false, pace: pace)
    }
}
