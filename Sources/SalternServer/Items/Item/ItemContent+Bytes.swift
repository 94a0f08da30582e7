internal import HTTPCore

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
