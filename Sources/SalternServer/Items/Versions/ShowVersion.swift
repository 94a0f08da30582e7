internal import HTTPCore

/// `GET /v1/items/{id}/versions/{revision}`: an older version of an item in the form of an item, or 304 when the client has
/// it. A version never changes. The present content is no older version, so its revision is 404 here.
struct ShowVersion: AccountEndpoint {
    func respond(to request: Request, authorization: Authorization) async throws -> Response {
        let id: ItemID = try request.parameters.require("id")
        let revision: Int = try request.parameters.require("revision")
        let find = FindVersion(id: id, revision: Int64(revision), now: authorization.now)
        guard let found = try await authorization.read(find).first else { throw Problem.notFound }
        let version = ItemInReply(found: found, reader: authorization.reader)
        let fields: HTTPFields = ["ETag": found.item.entityTag]
        switch ReadCondition(request.head.fields, revision: found.item.revision) {
        case .met: return version.response(fields: fields)
        case .failed: throw ItemProblem.preconditionFailed(current: version)
        case .notModified: return Response(status: .notModified, fields: fields)
        }
    }
}
