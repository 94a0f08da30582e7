/// A JSON value (RFC 8259). Integers are exact. An object keeps the order of its members and has no duplicate names.
public enum JSONValue: Sendable, Hashable {
    case null
    case bool(Bool)
    /// An integer that fits, in any form: `600000.0` is one (JSON Schema 2020-12, §6.1.1).
    case integer(Int64)
    /// Any other number, always finite.
    case double(Double)
    case string(JSONString)
    case array([JSONValue])
    case object(JSONObject)

    /// Returns text as a value.
    public static func string(_ text: String) -> JSONValue { .string(JSONString(text)) }

    /// The type of the value, in the words of RFC 8259.
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

    /// Returns whether an object anywhere in the value has a member of this name.
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

    /// Creates an object from members with unique names, without a check.
    package init(unique members: [Member]) {
        self.members = members
    }

    /// Creates an object of the program. A duplicate name is a programming error.
    public init(_ members: [(name: String, value: JSONValue)]) {
        precondition(Set(members.map(\.name)).count == members.count, "a member is named once")
        self.members = members.map { Member(name: JSONString($0.name), value: $0.value) }
    }

    /// Returns the value of a member. Takes time in proportion to the number of members.
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

/// Reads the value as one type. Each method throws a 422 `wrong_type` for other types.
extension JSONValue {
    public func text() throws(Problem) -> JSONString {
        guard case .string(let text) = self else { throw JSONMembers.wrongType(expected: "string") }
        return text
    }

    public func string() throws(Problem) -> String {
        try text().string
    }

    public func integer() throws(Problem) -> Int64 {
        guard case .integer(let value) = self else { throw JSONMembers.wrongType(expected: "integer") }
        return value
    }

    /// Reads an integer within bounds. Throws 422 `out_of_range` with the bound as `limit` outside them.
    public func integer(in range: ClosedRange<Int>) throws(Problem) -> Int {
        let value = try integer()
        guard let value = Int(exactly: value), range.contains(value) else {
            throw Problem(
                .unprocessableContent, "out_of_range",
                detail: "The number must be from \(range.lowerBound) to \(range.upperBound).",
                limit: value > Int64(range.upperBound) ? range.upperBound : range.lowerBound)
        }
        return value
    }

    public func bool() throws(Problem) -> Bool {
        guard case .bool(let value) = self else { throw JSONMembers.wrongType(expected: "boolean") }
        return value
    }

    public func array() throws(Problem) -> [JSONValue] {
        guard case .array(let elements) = self else { throw JSONMembers.wrongType(expected: "array") }
        return elements
    }

    public func object() throws(Problem) -> JSONObject {
        guard case .object(let object) = self else { throw JSONMembers.wrongType(expected: "object") }
        return object
    }
}

extension JSONMembers {
    public mutating func string(_ name: String) throws -> String {
        try required(name) { try $0.string() }
    }

    public mutating func text(_ name: String) throws -> JSONString {
        try required(name) { try $0.text() }
    }

    public mutating func integer(_ name: String, in range: ClosedRange<Int>) throws -> Int {
        try required(name) { try $0.integer(in: range) }
    }

    public mutating func bool(_ name: String) throws -> Bool {
        try required(name) { try $0.bool() }
    }
}

/// A string of a JSON document as UTF-8 bytes. It is a slice of the document, so a megabyte of base64 is not copied.
///
/// A key in it is only in memory that is zeroed at its release. Two strings are equal when their bytes are, without
/// Unicode normalisation.
public struct JSONString: Sendable {
    private let storage: ZeroizingBuffer
    private let start: UInt32
    private let end: UInt32

    /// Creates a slice of `storage` that is valid UTF-8. A document is shorter than 4 GiB.
    package init(storage: ZeroizingBuffer, range: Range<Int>) {
        self.storage = storage
        start = UInt32(range.lowerBound)
        end = UInt32(range.upperBound)
    }

    public init(_ string: String) {
        self.init(storage: ZeroizingBuffer(string.utf8), range: 0..<string.utf8.count)
    }

    /// Takes ASCII bytes, such as base64, unchanged. A byte above 0x7F is a programming error.
    public init(ascii bytes: [UInt8]) {
        precondition(bytes.allSatisfy { $0 < 0x80 }, "these bytes are ASCII")
        self.init(storage: ZeroizingBuffer(bytes), range: 0..<bytes.count)
    }

    /// The bytes, without a copy.
    public var utf8: Slice<ZeroizingBuffer> { storage[Int(start)..<Int(end)] }

    /// The number of UTF-8 bytes.
    public var count: Int { Int(end - start) }

    public var isEmpty: Bool { start == end }

    /// The text, copied.
    public var string: String { withUTF8 { String(decoding: $0, as: UTF8.self) } }

    /// Calls `body` with the bytes, without a copy.
    public func withUTF8<Result, Failure: Error>(
        _ body: (UnsafeBufferPointer<UInt8>) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try storage.withUnsafeBytes { bytes throws(Failure) in
            try body(UnsafeRawBufferPointer(rebasing: bytes[Int(start)..<Int(end)]).assumingMemoryBound(to: UInt8.self))
        }
    }
}

extension JSONString: Hashable {
    public static func == (left: JSONString, right: JSONString) -> Bool {
        left.count == right.count && left.withUTF8 { left in right.withUTF8 { left.elementsEqual($0) } }
    }

    public func hash(into hasher: inout Hasher) {
        withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
    }

    /// Compares with text, without creating a `String`.
    public static func == (left: JSONString, right: String) -> Bool {
        left.count == right.utf8.count && left.withUTF8 { $0.elementsEqual(right.utf8) }
    }
}

extension JSONString: ExpressibleByStringLiteral {
    public init(stringLiteral value: String) {
        self.init(value)
    }
}
