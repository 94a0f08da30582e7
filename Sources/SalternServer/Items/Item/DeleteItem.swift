internal import HTTPCore

/// `DELETE /v1/items/{id}`: leaves a tombstone, which still syncs.
struct DeleteItem: AccountEndpoint {
    func respond(to request: Request, authorization: Authorization) async throws -> Response {
        let id: ItemID = try request.parameters.require("id")
        let precondition = try Precondition(request.head.fields, allowsAbsent: false)
        let burial = BuryItem(id: id, precondition: precondition)
        if let buried = try await authorization.writeOnShortPath(BuryOneItem(burial: burial)).first {
            return .json { writer in
                writer.object { writer in
                    buried.header.write(isDeleted: true, to: &writer)
                    writer.member("restorableUntil", buried.restorableUntil)
                }
            }
        }
        while true {
            let rows = try await authorization.write(burial)
            if let room = rows.first?.neededRoom {
                _ = try await authorization.write(DropContents(room: room))
                continue
            }
            let tombstone = try ItemChange.accepted(rows.map(\.change), authorization).reply.item
            return .json { writer in
                writer.object { writer in
                    tombstone.write(to: &writer)
                    if let end = rows.first?.restorableUntil { writer.member("restorableUntil", end) }
                }
            }
        }
    }
}
