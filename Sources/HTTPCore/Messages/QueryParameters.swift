/// The parameters of a query: `name=value` pairs joined by `&`, each name at most once.
///
/// Decoding is strict. `+` is rejected, because encoders disagree about its meaning (space or plus). Clients write
/// `%20` or `%2B`.
public struct QueryParameters: Sendable, Equatable {
    private var pairs: [Pair] = []

    private struct Pair: Sendable, Equatable {
        let name: String
        let value: String
    }

    /// Creates no parameters.
    public init() {}

    /// Parses a raw query.
    ///
    /// - Parameter query: The bytes after `?`. Nil and empty both mean no parameters.
    /// - Throws: 400 `invalid_query` for an invalid escape, an empty name, a missing `=`, a `+`, or more than 32
    ///   parameters. 400 `duplicate_parameter` for a duplicate name.
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

    /// The names, in the order of the query.
    public var names: [String] { pairs.map(\.name) }

    public subscript(name: String) -> String? {
        pairs.first { $0.name == name }?.value
    }

    /// Returns the parameter as a value of the type, or nil when it is absent.
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

    /// Returns the parameter as a value of the type.
    ///
    /// - Throws: Errors of ``optional(_:as:)``, and a 400 `missing_parameter` when it is absent.
    public func require<Value: PathParameterConvertible>(
        _ name: String, as type: Value.Type = Value.self
    ) throws(Problem) -> Value {
        guard let value = try optional(name, as: type) else {
            throw Problem(
                .badRequest, "missing_parameter", detail: "The query parameter `\(name)` is missing.", field: name)
        }
        return value
    }

    /// Rejects parameters that the endpoint does not support.
    ///
    /// - Throws: A 400 `unknown_parameter` with the first one.
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
