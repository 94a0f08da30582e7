internal import HTTPCore
internal import Postgres

/// `GET /v1/items/{id}`: returns one live item, 304 if the client has its revision, or 412 if the precondition names
/// another one. The reply is JSON, or the sealed body as bytes if the client prefers that. A long item is fetched while
/// it is sent; if it is replaced meanwhile, the reply ends early.
///
/// `GET /v1/items/{id}/body`: returns the bytes for any `Accept`.
struct ShowItem: ItemEndpoint {
    private static let forms: [StaticString] = ["application/json", "application/octet-stream"]
    private let isAlwaysBytes: Bool

    /// - Parameter isAlwaysBytes: True for the route with bytes only.
    init(isAlwaysBytes: Bool = false) { self.isAlwaysBytes = isAlwaysBytes }

    func respond(to request: Request, items: ItemAccess) async throws -> Response {
        let id: ItemID = try request.parameters.require("id")
        let isBytes = try isAlwaysBytes || Self.wantsBytes(request)
        guard let found = try await items.read(FindItem(id: id)).first else { throw Problem.notFound }
        return try reply(to: request, found, isBytes: isBytes, items.reader)
    }

    private func reply(
        to request: Request, _ found: ItemInParts, isBytes: Bool, _ reader: ItemReader
    ) throws -> Response {
        let item = found.item
        guard let content = item.content else { throw Problem.notFound }
        var fields = HTTPFields()
        fields.append("ETag", item.entityTag)
        if !isAlwaysBytes { fields.append("Vary", "Accept") }
        switch ReadCondition(request.head.fields, revision: item.revision) {
        case .met: break
        case .failed: throw ItemProblem.preconditionFailed(current: ItemInReply(found: found, reader: reader))
        case .notModified: return Response(status: .notModified, fields: fields)
        }
        guard !isBytes else {
            // The properties needed to open the bytes. The title is not, and can be longer than a field may be.
            fields.set("Content-Type", "application/octet-stream")
            fields.set("Saltern-Format", content.format)
            fields.set("Saltern-Collection", item.collection)
            if let iterations = content.iterations { fields.set("Saltern-Iterations", String(iterations)) }
            guard content.body.count < found.bodyByteCount else {
                return Response(status: .ok, fields: fields, body: .bytes(ZeroizingBuffer(content.body)))
            }
            return Response(
                status: .ok, fields: fields,
                body: .stream(
                    ResponseStream(isOpenEnded: false, length: found.bodyByteCount) { body in
                        try await found.writeBody(to: body, reader)
                    }))
        }
        return ItemInReply(found: found, reader: reader).response(fields: consume fields)
    }
}

extension ShowItem {
    private static func wantsBytes(_ request: Request) throws -> Bool {
        guard let form = try AcceptList.best(of: forms, in: request.head.fields) else { throw NotAcceptable() }
        return form == 1
    }
}

/// The error of a client that accepts no form of an item.
struct NotAcceptable: ProblemConvertible {
    var problem: Problem {
        Problem(
            .notAcceptable, "not_acceptable",
            detail: "Accept must allow application/json or application/octet-stream.")
    }
}
