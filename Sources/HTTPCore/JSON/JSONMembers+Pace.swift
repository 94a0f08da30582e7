/// The same readings for values that take long to convert: others have their turn meanwhile.
extension JSONMembers {
    /// Elements of an array that are converted before others have their turn. Each gives way by itself when it is large.
    private static let elementsPerIteration = 16

    /// Takes a member that must be there and converts it.
    public mutating func required<Value>(
        _ name: String, pace: Pace, _ convert: (JSONValue) async throws -> Value
    ) async throws -> Value {
        let (value, path) = try required(name)
        return try await convertNamingField(value, at: path, convert)
    }

    /// Takes a member that may be absent or null, and converts it.
    public mutating func optional<Value>(
        _ name: String, pace: Pace, _ convert: (JSONValue) async throws -> Value
    ) async throws -> Value? {
        guard let (value, path) = optional(name) else { return nil }
        return try await convertNamingField(value, at: path, convert)
    }

    /// Takes a member that must be an array and converts each element.
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

    /// Opens the object, lets `read` take its members, and finishes it.
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
