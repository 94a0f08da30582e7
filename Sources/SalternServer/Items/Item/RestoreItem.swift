internal import HTTPCore

/// `POST /v1/items/{id}/restore`: restores the kept content of a deleted item.
struct RestoreItem: ItemEndpoint {
    func respond(to request: Request, items: ItemAccess) async throws -> Response {
        let id: ItemID = try request.parameters.require("id")
        var preconditions = try Preconditions(request.head.fields, allowsAbsent: false)
        let (owner, now) = (items.owner, items.now)
        var changes: [ItemChange]
        repeat {
            let restoration = RestoreItemRow(id: id, precondition: preconditions.current)
            (changes, _) = try await items.write(
                restoration, followedBy: StoreRestored(restoration: restoration, owner: owner, now: now),
                ReleaseContents(owner: owner, ids: [id], now: now))
        } while changes.first?.allowsAnother(of: &preconditions) ?? false
        let restored = try ItemChange.accepted(changes, items).reply
        return restored.response(fields: ["ETag": restored.item.entityTag])
    }
}
