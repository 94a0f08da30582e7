/// Finds the route for a method and a path. It is built once. Matching allocates memory only for parameters.
///
/// - A literal segment precedes a parameter.
/// - A path is split at `/` first. Then each segment is percent-decoded once.
/// - A path is `notFound` if a segment is empty, `.` or `..`, or has a malformed escape. The same holds if it decodes
///   to a slash, a NUL or bytes that are not UTF-8. A trailing slash is an empty segment unless the template has it.
/// - The `GET` route serves `HEAD` unless there is a route for it.
public struct Router<Metadata: Sendable>: Sendable {
    /// The result of a match.
    public enum Match: Sendable {
        case found(Route<Metadata>, PathParameters)
        /// The path exists with these methods.
        case methodNotAllowed([HTTPMethod])
        case notFound
    }

    /// All routes, in the given order.
    public let routes: [Route<Metadata>]
    private let tree: RouteTree

    /// Builds the table. Two routes for the same method and path are a programming error.
    public init(_ routes: [Route<Metadata>]) {
        self.routes = routes
        var tree = RouteTree()
        for route in routes { tree.insert(route.method, route.template) }
        self.tree = tree
    }

    /// Finds the route for a raw path, for example that of ``RequestHead/pathBytes``.
    public func match(_ method: HTTPMethod, _ path: Slice<ZeroizingBuffer>) -> Match {
        switch path.withContiguousStorageIfAvailable({ tree.match(method, $0) }) {
        case .found(let index, let parameters): .found(routes[index], parameters)
        case .methodNotAllowed(let methods): .methodNotAllowed(methods)
        case .notFound, nil: .notFound
        }
    }

    /// Finds the route for a raw path.
    public func match(_ method: HTTPMethod, _ path: String) -> Match {
        match(method, ZeroizingBuffer(path.utf8)[...])
    }
}

/// Handles a routed request with its complete body, and returns the reply.
public typealias Handler = @Sendable (Request) async -> Response

/// One row of the table of routes.
public final class Route<Metadata: Sendable>: Sendable {
    public let method: HTTPMethod
    public let template: PathTemplate
    public let body: BodyRule
    /// The application's data about the route, which it uses before it calls the handler.
    public let metadata: Metadata
    public let handler: Handler

    public init(
        _ method: HTTPMethod, _ template: String, body: BodyRule = .none, metadata: Metadata, handler: @escaping Handler
    ) {
        self.method = method
        self.template = PathTemplate(template)
        self.body = body
        self.metadata = metadata
        self.handler = handler
    }
}

extension Route where Metadata == Void {
    public convenience init(
        _ method: HTTPMethod, _ template: String, body: BodyRule = .none, handler: @escaping Handler
    ) {
        self.init(method, template, body: body, metadata: (), handler: handler)
    }
}

/// The templates of all routes as a tree of segments. It stores the numbers of routes only.
struct RouteTree: Sendable {
    enum Match {
        /// The number of the route in the order of insertion.
        case found(Int, PathParameters)
        case methodNotAllowed([HTTPMethod])
        case notFound
    }

    private struct Node: Sendable {
        var literals: [(segment: [UInt8], node: Int)] = []
        var parameter: Int?
        var routes: [(method: HTTPMethod, route: Int)] = []
    }

    private var nodes = [Node()]
    private var templates: [PathTemplate] = []

    mutating func insert(_ method: HTTPMethod, _ template: PathTemplate) {
        let node = template.segments.reduce(0) { insert($1, under: $0) }
        precondition(!nodes[node].routes.contains { $0.method == method }, "two routes for \(method) \(template)")
        nodes[node].routes.append((method, templates.count))
        templates.append(template)
    }

    private mutating func insert(_ segment: PathTemplate.Segment, under parent: Int) -> Int {
        switch segment {
        case .literal(let bytes):
            if let existing = bytes.withUnsafeBufferPointer({ literal($0, under: parent) }) { return existing }
            nodes[parent].literals.append((bytes, nodes.count))
        case .parameter:
            if let existing = nodes[parent].parameter { return existing }
            nodes[parent].parameter = nodes.count
        }
        nodes.append(Node())
        return nodes.count - 1
    }

