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
