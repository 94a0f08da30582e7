internal import HTTPCore

/// `GET /v1/items/{id}/versions`: lists the kept older versions of an item, latest first, without their sealed bytes. A
/// deleted item keeps its versions until they expire.
struct ListVersions: ItemEndpoint {
    func respond(to request: Request, items: ItemAccess) async throws -> Response {
        let id: ItemID = try request.parameters.require("id")
        let limit = try PageSize.limit(of: request)
        let page: VersionPage = try request.query.optional("page") ?? .first(of: id)
        guard page.item == id else {
            throw Problem(
                .badRequest, "invalid_parameter", detail: "Send `page` with the item of the first page.",
                field: "page")
        }
        var versions = try await items.read(
            FindVersions(page: page, now: items.now, limit: Int64(limit) + 1))
        if versions.isEmpty, try await items.read(HasItem(id: id)).isEmpty { throw Problem.notFound }
        var next: VersionPage?
        if versions.count > limit {
            versions.removeLast()
            next = versions.last.map { VersionPage(item: id, before: $0.header.revision) }
        }
        return .json(capacity: 64 + versions.count * 224) { writer in
            writer.object { writer in
                writer.array("versions") { writer in
                    for version in versions { writer.object { writer in version.write(to: &writer) } }
                }
                if let next { writer.member("nextPage", next.text) }
            }
        }
    }
}
