/// Reads the members of one object strictly. Each supported member is taken out, and `finish()` rejects the rest.
///
/// ```swift
/// var members = try JSONMembers(value)
/// let userid = try members.required("userid", Userid.init(json:))
/// let iterations = try members.object("kdf") { try $0.integer("iterations", in: 10_000...10_000_000) }
/// try members.finish()
/// ```
///
/// For an optional member, `null` equals absence. For a required one, it has the wrong type. A thrown error of a
/// conversion gets the member's path as its `field`, unless its field already begins with the path.
public struct JSONMembers {
    private let members: [JSONObject.Member]
    private let path: String
    /// One bit for each member that was taken. Supported objects have far fewer than 64 members. Those after the 64th
    /// count as unknown.
    private var taken: UInt64 = 0

    /// Opens an object.
    ///
    /// - Throws: A 422 `wrong_type` for another value.
    public init(_ value: JSONValue, at path: String = "") throws(Problem) {
        guard case .object(let object) = value else {
            throw JSONMembers.wrongType(expected: "object", path.isEmpty ? nil : path)
        }
        members = object.members
        self.path = path
    }

    /// Takes a required member and converts it.
    ///
    /// - Throws: A 422 `missing_member`, or an error of `convert` with the field's path.
    public mutating func required<Value>(
        _ name: String, _ convert: (JSONValue) throws -> Value
    ) throws -> Value {
        let (value, path) = try required(name)
        return try convertNamingField(value, at: path, convert)
    }

    /// Takes an optional member, which may be null, and converts it.
    ///
    /// - Throws: An error of `convert`, with the field's path.
    public mutating func optional<Value>(
        _ name: String, _ convert: (JSONValue) throws -> Value
    ) throws -> Value? {
        guard let (value, path) = optional(name) else { return nil }
        return try convertNamingField(value, at: path, convert)
    }

    /// Takes a member that is null, which equals absence. Leaves another value for a later call.
    public mutating func skipNull(_ name: String) {
        if let member = members.first(where: { $0.name == name }), case .null = member.value { _ = take(name) }
    }

    /// Takes a required member, and returns it with its path.
    mutating func required(_ name: String) throws(Problem) -> (value: JSONValue, path: String) {
        let path = JSONPath.member(name, of: path)
        guard let value = take(name) else {
            throw Problem(
                .unprocessableContent, "missing_member", detail: "The member `\(path)` is missing.", field: path)
        }
        return (value, path)
    }

    /// Takes an optional member, which may be null, and returns it with its path.
    mutating func optional(_ name: String) -> (value: JSONValue, path: String)? {
        guard let value = take(name) else { return nil }
        if case .null = value { return nil }
        return (value, JSONPath.member(name, of: path))
    }

    /// Takes a required object, reads its members and finishes it.
    public mutating func object<Value>(
        _ name: String, _ read: (inout JSONMembers) throws -> Value
    ) throws -> Value {
        let path = JSONPath.member(name, of: path)
        return try required(name) { try JSONMembers.read($0, at: path, read) }
    }

    /// Takes an optional object, which may be null, reads its members and finishes it.
    public mutating func optionalObject<Value>(
        _ name: String, _ read: (inout JSONMembers) throws -> Value
    ) throws -> Value? {
        let path = JSONPath.member(name, of: path)
        return try optional(name) { try JSONMembers.read($0, at: path, read) }
    }

    /// Takes a required array and converts each element.
    ///
    /// - Parameters:
    ///   - name: The member.
    ///   - count: The permitted number of elements. Other numbers cause 422 `wrong_count`.
    ///   - convert: Converts an element, with the element's path.
    /// - Returns: The values in order.
    /// - Throws: 422 `missing_member`, `wrong_type` or `wrong_count`, or an error of `convert` with the element's path.
    public mutating func array<Value>(
        _ name: String, count: ClosedRange<Int>, _ convert: (JSONValue, _ path: String) throws -> Value
    ) throws -> [Value] {
        let (elements, path) = try elements(name, count: count)
        return try elements.enumerated().map { index, element in
            let path = JSONPath.element(index, of: path)
            return try convertNamingField(element, at: path) { try convert($0, path) }
        }
    }

