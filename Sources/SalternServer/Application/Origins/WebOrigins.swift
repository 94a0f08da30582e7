internal import HTTPCore

/// The origins whose pages may use the API (the CORS protocol of the Fetch standard, §3.3).
///
/// Only these origins get fields, and only from the API's own routes: not from pages of the server, nor from routes of
/// services, whose credentials belong on no page. A page sends its token in `Authorization`, so credentials that browsers
/// send by themselves are never allowed.
public struct WebOrigins: Sendable {
    private let allowed: Set<String>

    /// - Parameter origins: None by default: then no reply has a field of this protocol.
    public init(_ origins: [WebOrigin] = []) { allowed = Set(origins.map(\.description)) }

    /// Paths of services, without what follows them.
    private static let servicePaths = ["/v1/tokens/inspect", "/v1/service-events"]

    private static let methods = "GET, HEAD, POST, PUT, PATCH, DELETE"
    private static let requestFields = "Authorization, Content-Type, If-Match, If-None-Match, Last-Event-ID"
    private static let responseFields = "ETag, Retry-After, Saltern-Views-Left, X-Request-Id"
    private static let maximumAge = "600"

    /// The reply to a preflight request for a path that has routes; nil when the request is none, or of another origin.
    func preflight(_ head: RequestHead) -> Response? {
        guard head.method == .options, head.fields.contains("access-control-request-method"),
            Self.isForPages(head.path), allows(head.fields["origin"])
        else { return nil }
        return Response(
            status: .noContent,
            fields: [
                "Access-Control-Allow-Methods": Self.methods, "Access-Control-Allow-Headers": Self.requestFields,
                "Access-Control-Max-Age": Self.maximumAge,
            ])
    }

    /// Lets the page that sent a request read the reply, whatever it is.
    /// - Parameters:
    ///   - route: The name of the route in the log.
    ///   - head: The request; nil when its head could not be read.
    ///   - unread: The part of such a head that was found.
    func finish(_ response: inout Response, route: String, head: RequestHead?, unread: UnreadHead?) {
        guard !allowed.isEmpty, let path = Self.path(route, head, unread), Self.isForPages(path) else { return }
        response.fields.append("Vary", "Origin")
        guard let origin = head.map({ $0.fields["origin"] }) ?? unread?.origin, allowed.contains(origin) else { return }
        response.fields.append("Access-Control-Allow-Origin", origin)
        response.fields.append("Access-Control-Expose-Headers", Self.responseFields)
    }

    private func allows(_ origin: String?) -> Bool { origin.map(allowed.contains) ?? false }

    /// The template of a route, because a path can be written in several ways; else the path as it came.
    private static func path(_ route: String, _ head: RequestHead?, _ unread: UnreadHead?) -> String? {
        if let space = route.firstIndex(of: " ") { return String(route[route.index(after: space)...]) }
        return head?.path ?? unread?.path
    }

    private static func isForPages(_ path: String) -> Bool {
        path.hasPrefix("/v1/") && !servicePaths.contains { path == $0 || path.hasPrefix($0 + "/") }
    }
}