    func match(_ method: HTTPMethod, _ path: UnsafeBufferPointer<UInt8>) -> Match {
        guard path.first == ASCII.slash, let node = find(in: path, at: 1, under: 0) else { return .notFound }
        guard let route = route(for: method, at: node) else { return .methodNotAllowed(allowed(at: node)) }
        guard let parameters = parameters(of: templates[route], in: path) else { return .notFound }
        return .found(route, parameters)
    }

    private func route(for method: HTTPMethod, at node: Int) -> Int? {
        var route: Int?
        for served in nodes[node].routes {
            if served.method == method { return served.route }
            if method == .head, served.method == .get { route = served.route }
        }
        return route
    }

    private func allowed(at node: Int) -> [HTTPMethod] {
        var methods = nodes[node].routes.map(\.method)
        if methods.contains(.get), !methods.contains(.head) { methods.append(.head) }
        return methods.sorted { $0.name < $1.name }
    }

    /// Returns the node of the path from `start`, just after a slash, if it has routes.
    private func find(in path: UnsafeBufferPointer<UInt8>, at start: Int, under parent: Int) -> Int? {
        let end = Self.endOfSegment(in: path, from: start)
        let raw = UnsafeBufferPointer(rebasing: path[start..<end])
        if PercentDecoding.isPlain(raw) { return find(raw, in: path, endingAt: end, under: parent) }
        return PercentDecoding.decodedBytes(Array(raw)[...])?.withUnsafeBufferPointer {
            find($0, in: path, endingAt: end, under: parent)
        }
    }

    /// Returns the same node, with the first segment already decoded.
    private func find(
        _ segment: UnsafeBufferPointer<UInt8>, in path: UnsafeBufferPointer<UInt8>, endingAt end: Int, under parent: Int
    ) -> Int? {
        // Only the last segment may be empty: in the path "/", and after a trailing slash.
        guard Self.isPossible(segment), !segment.isEmpty || end == path.count else { return nil }
        if let child = literal(segment, under: parent), let node = leaf(in: path, endingAt: end, under: child) {
            return node
        }
        guard !segment.isEmpty, let child = nodes[parent].parameter else { return nil }
        return leaf(in: path, endingAt: end, under: child)
    }

    /// Returns the node with routes at or below a child, for a segment that ends at `end`.
    private func leaf(in path: UnsafeBufferPointer<UInt8>, endingAt end: Int, under child: Int) -> Int? {
        guard end == path.count else { return find(in: path, at: end + 1, under: child) }
        return nodes[child].routes.isEmpty ? nil : child
    }

    private func literal(_ segment: UnsafeBufferPointer<UInt8>, under parent: Int) -> Int? {
        for index in nodes[parent].literals.indices {
            guard nodes[parent].literals[index].segment.count == segment.count else { continue }
            let isSame = nodes[parent].literals[index].segment.withUnsafeBufferPointer { literal in
                segment.indices.allSatisfy { literal[$0] == segment[$0] }
            }
            if isSame { return nodes[parent].literals[index].node }
        }
        return nil
    }

    private static func endOfSegment(in path: UnsafeBufferPointer<UInt8>, from start: Int) -> Int {
        var end = start
        while end < path.count, path[end] != ASCII.slash { end += 1 }
        return end
    }

    /// Returns whether a path may have the decoded segment: it has no slash and is neither `.` nor `..`.
    private static func isPossible(_ segment: UnsafeBufferPointer<UInt8>) -> Bool {
        let isDots = !segment.isEmpty && segment.count <= 2 && segment.allSatisfy { $0 == ASCII.dot }
        return !isDots && !segment.contains(ASCII.slash)
    }

    private func parameters(of template: PathTemplate, in path: UnsafeBufferPointer<UInt8>) -> PathParameters? {
        guard !template.parameterNames.isEmpty else { return PathParameters() }
        var values: [String] = []
        values.reserveCapacity(template.parameterNames.count)
        var start = 1
        for segment in template.segments {
            let end = Self.endOfSegment(in: path, from: start)
            if case .parameter = segment {
                let raw = UnsafeBufferPointer(rebasing: path[start..<end])
                guard let value = PercentDecoding.decode(raw) else { return nil }
                values.append(value)
            }
            start = end + 1
        }
        return PathParameters(names: template.parameterNames, values: values)
    }
}
