internal import HTTPCore

/// `PUT /v1/items/{id}`: creates or replaces an item.
struct PutItem: AccountEndpoint {
    private let formats: [SealedFormat]

    init(_ policy: ItemPolicy) {
        formats = policy.formats
    }

    func respond(to request: Request, authorization: Authorization) async throws -> Response {
        let id: ItemID = try request.parameters.require("id")
        let precondition = try Precondition(request.head.fields, allowsAbsent: true)
        let content =
            switch request.bodyType {
            case .bytes: try ItemContent(bytes: request, formats: formats)
            case .json, .none: try JSONBody.read(request) { try ItemContent(&$0, formats: formats) }
            }
        let changes = try await authorization.write(
            WriteItem(
                id: id, precondition: precondition, collection: content.collection, format: content.format,
                iterations: content.iterations, title: content.title, body: content.body))
        let (item, outcome) = try ItemChange.accepted(changes)
        return .json(outcome == .created ? .created : .ok, fields: ["ETag": item.entityTag]) { writer in
            writer.object { writer in ItemHeader(item).write(to: &writer) }
        }
    }
}

/// What a client wants an item to be.
struct ItemContent: Sendable {
    let format: SealedFormat
    let collection: CollectionName
    let iterations: Int32?
    let title: SealedBytes?
    let body: SealedBytes
}

extension ItemContent {
    /// Reads the members of an item.
    /// - Parameters:
    ///   - members: They are taken from there.
    ///   - formats: Those that are accepted.
    ///   - hasCollection: Whether there may be a `collection`.
    init(_ members: inout JSONMembers, formats: [SealedFormat], hasCollection: Bool = true) throws {
        let format = try members.required("format") { json in
            guard let format = SealedFormat(rawValue: try json.string()), formats.contains(format) else {
                throw SealedRefusal.unknownFormat
            }
            return format
        }
        self.format = format
        collection =
            hasCollection ? try members.optional("collection", CollectionName.init(json:)) ?? .standard : .standard
        iterations = try members.optional("iterations") { Int32(try $0.integer(in: 1...Int(Int32.max))) }
        title = try members.optional("title") { try SealedBytes(base64: $0.text(), format: format) }
        body = try members.required("body") { try SealedBytes(base64: $0.text(), format: format) }
    }
}
