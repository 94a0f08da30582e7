/// The value as one type; each throws a 422 `wrong_type` when it is another.
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

    /// The value as an integer within bounds; outside of them 422 `out_of_range` with the bound as `limit`.
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
