/// A type that can be read from one segment of a path or one query parameter.
public protocol PathParameterConvertible {
    /// Creates a value from decoded text, or nil when the text does not have the type's form.
    init?(pathParameter text: String)
}

extension String: PathParameterConvertible {
    public init?(pathParameter text: String) {
        self = text
    }
}

extension Int: PathParameterConvertible {
    /// Reads decimal digits, without plus sign and leading zeros.
    public init?(pathParameter text: String) {
        guard let value: Int = ASCII.wholeNumber(text) else { return nil }
        self = value
    }
}

extension Bool: PathParameterConvertible {
    /// Reads `true` or `false`.
    public init?(pathParameter text: String) {
        switch text {
        case "true": self = true
        case "false": self = false
        default: return nil
        }
    }
}

/// The decoded values of a route's path parameters in one request.
public struct PathParameters: Sendable, Equatable {
    private let names: [String]
    private let values: [String]

    /// Creates no parameters.
    public init() {
        self.init(names: [], values: [])
    }

    /// Takes names and values of the same number, in the same order.
    public init(names: [String], values: [String]) {
        precondition(names.count == values.count, "every parameter has a value")
        self.names = names
        self.values = values
    }

    public subscript(name: String) -> String? {
        names.firstIndex(of: name).map { values[$0] }
    }

    /// Returns the parameter as a value of the type.
    ///
    /// - Throws: A 400 `invalid_parameter` with `field` when the text does not have the type's form.
    public func require<Value: PathParameterConvertible>(
        _ name: String, as type: Value.Type = Value.self
    ) throws(Problem) -> Value {
        guard let text = self[name], let value = Value(pathParameter: text) else {
            throw Problem(
                .badRequest, "invalid_parameter", detail: "The path parameter `\(name)` is malformed.", field: name)
        }
        return value
    }
}

/// The path of a route, for example `/v1/items/{id}`.
public struct PathTemplate: Sendable, Hashable, CustomStringConvertible {
    /// One part between slashes.
    package enum Segment: Sendable, Hashable {
        case literal([UInt8])
        case parameter(String)
    }

    public let description: String
    package let segments: [Segment]
    /// The parameters' names in order.
    public let parameterNames: [String]

    /// Reads a template of the program. It begins with `/` and has no empty segment before its end and no duplicate
    /// parameter. Another text is a programming error.
    public init(_ template: String) {
        precondition(template.hasPrefix("/"), "a path template begins with /")
        description = template
        segments = template.dropFirst().split(separator: "/", omittingEmptySubsequences: false).map { part in
            if part.hasPrefix("{"), part.hasSuffix("}") { return .parameter(String(part.dropFirst().dropLast())) }
            return .literal(Array(part.utf8))
        }
        parameterNames = segments.compactMap { if case .parameter(let name) = $0 { name } else { nil } }
        precondition(
            !segments.dropLast().contains(.literal([])), "only the end of a path template is empty: \(template)")
        precondition(Set(parameterNames).count == parameterNames.count, "a path parameter is named once: \(template)")
        precondition(!parameterNames.contains(""), "a path parameter has a name: \(template)")
    }
}
