internal import HTTPCore

/// `GET /v1/items/{id}`: one live item, or 304 when the client has its revision. As JSON, or its sealed body as bytes
/// when the client wants these more.
struct ShowItem: AccountEndpoint {
    private static let bytesType = "application/octet-stream"

    func respond(to request: Request, authorization: Authorization) async throws -> Response {
        let id: ItemID = try request.parameters.require("id")
        guard let form = try AcceptList(request.head.fields).best(of: ["application/json", Self.bytesType]) else {
            throw NotAcceptable()
        }
        guard let item = try await authorization.read(FindItem(id: id)).first, let content = item.content else {
            throw Problem.notFound
        }
        var fields: HTTPFields = ["ETag": item.entityTag, "Vary": "Accept"]
        if let known = request.head.fields["if-none-match"], EntityTagList(known).matches(item.revision) {
            return Response(status: .notModified, fields: fields)
        }
        guard form == 0 else {
            // What is needed to open the bytes. The title is not: it can be longer than a header may be.
            fields.set("Content-Type", Self.bytesType)
            fields.set("Saltern-Format", content.format)
            fields.set("Saltern-Collection", item.collection)
            if let iterations = content.iterations { fields.set("Saltern-Iterations", String(iterations)) }
            return Response(status: .ok, fields: fields, body: .bytes(content.body))
        }
        return .json(fields: fields, capacity: item.jsonCapacity) { writer in
            writer.object { writer in item.write(to: &writer) }
        }
    }
}

/// The client accepts no form that an item has.
struct NotAcceptable: ProblemConvertible {
    var problem: Problem {
        Problem(
            .notAcceptable, "not_acceptable",
            detail: "An item can be had as application/json or application/octet-stream.")
    }
}

/// The `If-None-Match` of a read (RFC 9110 §13.1.2): any number of tags, compared weakly, or `*`.
struct EntityTagList {
    private let tags: [Substring]

    init(_ value: String) {
        tags = value.split(separator: ",").map { tag in
            let tag = tag.drop { $0 == " " || $0 == "\t" }
            let end = tag.lastIndex { $0 != " " && $0 != "\t" }
            return end.map { tag[...$0] } ?? ""
        }
    }

    /// Whether the revision is among the tags.
    func matches(_ revision: Int64) -> Bool {
        let text = EntityTag.text(of: revision)
        return tags.contains { $0 == "*" || $0 == text || ($0.hasPrefix("W/") && $0.dropFirst(2) == text) }
    }
}
