internal import Cryptography
internal import HTTPCore
internal import Postgres

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

extension ItemContent {
    /// The query parameters with a body of bytes: the other members of an item.
    static let parameters = ["format", "collection", "iterations", "title"]

    /// Reads an item from a body of bytes and query parameters, with the rules of the JSON members. `title` is
    /// base64url, which URLs can contain.
    init(bytes request: Request, formats: [SealedFormat]) throws(Problem) {
        let query = request.query
        let name: String = try query.require("format")
        guard let format = SealedFormat(rawValue: name), formats.contains(format) else {
            throw SealedRefusal.unknownFormat.problem(of: "format")
        }
        var collection: CollectionName?
        if let name = query["collection"] {
            do throws(Problem) {
                collection = try CollectionName(json: .string(name))
            } catch {
                var problem = error
                problem.field = "collection"
                throw problem
            }
        }
        let iterations: Int32? = try query.optional("iterations", as: IterationCount.self)?.value
        var title: SealedBytes?
        if let bytes = try query.optional("title", as: Base64URLText.self)?.bytes {
            title = try Self.sealed(bytes, format, field: "title")
        }
        self.init(
            format: format, collection: collection, iterations: iterations, title: title,
            body: try Self.sealed(Array(request.takeBody()), format, field: "body"))
    }

    private static func sealed(_ bytes: [UInt8], _ format: SealedFormat, field: String) throws(Problem) -> SealedBytes {
        do throws(SealedRefusal) {
            return try SealedBytes(bytes, format: format)
        } catch {
            throw error.problem(of: field)
        }
    }
}

extension SealedRefusal {
    fileprivate func problem(of field: String) -> Problem {
        var problem = problem
        problem.field = field
        return problem
    }
}

/// A number from 1 to 2^31 - 1, decimal, without leading zeros.
private struct IterationCount: PathParameterConvertible {
    let value: Int32

    init?(pathParameter text: String) {
        guard text.utf8.allSatisfy({ (0x30...0x39).contains($0) }), !text.hasPrefix("0"), let value = Int32(text) else {
            return nil
        }
        self.value = value
    }
}

/// Base64url without padding.
private struct Base64URLText: PathParameterConvertible {
    let bytes: [UInt8]

    init?(pathParameter text: String) {
        guard let bytes = Base64Text.decodeURL(text) else { return nil }
        self.bytes = bytes
    }
}

/// The name of a group of items, visible to the server: 1 to 32 of `a-z`, `0-9` and `-`.
struct CollectionName: Sendable, Hashable {
    let name: String

    /// The collection of an item that names none.
    static let standard = CollectionName(unchecked: "default")

    /// The same as an SQL literal.
    static let standardSQL: SQLFragment = "'default'"

    private init(unchecked name: String) {
        self.name = name
    }

    init?(_ name: String) {
        guard (1...32).contains(name.utf8.count), name.utf8.allSatisfy(Self.isAllowed) else { return nil }
        self.name = name
    }

    init(json: JSONValue) throws(Problem) {
        guard let collection = CollectionName(try json.string()) else {
            throw Problem(
                .unprocessableContent, "invalid_collection",
                detail: "A collection name must have 1 to 32 of the characters a-z, 0-9 and -.")
        }
        self = collection
    }

    private static func isAllowed(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"): true
        default: false
        }
    }
}

extension CollectionName: PathParameterConvertible {
    init?(pathParameter text: String) { self.init(text) }
}
