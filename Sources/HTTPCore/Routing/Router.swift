/// Finds the route for a method and a path. Built once; matching allocates only for the parameters it finds.
///
/// - A literal segment beats a parameter.
/// - A path is split at `/` first; then each segment is percent-decoded once.
/// - A path is `notFound` when a segment is empty (so a trailing slash is), is `.` or `..`, has a malformed escape, or
///   decodes to something with a slash, a NUL or bytes that are not UTF-8.
/// - `HEAD` is served by the `GET` route unless it has one of its own.
public struct Router<Metadata: Sendable>: Sendable {
    /// What a path leads to.
    public enum Match: Sendable {
        case found(Route<Metadata>, PathParameters)
        /// The path exists; these methods are served there.
        case methodNotAllowed([HTTPMethod])
        case notFound
    }

    /// Every route, in the order in which it was given.
    public let routes: [Route<Metadata>]
    private var nodes = [Node()]

    private struct Node: Sendable {
        var literals: [(segment: [UInt8], node: Int)] = []
        var parameter: Int?
        var routes: [(method: HTTPMethod, route: Int)] = []

        func literal(_ segment: ArraySlice<UInt8>) -> Int? {
            for literal in literals where literal.segment[...] == segment { return literal.node }
            return nil
        }
    }

    /// Builds the table. Two routes for the same method and path are a programming error.
    public init(_ routes: [Route<Metadata>]) {
        self.routes = routes
        for (index, route) in routes.enumerated() {
            let node = route.template.segments.reduce(0) { insert($1, under: $0) }
            precondition(
                !nodes[node].routes.contains { $0.method == route.method },
                "two routes for \(route.method) \(route.template)")
            nodes[node].routes.append((route.method, index))
        }
    }

    /// Finds the route for a raw path, for example that of ``RequestHead/pathBytes``.
    public func match(_ method: HTTPMethod, _ path: ArraySlice<UInt8>) -> Match {
        guard path.first == ASCII.slash else { return .notFound }
        guard let node = find(path.dropFirst(), from: 0) else { return .notFound }
        let served = nodes[node].routes
        guard
            let route = served.first(where: { $0.method == method })
                ?? (method == .head ? served.first { $0.method == .get } : nil)
        else { return .methodNotAllowed(allowed(at: node)) }
        guard let parameters = parameters(of: routes[route.route].template, in: path.dropFirst()) else {
            return .notFound
        }
        return .found(routes[route.route], parameters)
    }

    /// Finds the route for a raw path.
    public func match(_ method: HTTPMethod, _ path: String) -> Match {
        match(method, Array(path.utf8)[...])
    }

    private mutating func insert(_ segment: PathTemplate.Segment, under parent: Int) -> Int {
        switch segment {
        case .literal(let bytes):
            if let existing = nodes[parent].literal(bytes[...]) { return existing }
            nodes[parent].literals.append((bytes, nodes.count))
        case .parameter:
            if let existing = nodes[parent].parameter { return existing }
            nodes[parent].parameter = nodes.count
        }
        nodes.append(Node())
        return nodes.count - 1
    }

    /// The node with routes that `rest` (what follows a slash) leads to.
    private func find(_ rest: ArraySlice<UInt8>, from parent: Int) -> Int? {
        let end = rest.firstIndex(of: ASCII.slash) ?? rest.endIndex
        guard let segment = Self.decoded(rest[..<end], isWholePath: parent == 0 && end == rest.endIndex) else {
            return nil
        }
        func follow(_ child: Int) -> Int? {
            guard end == rest.endIndex else { return find(rest[(end + 1)...], from: child) }
            return nodes[child].routes.isEmpty ? nil : child
        }
        if let child = nodes[parent].literal(segment), let node = follow(child) { return node }
        if !segment.isEmpty, let child = nodes[parent].parameter { return follow(child) }
        return nil
    }

    /// One segment decoded, or nil when nothing can be there. Only the path `/` has an empty segment.
    private static func decoded(_ raw: ArraySlice<UInt8>, isWholePath: Bool) -> ArraySlice<UInt8>? {
        guard let segment = PercentDecoding.decodedBytes(raw) else { return nil }
        if segment.isEmpty { return isWholePath ? segment : nil }
        let isDotSegment = segment.count <= 2 && segment.allSatisfy { $0 == ASCII.dot }
        return isDotSegment || segment.contains(ASCII.slash) ? nil : segment
    }

    private func parameters(of template: PathTemplate, in path: ArraySlice<UInt8>) -> PathParameters? {
        guard !template.parameterNames.isEmpty else { return PathParameters() }
        var values: [String] = []
        values.reserveCapacity(template.parameterNames.count)
        var rest = path
        for segment in template.segments {
            let end = rest.firstIndex(of: ASCII.slash) ?? rest.endIndex
            if case .parameter = segment {
                guard let value = PercentDecoding.decode(rest[..<end]) else { return nil }
                values.append(value)
            }
            rest = end == rest.endIndex ? rest[end...] : rest[(end + 1)...]
        }
        return PathParameters(names: template.parameterNames, values: values)
    }

    private func allowed(at node: Int) -> [HTTPMethod] {
        var methods = nodes[node].routes.map(\.method)
        if methods.contains(.get), !methods.contains(.head) { methods.append(.head) }
        return methods.sorted { $0.name < $1.name }
    }
}
