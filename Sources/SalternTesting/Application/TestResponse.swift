public import HTTPCore

/// A reply, with access to its parts for tests.
public struct TestResponse: Sendable, CustomStringConvertible {
    public let status: Int
    public let fields: HTTPFields
    public let body: [UInt8]
    /// The length that the reply announces.
    public let length: Int?

    init(_ response: Response, body: [UInt8]) {
        status = Int(response.status.code)
        fields = response.fields
        length = response.body.count
        self.body = body
    }

    /// Creates a reply from one line of a reply with many documents.
    public init(line: [UInt8]) {
        status = 200
        fields = HTTPFields()
        body = line
        length = line.count
    }

    /// The body as text.
    public var text: String { String(decoding: body, as: UTF8.self) }

    /// Returns the value at a path such as `session.token` or `items.0.id`, or nil without one.
    public subscript(path: String) -> JSONValue? {
        guard var value = try? JSONParser().parse(body) else { return nil }
        for part in path.split(separator: ".") {
            switch value {
            case .object(let object):
                guard let member = object[String(part)] else { return nil }
                value = member
            case .array(let elements):
                guard let index = Int(part), elements.indices.contains(index) else { return nil }
                value = elements[index]
            default: return nil
            }
        }
        return value
    }

    /// Returns the text at a path.
    public func string(_ path: String) -> String? { try? self[path]?.string() }

    /// Returns the integer at a path.
    public func integer(_ path: String) -> Int? { (try? self[path]?.integer()).flatMap { $0.map(Int.init) } }

    /// Returns the Boolean at a path.
    public func bool(_ path: String) -> Bool? { (try? self[path]?.bool()).flatMap { $0 } }

    /// Returns the elements of the array at a path.
    public func array(_ path: String) -> [JSONValue]? { (try? self[path]?.array()).flatMap { $0 } }

    /// The stable code of a problem.
    public var code: String? { string("code") }

    public var description: String { "\(status) \(text)" }
}
