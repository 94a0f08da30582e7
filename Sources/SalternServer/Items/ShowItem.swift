internal import HTTPCore

/// `GET /v1/items/{id}`: one live item, or 304 when the client has its revision.
struct ShowItem: AccountEndpoint {
    func respond(to request: Request, authorization: Authorization) async throws -> Response {
        let id: ItemID = try request.parameters.require("id")
        guard let item = try await authorization.read(FindItem(id: id)).first else { throw Problem.notFound }
        let fields: HTTPFields = ["ETag": item.entityTag]
        if let known = request.head.fields["if-none-match"], EntityTagList(known).matches(item.revision) {
            return Response(status: .notModified, fields: fields)
        }
        return .json(fields: fields, capacity: item.jsonCapacity) { writer in
            writer.object { writer in item.write(to: &writer) }
        }
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
