internal import HTTPCore

/// `DELETE /v1/items/{id}`: leaves a tombstone, which still syncs.
struct DeleteItem: AccountEndpoint {
    func respond(to request: Request, authorization: Authorization) async throws -> Response {
        let id: ItemID = try request.parameters.require("id")
        let precondition = try Precondition(request.head.fields, allowsAbsent: false)
        let changes = try await authorization.write(BuryItem(id: id, precondition: precondition))
        let tombstone = try ItemChange.accepted(changes).item
        return .json { writer in
            writer.object { writer in tombstone.write(to: &writer) }
        }
    }
}
