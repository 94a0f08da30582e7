internal import HTTPCore

/// `GET /v1/items/{id}/versions/{revision}`: returns an older version in the form of an item, or 304 if the client has
/// it. Versions never change. The present content is no older version, so its revision returns 404.
struct ShowVersion: ItemEndpoint {
    func respond(to request: Request, items: ItemAccess) async throws -> Response {
        let id: ItemID = try request.parameters.require("id")
        let revision: Int = try request.parameters.require("revision")
        let find = FindVersion(id: id, revision: Int64(revision), now: items.now)
        guard let found = try await items.read(find).first else { throw Problem.notFound }
        let version = ItemInReply(found: found, reader: items.reader)
        let fields: HTTPFields = ["ETag": found.item.entityTag]
        switch ReadCondition(request.head.fields, revision: found.item.revision) {
        case .met: return version.response(fields: fields)
        case .failed: throw ItemProblem.preconditionFailed(current: version)
        case .notModified: return Response(status: .notModified, fields: fields)
        }
    }
}
