internal import HTTPCore
internal import Postgres

/// `DELETE /v1/items/{id}`: replaces the item by a tombstone, which still syncs.
struct DeleteItem: ItemEndpoint {
    func respond(to request: Request, items: ItemAccess) async throws -> Response {
        let id: ItemID = try request.parameters.require("id")
        var preconditions = try Preconditions(request.head.fields, allowsAbsent: false)
        var decision = DecideDeletion(id: id, precondition: preconditions.current)
        let (owner, now) = (items.owner, items.now)
        var keep = ArchiveContent(decision: decision, owner: owner, now: now)
        var leave = WriteTombstone(decision: decision, owner: owner, now: now)
        let (burials, headers) = try await items.writeOnShortPath(
            DeleteOneItem(decision: decision), followedBy: keep, leave)
        if let days = burials.first?.days, let header = headers.first {
            let end = header.updatedAt + .seconds(86_400 * Int64(days))
            return Self.reply(until: end) { header.write(isDeleted: true, to: &$0) }
        }
        while true {
            let rows = try await items.write(decision, followedBy: keep, leave).first
            if let room = rows.first?.neededRoom {
                try await items.makeRoom(room)
                continue
            }
            if rows.first?.change.allowsAnother(of: &preconditions) ?? false {
                decision = DecideDeletion(id: id, precondition: preconditions.current)
                keep = ArchiveContent(decision: decision, owner: owner, now: now)
                leave = WriteTombstone(decision: decision, owner: owner, now: now)
                continue
            }
            let tombstone = try ItemChange.accepted(rows.map(\.change), items).reply.item
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
