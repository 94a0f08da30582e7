internal import HTTPCore

/// `POST /v1/items/{id}/restore`: restores the kept content of a deleted item.
struct RestoreItem: AccountEndpoint {
    func respond(to request: Request, authorization: Authorization) async throws -> Response {
        let id: ItemID = try request.parameters.require("id")
        var preconditions = try Preconditions(request.head.fields, allowsAbsent: false)
        let (account, now) = (authorization.accountID, authorization.now)
        var changes: [ItemChange]
        repeat {
            let restoration = RestoreItemRow(id: id, precondition: preconditions.current)
            (changes, _) = try await authorization.write(
                restoration, followedBy: StoreRestored(restoration: restoration, accountID: account, now: now),
                ReleaseContents(accountID: account, ids: [id], now: now))
        } while changes.first?.allowsAnother(of: &preconditions) ?? false
        let restored = try ItemChange.accepted(changes, authorization).reply
        return restored.response(fields: ["ETag": restored.item.entityTag])
    }
}