    /// Takes a required array with a permitted number of elements, and returns them with its path.
    mutating func elements(
        _ name: String, count: ClosedRange<Int>
    ) throws -> (elements: [JSONValue], path: String) {
        let path = JSONPath.member(name, of: path)
        let elements = try required(name) { (value) throws(Problem) in try value.array() }
        guard count.contains(elements.count) else {
            throw Problem(
                .unprocessableContent, "wrong_count",
                detail: "The array must have \(count.lowerBound) to \(count.upperBound) elements.",
                field: path,
                limit: elements.count > count.upperBound ? count.upperBound : count.lowerBound)
        }
        return (elements, path)
    }

    /// Finishes the object.
    ///
    /// - Throws: A 422 `unknown_member` with the first member that was not taken.
    public func finish() throws(Problem) {
        for (index, member) in members.enumerated() where index >= 64 || taken & (1 << UInt64(index)) == 0 {
            throw Problem(
                .unprocessableContent, "unknown_member", detail: "The member of `field` is unknown here.",
                field: JSONPath.member(JSONPath.abbreviated(member.name.string), of: path))
        }
    }

    /// Opens the object, takes its members with `read`, and finishes it.
    public static func read<Value>(
        _ value: JSONValue, at path: String = "", _ read: (inout JSONMembers) throws -> Value
    ) throws -> Value {
        var members = try JSONMembers(value, at: path)
        let result = try read(&members)
        try members.finish()
        return result
    }

    private mutating func take(_ name: String) -> JSONValue? {
        guard let index = members.firstIndex(where: { $0.name == name }) else { return nil }
        if index < 64 { taken |= 1 << UInt64(index) }
        return members[index].value
    }

    private func convertNamingField<Value>(
        _ value: JSONValue, at path: String, _ convert: (JSONValue) throws -> Value
    ) throws -> Value {
        do {
            return try convert(value)
        } catch let error as any ProblemConvertible {
            throw Self.naming(error, at: path)
        }
    }

    /// Returns the problem with the path of its value.
    static func naming(_ error: any ProblemConvertible, at path: String) -> Problem {
        var problem = error.problem
        problem.field = JSONPath.absolute(problem.field, in: path)
        return problem
    }

    static func wrongType(expected: String, _ field: String? = nil) -> Problem {
        Problem(
            .unprocessableContent, "wrong_type", detail: "The value must be of the JSON type \(expected).",
            field: field)
    }
}

/// Reads members whose conversion takes long, and suspends in between for other work.
extension JSONMembers {
    /// The number of array elements that are converted before a suspension. Large elements suspend by themselves.
    private static let elementsPerIteration = 16

    /// Takes a required member and converts it.
    public mutating func required<Value>(
        _ name: String, pace: Pace, _ convert: (JSONValue) async throws -> Value
    ) async throws -> Value {
        let (value, path) = try required(name)
        return try await convertNamingField(value, at: path, convert)
    }

    /// Takes an optional member, which may be null, and converts it.
    public mutating func optional<Value>(
        _ name: String, pace: Pace, _ convert: (JSONValue) async throws -> Value
    ) async throws -> Value? {
        guard let (value, path) = optional(name) else { return nil }
        return try await convertNamingField(value, at: path, convert)
    }

    /// Takes a required array and converts each element.
    public mutating func array<Value>(
        _ name: String, count: ClosedRange<Int>, pace: Pace,
        _ convert: (JSONValue, _ path: String) async throws -> Value
    ) async throws -> [Value] {
        let (elements, path) = try elements(name, count: count)
        var values: [Value] = []
        values.reserveCapacity(elements.count)
        for (index, element) in elements.enumerated() {
            if index % Self.elementsPerIteration == Self.elementsPerIteration - 1 { await pace.giveWay() }
            let path = JSONPath.element(index, of: path)
            values.append(try await convertNamingField(element, at: path) { try await convert($0, path) })
        }
        return values
    }

    /// Opens the object, takes its members with `read`, and finishes it.
    public static func read<Value>(
        _ value: JSONValue, at path: String = "", pace: Pace, _ read: (inout JSONMembers) async throws -> Value
    ) async throws -> Value {
        var members = try JSONMembers(value, at: path)
        let result = try await read(&members)
        try members.finish()
        return result
    }

    private func convertNamingField<Value>(
        _ value: JSONValue, at path: String, _ convert: (JSONValue) async throws -> Value
    ) async throws -> Value {
        do {
            return try await convert(value)
        } catch let error as any ProblemConvertible {
            throw Self.naming(error, at: path)
        }
    }
}
