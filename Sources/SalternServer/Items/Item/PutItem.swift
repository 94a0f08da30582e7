internal import HTTPCore

/// `PUT /v1/items/{id}`, or `PUT /v1/items/{id}/body` with bytes: creates or replaces an item.
struct PutItem: ItemEndpoint {
    private let formats: [SealedFormat]

    init(_ policy: ItemPolicy) {
        formats = policy.formats
    }

    func respond(to request: Request, items: ItemAccess) async throws -> Response {
        let id: ItemID = try request.parameters.require("id")
        var preconditions = try Preconditions(request.head.fields, allowsAbsent: true)
        let content =
            switch request.bodyType {
            case .bytes: try ItemContent(bytes: request, formats: formats)
            case .json, .none:
                try await JSONBody.readLarge(request) {
                    try await ItemContent(&$0, formats: formats, pace: request.pace)
                }
            }
        while true {
            var write = WriteItem(
                id: id, precondition: preconditions.current, collection: content.collection, format: content.format,
                iterations: content.iterations, title: content.title, body: content.body, yieldsToVersions: true)
            if let written = try await Self.writeOnShortPath(write, items) {
                return Self.reply(written, isNew: write.precondition == .absent)
            }
            var changes = try await items.write(write)
            // The obstacle of the short path has disappeared between the two statements.
            if changes.first?.outcome == .vacant { continue }
            if changes.first?.outcome == .versionDue {
                write.yieldsToVersions = false
                guard let replaced = try await items.replaceKeeping(write) else { continue }
                changes = replaced
            }
            if changes.first?.allowsAnother(of: &preconditions) ?? false { continue }
            let (reply, outcome) = try ItemChange.accepted(changes, items)
            return Self.reply(ItemHeader(reply.item), isNew: outcome == .created)
        }
    }

    private static func writeOnShortPath(
        _ write: WriteItem, _ items: ItemAccess
    ) async throws -> ItemHeader? {
        let (owner, now) = (items.owner, items.now)
        guard write.precondition == .absent else {
            if let written = try await items.writeOnShortPath(ReplaceItem(write: write)).first {
                return ItemHeader(write, written)
            }
            guard write.sealedByteCount <= Authorization.sharedByteLimit else { return nil }
            let replacement = ReplaceKeeping(write: write)
            return try await items.writeOnShortPath(
                replacement, followedBy: KeepReplaced(replacement: replacement, owner: owner, now: now),
                StoreReplacement(replacement: replacement, owner: owner, now: now)
            ).last.first
        }
        let creation = CreateItem(write: write)
        let store = StoreNewItem(creation: creation, owner: owner, now: now)
        return try await items.writeOnShortPath(creation, followedBy: store, of: write.sealedByteCount).first
            .map { ItemHeader(write, $0) }
    }

    private static func reply(_ item: ItemHeader, isNew: Bool) -> Response {
        .json(isNew ? .created : .ok, fields: ["ETag": EntityTag.text(of: item.revision)]) { writer in
            writer.object { writer in item.write(to: &writer) }
        }
    }
}
