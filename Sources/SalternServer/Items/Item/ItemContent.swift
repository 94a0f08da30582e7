internal import HTTPCore

/// The content of an item that a client sends.
struct ItemContent: Sendable {
    let format: SealedFormat
    /// Nil if the request names none: an existing item keeps its own, and a new one gets ``CollectionName/standard``.
    let collection: CollectionName?
    let iterations: Int32?
    let title: SealedBytes?
    let body: SealedBytes
}

extension ItemContent {
    /// The members of an item in JSON.
    static let members = ["format", "collection", "iterations", "title", "body"]

    /// Reads the members of an item.
    ///
    /// - Parameters:
    ///   - members: The item's members are removed from it.
    ///   - formats: The accepted formats.
    ///   - hasCollection: True if `collection` is accepted.
    ///   - pace: Yields to other work while sealed bytes are decoded.
    init(_ members: inout JSONMembers, formats: [SealedFormat], hasCollection: Bool = true, pace: Pace) async throws {
        let format = try members.required("format") { json in
            guard let format = SealedFormat(rawValue: try json.string()), formats.contains(format) else {
                throw SealedRefusal.unknownFormat
            }
            return format
        }
        self.format = format
        collection =
            hasCollection ? try members.optional("collection", CollectionName.init(json:)) : nil
        iterations = try members.optional("iterations") { Int32(try $0.integer(in: 1...Int(Int32.max))) }
        title = try await members.optional("title", pace: pace) {
            try await SealedBytes(base64: $0.text(), format: format, pace: pace)
        }
        body = try await members.required("body", pace: pace) {
            try await SealedBytes(base64: $0.text(), format: format, pace: pace)
        }
    }
}
