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
