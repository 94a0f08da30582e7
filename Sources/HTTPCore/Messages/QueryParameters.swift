/// The parameters of a query: `name=value` pairs joined by `&`, each name at most once.
///
/// Decoding is strict. `+` is refused, because half of the world's encoders mean a space by it and the other half a
/// plus: clients write `%20` or `%2B`.
public struct QueryParameters: Sendable, Equatable {
    private var pairs: [Pair] = []

    private struct Pair: Sendable, Equatable {
        let name: String
        let value: String
    }

    /// No parameters.
    public init() {}

    /// Parses a raw query.
    ///
    /// - Parameter query: The bytes after `?`; nil and empty both mean no parameters.
    /// - Throws: A 400 `invalid_query` for a bad escape, an empty name, a missing `=`, a `+`, or more than 32
    ///   parameters; 400 `duplicate_parameter` for a name that comes twice.
    public init(parsing query: ArraySlice<UInt8>?) throws(Problem) {
        guard let query, !query.isEmpty else { return }
        for part in query.split(separator: UInt8(ascii: "&"), omittingEmptySubsequences: false) {
            guard pairs.count < 32 else { throw Self.invalid("There are more than 32 parameters.") }
            guard !part.contains(ASCII.plus) else { throw Self.invalid("Write %20 for a space and %2B for a plus.") }
            guard let equals = part.firstIndex(of: ASCII.equals) else {
                throw Self.invalid("A parameter is written name=value.")
            }
            guard let name = PercentDecoding.decode(part[..<equals]), !name.isEmpty,
                let value = PercentDecoding.decode(part[(equals + 1)...])
            else { throw Self.invalid("A parameter is not percent-encoded UTF-8.") }
            guard self[name] == nil else {
                throw Problem(
                    .badRequest, "duplicate_parameter", detail: "The query parameter `\(name)` is repeated.",
                    field: name)
            }
            pairs.append(Pair(name: name, value: value))
        }
    }

    public var isEmpty: Bool { pairs.isEmpty }

    /// The names, in the order in which they came.
    public var names: [String] { pairs.map(\.name) }

    public subscript(name: String) -> String? {
        pairs.first { $0.name == name }?.value
    }

    /// The parameter as a value of the wanted type, or nil when it is absent.
    ///
    /// - Throws: A 400 `invalid_parameter` with `field` when the text does not have the type's form.
    public func optional<Value: PathParameterConvertible>(
        _ name: String, as type: Value.Type = Value.self
    ) throws(Problem) -> Value? {
        guard let text = self[name] else { return nil }
        guard let value = Value(pathParameter: text) else {
            throw Problem(
                .badRequest, "invalid_parameter", detail: "The query parameter `\(name)` is malformed.", field: name)
        }
        return value
    }

    /// The parameter as a value of the wanted type.
    ///
    /// - Throws: As ``optional(_:as:)``, and a 400 `missing_parameter` when it is absent.
    public func require<Value: PathParameterConvertible>(
        _ name: String, as type: Value.Type = Value.self
    ) throws(Problem) -> Value {
        guard let value = try optional(name, as: type) else {
            throw Problem(
                .badRequest, "missing_parameter", detail: "The query parameter `\(name)` is missing.", field: name)
        }
        return value
    }

    /// Refuses parameters that the endpoint does not know.
    ///
    /// - Throws: A 400 `unknown_parameter` that names the first one.
    public func refuseUnknown(except known: [String]) throws(Problem) {
        guard let unknown = pairs.first(where: { !known.contains($0.name) }) else { return }
        throw Problem(
            .badRequest, "unknown_parameter", detail: "The query parameter of `field` is unknown here.",
            field: JSONPath.abbreviated(unknown.name))
    }

    private static func invalid(_ detail: String) -> Problem {
        Problem(.badRequest, "invalid_query", detail: detail)
    }
}
