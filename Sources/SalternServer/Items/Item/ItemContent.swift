internal import HTTPCore

/// What a client wants an item to be.
struct ItemContent: Sendable {
    let format: SealedFormat
    /// Nil when the client names none: an item that exists keeps its own, another one gets ``CollectionName/standard``.
    let collection: CollectionName?
    let iterations: Int32?
    let title: SealedBytes?
    let body: SealedBytes
}

extension ItemContent {
    /// The members of an item in JSON.
    static let members = ["format", "collection", "iterations", "title", "body"]

    /// Reads the members of an item.
    /// - Parameters:
    ///   - members: They are taken from there.
    ///   - formats: Those that are accepted.
    ///   - hasCollection: Whether there may be a `collection`.
    ///   - pace: How others have their turn while sealed bytes are decoded.
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
