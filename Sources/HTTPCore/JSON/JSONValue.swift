/// A JSON value (RFC 8259). Integers are exact; an object keeps the order of its members and has no name twice.
public enum JSONValue: Sendable, Hashable {
    case null
    case bool(Bool)
    /// A number that is an integer and fits, however it is written: `600000.0` is one (JSON Schema 2020-12, §6.1.1).
    case integer(Int64)
    /// Any other number; always finite.
    case double(Double)
    case string(JSONString)
    case array([JSONValue])
    case object(JSONObject)

    /// Text as a value.
    public static func string(_ text: String) -> JSONValue { .string(JSONString(text)) }

    /// What the value is, in the words of RFC 8259.
    public var kind: String {
        switch self {
        case .null: "null"
        case .bool: "boolean"
        case .integer, .double: "number"
        case .string: "string"
        case .array: "array"
        case .object: "object"
        }
    }

    /// Whether an object with a member of this name is anywhere in the value.
    public func contains(memberNamed name: String) -> Bool {
        switch self {
        case .array(let elements): elements.contains { $0.contains(memberNamed: name) }
        case .object(let object):
            object.members.contains { $0.name == name || $0.value.contains(memberNamed: name) }
        default: false
        }
    }
}

/// The members of a JSON object in their order.
public struct JSONObject: Sendable, Hashable {
    public struct Member: Sendable, Hashable {
        public let name: JSONString
        public let value: JSONValue

        public init(name: JSONString, value: JSONValue) {
            self.name = name
            self.value = value
        }
    }

    public let members: [Member]

    /// Takes members whose names the caller knows to be different.
    package init(unique members: [Member]) {
        self.members = members
    }

    /// An object of the program's own making; a name that comes twice is a programming error.
    public init(_ members: [(name: String, value: JSONValue)]) {
        precondition(Set(members.map(\.name)).count == members.count, "a member is named once")
        self.members = members.map { Member(name: JSONString($0.name), value: $0.value) }
    }

    /// The value of a member. Takes time in proportion to the number of members.
    public subscript(name: String) -> JSONValue? {
        members.first { $0.name == name }?.value
    }
}

extension JSONValue: ExpressibleByStringLiteral, ExpressibleByIntegerLiteral, ExpressibleByBooleanLiteral,
    ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral
{
    public init(stringLiteral value: String) { self = .string(value) }
    public init(integerLiteral value: Int64) { self = .integer(value) }
    public init(booleanLiteral value: Bool) { self = .bool(value) }
    public init(arrayLiteral elements: JSONValue...) { self = .array(elements) }
    public init(dictionaryLiteral elements: (String, JSONValue)...) {
        self = .object(JSONObject(elements.map { (name: $0.0, value: $0.1) }))
    }
}
