internal import HTTPCore
internal import Postgres

/// `DELETE /v1/items/{id}`: leaves a tombstone, which still syncs.
struct DeleteItem: AccountEndpoint {
    func respond(to request: Request, authorization: Authorization) async throws -> Response {
        let id: ItemID = try request.parameters.require("id")
        let precondition = try Precondition(request.head.fields, allowsAbsent: false)
        let burial = BuryItem(id: id, precondition: precondition)
        let (account, now) = (authorization.accountID, authorization.now)
        let keep = KeepContent(burial: burial, accountID: account, now: now)
        let leave = LeaveTombstone(burial: burial, accountID: account, now: now)
        let (burials, headers) = try await authorization.writeOnShortPath(
            BuryOneItem(burial: burial), followedBy: keep, leave)
        if let days = burials.first?.days, let header = headers.first {
            let end = header.updatedAt + .seconds(86_400 * Int64(days))
            return Self.reply(until: end) { header.write(isDeleted: true, to: &$0) }
        }
        while true {
            let rows = try await authorization.write(burial, followedBy: keep, leave).first
            if let room = rows.first?.neededRoom {
                _ = try await authorization.write(DropContents(room: room))
                continue
            }
            let tombstone = try ItemChange.accepted(rows.map(\.change), authorization).reply.item
            return Self.reply(until: rows.first?.restorableUntil) { tombstone.write(to: &$0) }
        }
    }

    private static func reply(until end: Timestamp?, _ tombstone: (inout JSONWriter) -> Void) -> Response {
        .json { writer in
            writer.object { writer in
                tombstone(&writer)
                if let end { writer.member("restorableUntil", end) }
            }
        }
    }
}
