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
