/// Finds the route for a method and a path. Built once; matching allocates only for the parameters it finds.
///
/// - A literal segment beats a parameter.
/// - A path is split at `/` first; then each segment is percent-decoded once.
/// - A path is `notFound` when a segment is empty (a trailing slash is, unless the template has it), is `.` or `..`, has a malformed escape, or
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
